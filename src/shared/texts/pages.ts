import { account } from './english/account.ts'
import { approve } from './english/approve.ts'
import { common } from './english/common.ts'
import { demo } from './english/demo.ts'
import { device } from './english/device.ts'
import { inbox } from './english/inbox.ts'
import { issuer } from './english/issuer.ts'
import { notFound } from './english/not-found.ts'
import { refused } from './english/refused.ts'
import { review } from './english/review.ts'
import { signIn } from './english/sign-in.ts'
import { signing } from './english/signing.ts'
import type { PageTexts } from './page-texts.ts'

/**
 * The texts that each page has, in English: parts of the list. A page imports its own, so that its script has no
 * others, and what it loads in another language has none either.
 */
export const approveTexts: PageTexts = [common, signing, device, signIn, review, approve]
export const demoTexts: PageTexts = [common, signing, device, signIn, review, account, demo]
export const signInTexts: PageTexts = [common, signing, device, signIn]
export const accountTexts: PageTexts = [common, signing, device, signIn, account]
export const inboxTexts: PageTexts = [common, signing, inbox]
export const issuerTexts: PageTexts = [common, signing, device, issuer]
export const notFoundTexts: PageTexts = [common, notFound, refused]
