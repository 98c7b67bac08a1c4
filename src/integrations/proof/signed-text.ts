import { given } from '../../shared/defined-fields.ts'
import { isPlainLine } from '../../shared/plain-line.ts'
import { ProofError } from './artifact.ts'

/**
 * What the text of a sign order says. Times are epoch milliseconds, by the clock of the service that wrote the text.
 */
export interface SignedText {
  readonly appName: string
  /** Origin of the page that started the order. */
  readonly origin: string
  readonly orderId: string
  readonly challengeId: string
  readonly nonce: string
  readonly issuedAt: number
  /** End of the order's life if it had not been approved. The proof itself has no end. */
  readonly expiresAt: number
  /** Two digits that the signer compared. */
  readonly confirmationCode?: string
  readonly payloadHash?: string
  /** The payload in its canonical form (RFC 8785), if the text has it. */
  readonly payload?: string
  /** The requester's own words, which the signer saw. */
  readonly displayTitle?: string
  readonly displaySummary?: string
  /** CAIP-10 identifier of the account that signed, if the text names it. */
  readonly account?: string
}

const heading = ' requests approval'

/** The names of the lines below the heading. The first eight are always there. */
const lineNames = [
  'Action',
  'Origin',
  'Challenge ID',
  'Nonce',
  'Issued At',
  'Expires At',
  'Order ID',
  'Kind',
  'Code',
  'Payload Hash',
  'Payload',
  'Title',
  'Summary',
  'Account',
] as const

type LineName = (typeof lineNames)[number]

/**
 * Reads the text that a wallet signed for a sign order: the heading, then each line once, in any order.
 *
 * Throws a {@link ProofError} of MESSAGE_MALFORMED for every other text: that of a sign-in or of a login order, one
 * with a line that is missing, stands twice or is not known, and one with a character that no line can have, such as a
 * carriage return. A line that is not known may say under which condition the signer agreed, so it is never passed
 * over.
 */
export function readSignedText(message: string): SignedText {
  const [first = '', ...rest] = message.split('\n')
  if (!isPlainLine(message.replaceAll('\n', ''))) {
    throw malformed('has a control, text-direction or invisible character')
  }
  const appName = first.slice(0, -heading.length)
  if (!first.endsWith(heading) || appName === '') throw malformed('is not that of an order')
  const lines = new Map<LineName, string>()
  for (const line of rest) {
    const colon = line.indexOf(': ')
    const name = lineNames.find((one) => one === line.slice(0, Math.max(colon, 0)))
    const value = line.slice(colon + 2)
    if (name === undefined) throw malformed(`has a line that is not known: ${JSON.stringify(line.slice(0, 40))}`)
    if (lines.has(name)) throw malformed(`has the line ${name} twice`)
    if (value === '') throw malformed(`has nothing in the line ${name}`)
    lines.set(name, value)
  }
  const required = (name: LineName): string => {
    const value = lines.get(name)
    if (value === undefined) throw malformed(`has no line ${name}`)
    return value
  }
  if (required('Action') !== 'order.approve' || required('Kind') !== 'sign') {
    throw malformed('is not that of a sign order')
  }
  return {
    appName,
    origin: required('Origin'),
    orderId: required('Order ID'),
    challengeId: required('Challenge ID'),
    nonce: required('Nonce'),
    issuedAt: timeOf('Issued At', required('Issued At')),
    expiresAt: timeOf('Expires At', required('Expires At')),
    ...given({
      confirmationCode: lines.get('Code'),
      payloadHash: lines.get('Payload Hash'),
      payload: lines.get('Payload'),
      displayTitle: lines.get('Title'),
      displaySummary: lines.get('Summary'),
      account: lines.get('Account'),
    }),
  }
}

/** A time in the one spelling that the service writes. */
function timeOf(name: LineName, text: string): number {
  const time = Date.parse(text)
  if (!Number.isNaN(time) && new Date(time).toISOString() === text) return time
  throw malformed(`has no time of the form 2026-01-01T00:00:00.000Z in the line ${name}`)
}

function malformed(problem: string): ProofError {
  return new ProofError('MESSAGE_MALFORMED', `The signed text ${problem}`)
}
