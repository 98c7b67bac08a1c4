import { account as enAccount } from './english/account.ts'
import { approve as enApprove } from './english/approve.ts'
import { common as enCommon } from './english/common.ts'
import { demo as enDemo } from './english/demo.ts'
import { device as enDevice } from './english/device.ts'
import { inbox as enInbox } from './english/inbox.ts'
import { issuer as enIssuer } from './english/issuer.ts'
import { notFound as enNotFound } from './english/not-found.ts'
import { refused as enRefused } from './english/refused.ts'
import { review as enReview } from './english/review.ts'
import { signIn as enSignIn } from './english/sign-in.ts'
import { account as deAccount } from './german/account.ts'
import { approve as deApprove } from './german/approve.ts'
import { common as deCommon } from './german/common.ts'
import { demo as deDemo } from './german/demo.ts'
import { device as deDevice } from './german/device.ts'
import { inbox as deInbox } from './german/inbox.ts'
import { issuer as deIssuer } from './german/issuer.ts'
import { notFound as deNotFound } from './german/not-found.ts'
import { refused as deRefused } from './german/refused.ts'
import { review as deReview } from './german/review.ts'
import { signIn as deSignIn } from './german/sign-in.ts'
import type { PageTexts } from './page-texts.ts'

/** The texts that each page has. A page imports its own, so that its script has no others. */
export const approveTexts: PageTexts = {
  en: [enCommon, enDevice, enSignIn, enReview, enApprove],
  de: [deCommon, deDevice, deSignIn, deReview, deApprove],
}
export const demoTexts: PageTexts = {
  en: [enCommon, enDevice, enSignIn, enReview, enAccount, enDemo],
  de: [deCommon, deDevice, deSignIn, deReview, deAccount, deDemo],
}
export const signInTexts: PageTexts = {
  en: [enCommon, enDevice, enSignIn],
  de: [deCommon, deDevice, deSignIn],
}
export const accountTexts: PageTexts = {
  en: [enCommon, enDevice, enSignIn, enAccount],
  de: [deCommon, deDevice, deSignIn, deAccount],
}
export const inboxTexts: PageTexts = {
  en: [enCommon, enInbox],
  de: [deCommon, deInbox],
}
export const issuerTexts: PageTexts = {
  en: [enCommon, enDevice, enIssuer],
  de: [deCommon, deDevice, deIssuer],
}
export const notFoundTexts: PageTexts = {
  en: [enCommon, enNotFound, enRefused],
  de: [deCommon, deNotFound, deRefused],
}
