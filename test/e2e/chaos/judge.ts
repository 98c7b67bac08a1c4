import type { Answer, Ledger, NonceEntry, OrderAnswer, OrderCall, OrderEntry, WatchEntry } from './ledger.ts'

/** A promise of the service that was not kept. */
export interface Violation {
  readonly kind:
    | 'nonce used twice'
    | 'nonce lost'
    | 'session gone'
    | 'two verdicts'
    | 'two sessions of an order'
    | 'order lost'
    | 'step of an order undone'
    | 'event doubled'
    | 'event missed'
    | 'event undone'
    | 'end of an order not told'
    | 'error that no retry cures'
  readonly detail: string
  /** Answers that turned out to be wrong: at least one of them acknowledged a write that is gone. */
  readonly believed: readonly Pick<Answer, 'sentAt' | 'answeredAt'>[]
}

/** A master that ended or was frozen, so that it could not replicate what it had acknowledged last. */
export interface Death {
  /** When the master was killed or frozen. */
  readonly at: number
  /** When a frozen one continued. It has been replaced by then. */
  readonly resumedAt?: number
}

/** Violations that asynchronous replication explains, and all others. */
export interface Verdict {
  /**
   * The write was acknowledged just before its master died, and the replica that took its place had not received it.
   */
  readonly notReplicated: Violation[]
  readonly unexplained: Violation[]
}

/** Outcomes after which the call may or may not have taken effect. */
const ambiguous: ReadonlySet<string> = new Set(['STORE_UNAVAILABLE', 'NETWORK'])

/** Outcomes after which a caller comes again. */
export function isRetryable(outcome: string): boolean {
  return ambiguous.has(outcome) || outcome === 'SERVER_BUSY'
}

/**
 * How long before the death of its master a write may have been acknowledged that was not replicated, in milliseconds.
 */
const replicationLagMs = 1000

/** Names each violation in a ledger, and says which of them the deaths of masters explain. */
export function judge(ledger: Ledger, deaths: readonly Death[]): Verdict {
  const verdict: Verdict = { notReplicated: [], unexplained: [] }
  for (const violation of violationsOf(ledger)) {
    const explained = deaths.some((death) => violation.believed.some((answer) => explains(death, answer)))
    verdict[explained ? 'notReplicated' : 'unexplained'].push(violation)
  }
  return verdict
}

/**
 * Whether an answer can be of a write that its master acknowledged just before it died: the call was made before that.
 * An answer that came after a frozen master continued is not excused: the service can know by then that it has been
 * replaced.
 */
function explains(
  { at, resumedAt = Number.POSITIVE_INFINITY }: Death,
  { sentAt, answeredAt }: Violation['believed'][0],
) {
  return sentAt <= at && answeredAt >= at - replicationLagMs && answeredAt < resumedAt
}

function violationsOf({ nonces, orders, sessions, unmade }: Ledger): Violation[] {
  return [
    ...unmade.flatMap((answer) => judgeError('a call', answer)),
    ...nonces.flatMap(judgeNonce),
    ...orders.flatMap(judgeOrder),
    ...[...sessions.values()].flatMap(({ acknowledged, known }, i): Violation[] => {
      if (known.every(Boolean)) return []
      const detail = `session ${i} is ${known.map((one) => (one ? 'known' : 'unknown')).join(' and ')}`
      return [{ kind: 'session gone', detail, believed: [acknowledged] }]
    }),
  ]
}

function judgeError(what: string, answer: Answer): Violation[] {
  if (answer.outcome === 'OK' || isRetryable(answer.outcome)) return []
  return [{ kind: 'error that no retry cures', detail: `${what}: ${answer.outcome}`, believed: [] }]
}

/**
 * A nonce is used once. Whoever else comes with it gets NONCE_NOT_FOUND, which is also the honest answer if nobody has
 * a session but one use ended in doubt: the nonce may have been taken before the answer was lost. If no other use can
 * have taken it, it was lost.
 */
function judgeNonce({ nonceId, issued, uses }: NonceEntry): Violation[] {
  const sessions = uses.filter(({ outcome }) => outcome === 'OK')
  if (sessions.length > 1) {
    const [first] = sessions.toSorted((a, b) => a.answeredAt - b.answeredAt)
    return [{ kind: 'nonce used twice', detail: `${nonceId}: ${outcomesOf(uses)}`, believed: [first!] }]
  }
  const lost = uses.some(
    (use) =>
      use.outcome === 'NONCE_NOT_FOUND' && !uses.some((other) => mayHaveTaken(other) && other.sentAt <= use.answeredAt),
  )
  return [
    ...(lost ? [{ kind: 'nonce lost', detail: `${nonceId}: ${outcomesOf(uses)}`, believed: [issued] } as const] : []),
    ...uses
      .filter(({ outcome }) => outcome !== 'NONCE_NOT_FOUND')
      .flatMap((use) => judgeError(`use of nonce ${nonceId}`, use)),
  ]
}

function mayHaveTaken({ outcome }: Answer): boolean {
  return outcome === 'OK' || ambiguous.has(outcome)
}

function outcomesOf(answers: readonly Answer[]): string {
  return answers.map(({ outcome }) => outcome).join(', ')
}

