import { account } from './german/account.ts'
import { approve } from './german/approve.ts'
import { common } from './german/common.ts'
import { demo } from './german/demo.ts'
import { device } from './german/device.ts'
import { inbox } from './german/inbox.ts'
import { issuer } from './german/issuer.ts'
import { notFound } from './german/not-found.ts'
import { refused } from './german/refused.ts'
import { review } from './german/review.ts'
import { signIn } from './german/sign-in.ts'
import type { BareTexts, Texts } from './page-texts.ts'

/** All texts of the pages in German. */
export const texts: Texts = {
  ...approve,
  ...review,
  ...signIn,
  ...account,
  ...inbox,
  ...demo,
  ...issuer,
  ...notFound,
  ...refused,
  ...device,
  ...common,
}

export const bare: BareTexts = {
  page: 'Diese Seite braucht JavaScript. Schalte es ein und lade die Seite neu.',
  claim: 'Diese Seite braucht JavaScript. Schalte es ein und scanne den Code noch einmal.',
  unknown: 'Diese Seite gibt es nicht, oder sie ist nicht für dein Konto.',
}
