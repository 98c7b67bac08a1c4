/**
 * What the callers of a chaos run saw: every answer of the services, with its times. Times are milliseconds of
 * `performance.now()`.
 */

/** An answer to one call. A call that is repeated has one answer for each try. */
export interface Answer {
  readonly sentAt: number
  readonly answeredAt: number
  /** `OK`, a reason, or `NETWORK` if no answer arrived. */
  readonly outcome: string
}

/** An answer that may bring a session. */
export interface SessionAnswer extends Answer {
  readonly token?: string
}

/** A nonce that was issued, and each use of it. */
export interface NonceEntry {
  readonly nonceId: string
  readonly issued: Answer
  readonly uses: SessionAnswer[]
}

/** Calls that change an order, or read its challenge. */
export type OrderCall = 'claim' | 'challenge' | 'approve' | 'reject' | 'cancel' | 'finalize'

/** An answer to a call about an order. */
export interface OrderAnswer extends SessionAnswer {
  readonly call: OrderCall
}

/** A transition of an order, as a watcher was told. */
export interface SeenEvent {
  readonly sequence: number
  readonly status: string
  readonly receivedAt: number
}

/** A watch of an order: one after the other, the events of all its streams. */
export interface WatchEntry {
  readonly seen: SeenEvent[]
  /** Answers other than a stream of events. */
  readonly failures: Answer[]
}

/** An order that was started, each call about it, and its watches. */
export interface OrderEntry {
  readonly orderId: string
  readonly started: Answer
  readonly calls: OrderAnswer[]
  readonly watches: WatchEntry[]
  /** The statuses of its whole history as each instance tells it at the end; undefined if the order is not there. */
  readonly histories: (readonly string[] | undefined)[]
}

/** A session whose token a caller got, and what became of it. */
export interface SessionEntry {
  readonly acknowledged: Answer
  /** For each instance, whether it knows the session at the end. */
  readonly known: boolean[]
}

/** Everything that the callers of one run saw. */
export interface Ledger {
  readonly nonces: NonceEntry[]
  readonly orders: OrderEntry[]
  /** By token. */
  readonly sessions: Map<string, SessionEntry>
  /** Answers to calls of which nothing is kept: nonces and orders that were not made. */
  readonly unmade: Answer[]
}

export function newLedger(): Ledger {
  return { nonces: [], orders: [], sessions: new Map(), unmade: [] }
}

/** Notes the session of an answer that has one. */
export function noteSession(ledger: Ledger, answer: SessionAnswer): void {
  if (answer.token === undefined || ledger.sessions.has(answer.token)) return
  ledger.sessions.set(answer.token, { acknowledged: answer, known: [] })
}
