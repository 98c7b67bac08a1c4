/** Texts of the page for a visitor whom forward auth refuses. */
export const refused = {
  'refused.title': 'You can’t open this page',
  'refused.group': 'This page of {app} is for members of {groups}. You’re signed in with:',
  'refused.group.hint': 'To get in, send this wallet to the operator of {app}.',
  'refused.origin': 'Another site sent this request. Open {host} yourself, then try again.',
  'refused.signed-out.title': 'You’re signed out',
  'refused.signed-out': 'Sign in, then try again.',
  'refused.sign-in': 'Sign in',
  'refused.copy': 'Copy this wallet',
  'refused.copied': 'Copied',
  'refused.other-wallet': 'Use another wallet',
} as const
