/** Texts of the demo alone. */
export const demo = {
  'demo.title': 'Sign in with a wallet',
  'demo.text': 'Two things to try. Each works the same way in your own application.',
  'demo.ended':
    'You’re signed out: this session was ended on the phone that approved it, or from another session of yours.',
  'demo.phone.button': 'Show the code',
  'demo.phone.created.here': 'Open the request on this phone.',
  'demo.sign.title': 'Request a signature',
  'demo.sign.text': 'You get a proof that anyone can verify later, without this service.',
  'demo.sign.order.title': 'Title',
  'demo.sign.order.title.sample': 'Approve invoice 1042',
  'demo.sign.order.summary': 'Summary',
  'demo.sign.order.summary.sample': 'Pay 250 NIM to Green Bakery for twelve loaves of bread.',
  'demo.sign.order.payload': 'Content, as JSON',
  'demo.sign.not-json': 'This isn’t JSON.',
  'demo.sign.button': 'Ask the phone',
  'demo.proof.title': 'Your proof',
  'demo.proof.valid': 'Verified in this page: the signature is valid.',
  'demo.proof.invalid': 'The signature isn’t valid.',
  'demo.proof.other':
    'The service found the signature valid. This page itself checks signatures of Nimiq and of bare Ed25519 keys only.',
  'demo.proof.details': 'What was signed, and the signature',
  'demo.proof.key': 'Public key',
  'demo.proof.signature': 'Signature',
  'demo.proof.payload': 'Content',
  'demo.session.phone': 'Signed in {time}, with a phone.',
  'demo.session.device': 'Signed in {time}, on this device.',
  'demo.session.text':
    'The session is in a cookie that scripts can’t read. If you reload the page, you’re still signed in.',
  'demo.footer':
    'A wallet’s signature proves that someone controls a key, and nothing else. What they may do is for the application to decide.',
} as const
