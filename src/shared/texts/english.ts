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

/**
 * All texts of the pages in English. They are the list of all texts: every other language has the same keys, and in
 * each text the same placeholders. A text with a number, `{count}`, may have a form for each plural category of its
 * language, separated by " | ": in English one and other.
 *
 * Other programs know the approval page by its buttons: those in English begin with "Continue", "Not me", "Approve" and
 * "Decline".
 */
export const english = {
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
  ...signing,
} as const
