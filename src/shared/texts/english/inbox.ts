/** Texts of the inbox. */
export const inbox = {
  'inbox.title': 'Your requests',
  'inbox.count': 'Waiting for you: {count}',
  'inbox.account': 'Your account',
  'inbox.all': 'All your requests',
  'inbox.asked': 'Asked by {name}',
  'inbox.untitled': 'A request without a title',
  'inbox.expires': 'Expires in {time}',
  'inbox.review': 'Review',
  'inbox.review.request': 'Review the request',
  'inbox.none': 'You’re all caught up.',
  'inbox.none.text': 'New requests appear here.',
  'inbox.over.title': 'This request is over',
  'inbox.over.text':
    'It was answered or withdrawn, it has expired, or it’s for another account. You’re signed in with {address}.',
  'inbox.over.other': 'Use another wallet',
  'inbox.elsewhere.title': 'Sign in here to see your requests',
  'inbox.elsewhere.text': 'You used your phone to sign in here. To see requests, sign in with a wallet on this device.',
  'inbox.signed-out.title': 'You’re signed out',
  'inbox.signed-out.text': 'Sign in again to see your requests. Nothing is lost.',
  'inbox.sign-in': 'Sign in with a wallet',
} as const
