import { randomUUID } from 'node:crypto'
import type { OrderKind } from '../shared/orders.ts'

/**
 * Something that happened, recorded so that a break-in can be reconstructed: who did what, from where, to which order,
 * session or wallet. It has no token, nonce, code, signature or secret.
 *
 * Fields that are absent do not apply or are unknown. Times are epoch milliseconds.
 */
export type AuditEvent = {
  /** Unique id of the event: a receiver that gets an event twice recognises it by the id. */
  readonly id: string
  /** Time by the store's clock. */
  readonly time: number
} & AuditCaller &
  AuditFacts

/** Who made the call. */
export interface AuditCaller {
  /** IP address of the client. */
  readonly ip?: string | undefined
  /** The caller's origin; see `RequestContext.origin`. */
  readonly origin?: string | undefined
  readonly userAgent?: string | undefined
}

/** A wallet. Its control is proven in all events but the refusals, where it is what the caller claims. */
export interface AuditWallet {
  readonly adapterId: string
  readonly address: string
  /** Empty if the adapter knows wallets by their address only. */
  readonly publicKeyHex: string
}

/** An order and what it is for. */
export interface AuditOrder {
  readonly orderId: string
  readonly kind: OrderKind
}

/** A session of a user. */
export interface AuditSession {
  readonly userId: string
  readonly sessionId: string
}

/** An order that made a session or brought a wallet, if one did. */
export interface AuditMaker {
  readonly orderId?: string | undefined
}

/** Result of an order, if known. */
export interface AuditOutcome extends AuditOrder, AuditWallet {
  readonly userId?: string | undefined
  readonly sessionId?: string | undefined
}

/** What happened. */
export type AuditFacts =
  /** A wallet signed in. `orderId` is there if an order made the session. */
  | ({
      readonly type: 'sign_in.succeeded'
      /**
       * Whether the order was finalized by an earlier call: this one fetched the session's token again, within 60
       * seconds.
       */
      readonly repeated?: boolean | undefined
    } & AuditSession &
      AuditMaker &
      AuditWallet)
  /** A signature over a challenge was refused: at the sign-in, when a wallet was to be linked, or on the phone. */
  | ({ readonly type: 'challenge.refused' } & AuditRefusal)
  /** Any other call was refused with a reason that can indicate an attack. */
  | ({ readonly type: 'call.refused' } & AuditRefusal)
  /** A client was turned away because of a limit or a ceiling. */
  | ({ readonly type: 'limit.hit' } & AuditRefusal)
  /** `startedBy` is the name of the start key, if it has one. */
  | ({
      readonly type: 'order.started'
      readonly startedWithKey?: boolean | undefined
      readonly startedBy?: string | undefined
    } & AuditOrder)
  /** An order waits for the approval of this user. The address is for the user, and has no token. */
  | {
      readonly type: 'order.addressed'
      readonly orderId: string
      readonly userId: string
      readonly title?: string | undefined
      readonly approvalUrl: string
    }
  | ({ readonly type: 'order.claimed' } & AuditOrder)
  /** The phone got the text to sign, for the first time. */
  | ({ readonly type: 'order.challenge_read' } & AuditOrder)
  /** The phone made a ticket to go on in another browser. */
  | ({ readonly type: 'order.handed_over' } & AuditOrder)
  /** Another browser took the order over with a ticket. */
  | ({ readonly type: 'order.continued' } & AuditOrder)
  /** A wrong return code was entered on the desktop. */
  | ({ readonly type: 'order.code_refused'; readonly triesLeft: number } & AuditOrder)
  | ({ readonly type: 'order.approved' } & AuditOrder & AuditWallet)
  /** `by` is who ended the order: the phone's user, or three wrong codes. */
  | ({ readonly type: 'order.rejected'; readonly by: 'phone' | 'wrong codes' } & AuditOrder)
  | ({ readonly type: 'order.cancelled' } & AuditOrder)
  /**
   * The desktop got the result. Of a login, `sessionId` is the session that is made of it, unless its host does not
   * tell before; of a link, the one that started the order.
   */
  | ({ readonly type: 'order.finalized' } & AuditOutcome)
  /** The phone's user took a finalized login or link back. */
  | ({ readonly type: 'order.taken_back' } & AuditOutcome)
  /**
   * A session ended before its time. `by` is how: its user signed out, its user ended it from another session
   * (`bySessionId`), its order was taken back, its wallet was unlinked.
   */
  | ({
      readonly type: 'session.ended'
      readonly by: 'sign-out' | 'user' | 'take-back' | 'unlink'
      readonly bySessionId?: string | undefined
    } & AuditSession &
      AuditMaker)
  /** `orderId` is there if an order brought the wallet. */
  | ({ readonly type: 'wallet.linked' } & AuditSession & AuditMaker & AuditWallet)
  /** `orderId` is there if the phone's user took that order back; `sessionId` is then the one that started it. */
  | ({ readonly type: 'wallet.unlinked' } & AuditSession & AuditMaker & AuditWallet)
  /** A computer needs no return code for this wallet from now on. */
  | ({ readonly type: 'computer.remembered'; readonly computerId: string; readonly orderId: string } & AuditWallet)
  /** A user let computers be forgotten; without `computerId`, all but the one of the user's own session. */
  | ({ readonly type: 'computer.forgotten'; readonly computerId?: string | undefined } & AuditSession)
  /** A user let an application act for the user by OpenID Connect. */
  | ({
      readonly type: 'app.connected'
      readonly clientId: string
      /** What the user allowed, with spaces between. */
      readonly scope: string
    } & AuditSession)
  /** A user disconnected an application: all that it held is dead. */
  | ({ readonly type: 'app.disconnected'; readonly clientId: string } & AuditSession)
  /** A code or refresh token came a second time. All that the application held of this grant is dead. */
  | {
      readonly type: 'app.token_replayed'
      readonly userId: string
      readonly clientId: string
      readonly what: 'code' | 'refresh token'
    }
  /** An operator changed something with `countersign admin`. Of a deletion, the user is not named. */
  | {
      readonly type: 'operator.acted'
      /** Name of the command, such as `block`. */
      readonly action: string
      readonly userId?: string | undefined
      readonly sessionId?: string | undefined
      readonly adapterId?: string | undefined
      readonly address?: string | undefined
    }

