import type { ErrorReason } from '../../src/shared/errors.ts'

/** What became of an attack. docs/cross-device-security.md says what each word promises. */
export type Verdict = 'stopped' | 'hindered' | 'not stopped'

/** One attacker against one setting. */
export interface Cell {
  readonly verdict: Verdict
  /** Why: a sentence without its capital letter and its full stop. */
  readonly because: string
  /** The refusal that ends the attack; if it is hindered, while the victim does no more than usual. */
  readonly by?: ErrorReason
}

/** Columns of the table, with their titles in Markdown. */
export const columns = {
  known: '`return` (default)',
  return: '`return`, no known computers',
  compare: '`compare`',
  proximity: 'proximity enforced',
  startKeys: 'start keys',
  link: 'adding a wallet',
} as const

export type ColumnId = keyof typeof columns

/** A row of the table. */
export interface Attacker {
  readonly name: string
  /** What they do, in a sentence. */
  readonly does: string
  readonly cells: Readonly<Record<ColumnId, Cell>>
}

const notStopped = (because: string): Cell => ({ verdict: 'not stopped', because })
const stopped = (by: ErrorReason, because: string): Cell => ({ verdict: 'stopped', because, by })
const hindered = (by: ErrorReason, because: string): Cell => ({ verdict: 'hindered', because, by })

const otherNetwork = stopped('NETWORK_MISMATCH', 'the victim’s phone is not on the attacker’s network')
const noCode = stopped('RETURN_CODE_REQUIRED', 'the code is on the victim’s phone, and nothing asks the victim for it')
const toldCode = hindered(
  'RETURN_CODE_REQUIRED',
  'the victim has to give the attacker the code, although the phone names the site to enter it at',
)
const startedBySite = 'the attacker opens the site like any visitor'
const shortLife = hindered(
  'ORDER_EXPIRED',
  'a victim has to scan within two minutes of the order’s start; only the first one is caught',
)
const alone =
  'the attacker has both sides of the order and its codes, and needs only the signature, which the wallet gives any page'
const rightDigits = 'the attacker shows or tells the order’s own digits'
const ownSession = stopped('SESSION_REQUIRED', 'only the session that started the order can finalize it')
const finalizesFirst = 'finalizing takes only the token, if the order has no computer key'

/** Every attacker against every setting. */
export const attackers = {
  staticQr: {
    name: 'Static QR code',
    does: 'Mails a picture of an order’s QR code and digits to many people.',
    cells: {
      return: noCode,
      known: noCode,
      compare: shortLife,
      proximity: otherNetwork,
      startKeys: shortLife,
      link: noCode,
    },
  },
  liveQr: {
    name: 'Live QR code',
    does: 'Has a page that starts an order when the victim opens it.',
    cells: {
      return: noCode,
      known: noCode,
      compare: notStopped('without digits on the page there is nothing to compare'),
      proximity: otherNetwork,
      startKeys: notStopped(startedBySite),
      link: noCode,
    },
  },
  liveQrWithCode: {
    name: 'Live QR code and digits',
    does: 'Shows its digits too.',
    cells: {
      return: noCode,
      known: noCode,
      compare: notStopped(rightDigits),
      proximity: otherNetwork,
      startKeys: notStopped(startedBySite),
      link: noCode,
    },
  },
  asksForCode: {
    name: 'Asks for the code',
    does: 'Also asks for the code that the phone then shows.',
    cells: {
      return: toldCode,
      known: toldCode,
      compare: notStopped(rightDigits),
      proximity: otherNetwork,
      startKeys: notStopped(startedBySite),
      link: toldCode,
    },
  },
  foreignPage: {
    name: 'Text signed on a foreign page',
    does: 'Claims an order alone, and has the victim’s wallet sign its text.',
    cells: {
      return: notStopped(alone),
      known: notStopped(alone),
      compare: notStopped(alone),
      proximity: notStopped('computer and phone are both the attacker’s'),
      startKeys: notStopped(startedBySite),
      link: notStopped(alone),
    },
  },
  handOver: {
    name: 'Hands a claimed order over',
    does: 'Claims an order, sends the victim the link that continues it, and asks for the code.',
    cells: {
      return: toldCode,
      known: toldCode,
      compare: notStopped(rightDigits),
      proximity: stopped('NETWORK_MISMATCH', 'the victim’s browser cannot continue the order from another network'),
      startKeys: notStopped(startedBySite),
      link: toldCode,
    },
  },
  sameNetwork: {
    name: 'Same network',
    does: 'Asks for the code from the victim’s network (a café, an office, a VPN exit).',
    cells: {
      return: toldCode,
      known: toldCode,
      compare: notStopped(rightDigits),
      proximity: notStopped('computer and phone are on the same network'),
      startKeys: notStopped(startedBySite),
      link: toldCode,
    },
  },
  stolenToken: {
    name: 'Stolen desktop token',
    does: 'Finalizes the victim’s own order first, with a token from a log.',
    cells: {
      return: stopped('RETURN_CODE_REQUIRED', 'the victim types the code into their own computer'),
      known: stopped('COMPUTER_PROOF_INVALID', 'the victim’s computer needs no code, but has to prove its key'),
      compare: notStopped(finalizesFirst),
      proximity: notStopped('networks are compared when the phone calls, not when the order is finalized'),
      startKeys: notStopped(finalizesFirst),
      link: ownSession,
    },
  },
} as const satisfies Readonly<Record<string, Attacker>>

export type AttackerId = keyof typeof attackers