/** The status that an order has, or had, if a call about it succeeds. */
const statusOfCall: Readonly<Record<OrderCall, string>> = {
  claim: 'claimed',
  challenge: 'waiting_user',
  approve: 'approved',
  reject: 'rejected',
  cancel: 'cancelled',
  finalize: 'finalized',
}

/** The status that an order has, or had, if a call about it is refused with a reason. */
const statusOfRefusal: Readonly<Record<string, string>> = {
  ORDER_ALREADY_CLAIMED: 'claimed',
  ORDER_ALREADY_APPROVED: 'approved',
  ORDER_REJECTED: 'rejected',
  ORDER_CANCELLED: 'cancelled',
  ORDER_FINALIZED: 'finalized',
  ORDER_EXPIRED: 'expired',
}

/** Refusals that the callers of a run, who go step by step, get only if a step that was acknowledged is undone. */
const refusalsOfUndone: ReadonlySet<string> = new Set([
  'ORDER_TOKEN_INVALID',
  'ORDER_CHALLENGE_NOT_READ',
  'ORDER_NOT_APPROVED',
])

const ends: ReadonlySet<string> = new Set(['rejected', 'cancelled', 'finalized', 'expired'])

function judgeOrder(order: OrderEntry): Violation[] {
  const { orderId, started, calls, watches, histories } = order
  const history = histories.find((one) => one !== undefined)
  if (history === undefined || histories.some((one) => one === undefined)) {
    return [{ kind: 'order lost', detail: orderId, believed: [started, ...calls] }]
  }
  return [
    ...judgeVerdicts(order, history),
    ...calls.flatMap((answer) => judgeCall(orderId, answer, history, calls)),
    ...histories.flatMap((other): Violation[] =>
      String(other) === String(history)
        ? []
        : [{ kind: 'two verdicts', detail: `${orderId}: ${history} and ${other}`, believed: [] }],
    ),
    ...watches.flatMap((watch) => judgeWatch(order, watch, history)),
  ]
}

/** At most one end and at most one session, whatever the answers were. */
function judgeVerdicts({ orderId, calls }: OrderEntry, history: readonly string[]): Violation[] {
  const told = calls.filter((answer) => isVerdict(statusTold(answer)))
  const believed = told.filter((answer) => !history.includes(statusTold(answer)!))
  const verdicts = new Set(told.map(statusTold))
  const contradictory = [...verdicts].filter((status) => ends.has(status!)).length > 1
  const detail = `${orderId}: ${calls.map(({ call, outcome }) => `${call} ${outcome}`).join(', ')}`
  const tokens = new Set(calls.map(({ token }) => token).filter((token) => token !== undefined))
  return [
    ...(contradictory ? [{ kind: 'two verdicts', detail, believed } as const] : []),
    ...(tokens.size > 1 ? [{ kind: 'two sessions of an order', detail, believed } as const] : []),
  ]
}

function isVerdict(status: string | undefined): boolean {
  return status !== undefined && (status === 'approved' || ends.has(status))
}

/** The status that the order has, or had, according to an answer. */
function statusTold({ call, outcome }: OrderAnswer): string | undefined {
  return outcome === 'OK' ? statusOfCall[call] : statusOfRefusal[outcome]
}

function judgeCall(
  orderId: string,
  answer: OrderAnswer,
  history: readonly string[],
  calls: readonly OrderAnswer[],
): Violation[] {
  const { call, outcome } = answer
  const told = statusTold(answer)
  const undone = { kind: 'step of an order undone', detail: `${orderId}: ${call} ${outcome}, then ${history}` } as const
  if (told !== undefined) return history.includes(told) ? [] : [{ ...undone, believed: [answer] }]
  if (refusalsOfUndone.has(outcome)) {
    return [
      { ...undone, believed: calls.filter((other) => other.outcome === 'OK' && other.sentAt < answer.answeredAt) },
    ]
  }
  return judgeError(`${call} of order ${orderId}`, answer)
}

/** Every transition once, in order, to the end. */
function judgeWatch({ orderId }: OrderEntry, { seen, failures }: WatchEntry, history: readonly string[]): Violation[] {
  const detail = `${orderId}: ${seen.map(({ sequence, status }) => `${sequence} ${status}`).join(', ')}; in truth ${history}`
  const undone = seen.filter(({ sequence, status }) => history[sequence - 1] !== status)
  const believed = undone.map(({ receivedAt }) => ({ sentAt: receivedAt, answeredAt: receivedAt }))
  const sequences = seen.map(({ sequence }) => sequence)
  const doubled =
    new Set(sequences).size < sequences.length || sequences.some((one, i) => one < (sequences[i - 1] ?? 0))
  const missed = sequences.some((one, i) => one > (sequences[i - 1] ?? 0) + 1)
  const untold = seen.at(-1)?.status !== history.at(-1)
  return [
    ...failures
      .flatMap((failure) => judgeError(`watch of order ${orderId}`, failure))
      .map((one) => ({ ...one, believed })),
    ...(doubled ? [{ kind: 'event doubled', detail, believed } as const] : []),
    ...(missed ? [{ kind: 'event missed', detail, believed } as const] : []),
    ...(undone.length > 0 ? [{ kind: 'event undone', detail, believed } as const] : []),
    ...(untold ? [{ kind: 'end of an order not told', detail, believed } as const] : []),
  ]
}