/** A call that was refused. */
export interface AuditRefusal {
  /** The error's reason, such as SIGNATURE_INVALID. */
  readonly reason: string
  /** Name of the limit, such as `sign-in`. Only of RATE_LIMITED. */
  readonly limit?: string | undefined
  /** Full name of the RPC, such as `countersign.v1.SignInService/VerifySignIn`. */
  readonly method: string
  /**
   * Number of equal events of the address in this one, if more than one: at most one a second is recorded.
   */
  readonly repeated?: number | undefined
  /** What the call named. Nothing of it is proven. */
  readonly orderId?: string | undefined
  readonly adapterId?: string | undefined
  readonly address?: string | undefined
}

/** Every type of event. */
export type AuditEventType = AuditFacts['type']

/**
 * Receives audit events as they happen. It must not throw; what it does takes the time of the call that it reports.
 */
export type AuditSink = (event: AuditEvent) => void

/**
 * A function of the application that receives audit events. It is not waited for, and what it returns is not looked at.
 */
export type AuditEventHook = (event: AuditEvent) => unknown

/** Passes events to the sinks. Without sinks, it does nothing. */
export class AuditTrail {
  readonly #now: () => number
  readonly #sinks: readonly AuditSink[]

  /** `now` is the store's clock. */
  constructor(now: () => number, sinks: readonly AuditSink[]) {
    this.#now = now
    this.#sinks = sinks
  }

  /** Records what has taken effect. Never throws. */
  record(facts: AuditFacts, { ip, origin, userAgent }: AuditCaller): void {
    if (this.#sinks.length === 0) return
    const event = { id: randomUUID(), time: this.#now(), ip, origin, userAgent: userAgent || undefined, ...facts }
    for (const sink of this.#sinks) sink(event as AuditEvent)
  }
}

/** A trail without listeners. */
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
