import { randomUUID } from 'node:crypto'
import type { AuditCaller, AuditEvent, AuditFacts, AuditSink, AuditWallet } from './event.ts'

/** Tells the sinks what happened. Without any, it does nothing. */
export class AuditTrail {
  readonly #now: () => number
  readonly #sinks: readonly AuditSink[]

  /** `now` is the store's clock. */
  constructor(now: () => number, sinks: readonly AuditSink[]) {
    this.#now = now
    this.#sinks = sinks
  }

  /** Whether anybody listens. */
  get heard(): boolean {
    return this.#sinks.length > 0
  }

  /** Tells what happened after it has taken effect. Never throws. */
  tell(facts: AuditFacts, { ip, origin, userAgent }: AuditCaller): void {
    if (!this.heard) return
    const event = { id: randomUUID(), time: this.#now(), ip, origin, userAgent: userAgent || undefined, ...facts }
    for (const sink of this.#sinks) sink(event as AuditEvent)
  }
}

/** A trail that nobody listens to. */
export const noAudit: AuditTrail = new AuditTrail(Date.now, [])

/** A session, as far as events say it. */
interface SignedIn extends AuditWallet {
  readonly id: string
  readonly userId: string
}

/** That a wallet signed in; with an order if that made the session. */
export function signedInFacts(
  { id, userId, adapterId, address, publicKeyHex }: SignedIn,
  order: { readonly orderId?: string; readonly repeated?: boolean } = {},
): AuditFacts {
  return { type: 'sign_in.succeeded', userId, sessionId: id, adapterId, address, publicKeyHex, ...order }
}
