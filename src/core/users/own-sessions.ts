import { type AuditTrail, noAudit } from '../../base/audit.ts'
import type { RequestContext } from '../../base/request.ts'
import { CountersignError, refused } from '../../shared/errors.ts'
import { type KnownComputer, reaches } from '../../shared/session.ts'
import type { KnownComputers } from '../order/known-computers.ts'
import { type WalletIdentity, walletOf } from '../wallet/wallet.ts'
import type { Host, Session } from './host.ts'
import type { SessionEnds } from './sessions.ts'

/** Parts of {@link OwnSessions} in addition to the host. */
export interface OwnSessionsParts {
  /** Without them, the calls for known computers are NOT_ENABLED, and ending a session forgets none. */
  readonly computers?: KnownComputers | undefined
  /** Wallets whose computers the user of a session sees. Default: the session's own wallet. */
  readonly walletsOf?: ((session: Session) => Promise<readonly WalletIdentity[]>) | undefined
  /** Hook for sessions that are ended with all others. Default: nothing outlives a session. */
  readonly sessionEnds?: Pick<SessionEnds, 'taken'> | undefined
  /**
   * Ends a session of a user without what outlives a sign-out, which {@link OwnSessions.revokeOthers} ends for all
   * sessions at once. Default: the host's `revokeSession`.
   */
  readonly endSession?: ((userId: string, id: string) => Promise<boolean>) | undefined
  /** Audit trail of sessions that users end from another one, and of forgotten computers. Without it, none is kept. */
  readonly audit?: AuditTrail | undefined
}

/** What users do with their sessions and known computers, from `own`, the session of the request. */
export class OwnSessions {
  readonly #host: Host
  readonly #parts: OwnSessionsParts
  readonly #audit: AuditTrail

  constructor(host: Host, parts: OwnSessionsParts) {
    this.#host = host
    this.#parts = parts
    this.#audit = parts.audit ?? noAudit
  }

  /** Ends another session of the user. SESSION_NOT_FRESH if {@link reaches} denies it. */
  async revoke(own: Session, sessionId: string, request: RequestContext): Promise<void> {
    const { computers, sessionEnds } = this.#parts
    const session = (await this.#host.listSessions(own.userId, request)).find(({ id }) => id === sessionId)
    if (session === undefined) {
      // A call that failed right after the session's end may have left what outlives a sign-out.
      await sessionEnds?.taken({ userId: own.userId, id: sessionId, fits: (past) => reaches(own, past) })
      throw refused('SESSION_NOT_FOUND')
    }
    if (!reaches(own, session)) throw sessionOutOfReach()
    // First: if the call fails in between, a retry finds the session and ends it. The other way round, the retry would
    // not find it, and the computer would stay known.
    if (computers !== undefined) await forgetComputerOf(session, computers)
    if (!(await this.#end(own, sessionId, request))) throw refused('SESSION_NOT_FOUND')
  }

  /** Ends all other sessions that {@link reaches} allows. Resolves with how many were live. */
  async revokeOthers(own: Session, request: RequestContext): Promise<number> {
    const { computers, sessionEnds, endSession } = this.#parts
    const { userId, id: sessionId } = own
    const fits = (session: Pick<Session, 'id' | 'orderId'>) => session.id !== own.id && reaches(own, session)
    const others = (await this.#host.listSessions(userId, request)).filter(fits)
    // First, as above; and after the list was read: no order of a listed session makes its computer known later.
    if (computers !== undefined) await this.#forgetOtherComputers(own, others, computers)
    const endOutliving = async () => await sessionEnds?.taken({ userId, fits })
    // Before and after, as with each session that is revoked by itself.
    await endOutliving()
    const revoked = await Promise.all(others.map(({ id }) => this.#end(own, id, request, endSession)))
    await endOutliving()
    if (computers !== undefined) this.#audit.record({ type: 'computer.forgotten', userId, sessionId }, request)
    return revoked.filter(Boolean).length
  }

  /** Refuses with NOT_ENABLED unless computers are remembered. */
  requireComputers(): KnownComputers {
    if (this.#parts.computers !== undefined) return this.#parts.computers
    throw new CountersignError('NOT_ENABLED', 'This service does not remember computers')
  }

  /** The known computers of the user's wallets, newest first. */
  async listComputers(own: Session): Promise<KnownComputer[]> {
    const computers = this.requireComputers()
    const lists = await Promise.all((await this.#walletsOf(own)).map((wallet) => computers.list(wallet)))
    const newestFirst = lists.flat().sort((a, b) => b.createdAt - a.createdAt)
    return newestFirst.map((computer) => ({ ...computer, current: computer.id === own.computerId }))
  }

  /** Forgets a known computer of the user's wallets. */
  async forgetComputer(own: Session, computerId: string, request: RequestContext): Promise<void> {
    const computers = this.requireComputers()
    const wallets = await this.#walletsOf(own)
    const forgotten = await Promise.all(wallets.map((wallet) => computers.forget(wallet, computerId)))
    if (!forgotten.includes(true)) throw refused('COMPUTER_NOT_FOUND')
    const { userId, id: sessionId } = own
    this.#audit.record({ type: 'computer.forgotten', computerId, userId, sessionId }, request)
  }

  async #end(
    { userId, id: bySessionId }: Session,
    sessionId: string,
    request: RequestContext,
    end: Host['revokeSession'] = (...session) => this.#host.revokeSession(...session),
  ): Promise<boolean> {
    const ended = await end(userId, sessionId, request)
    if (ended) this.#audit.record({ type: 'session.ended', by: 'user', userId, sessionId, bySessionId }, request)
    return ended
  }

  /** Forgets the computers of the user's wallets and of the sessions' wallets, except the one of the own session. */
  async #forgetOtherComputers(own: Session, others: readonly Session[], computers: KnownComputers): Promise<void> {
    const all = [...(await this.#walletsOf(own)), ...[own, ...others].map(walletOf)]
    const distinct = new Map(all.map((wallet) => [JSON.stringify([wallet.adapterId, wallet.subject]), wallet]))
    await Promise.all([...distinct.values()].map((wallet) => computers.forgetOthers(wallet, own.computerId)))
  }

  async #walletsOf(session: Session): Promise<readonly WalletIdentity[]> {
    return (await this.#parts.walletsOf?.(session)) ?? [walletOf(session)]
  }
}

/** Refusal for a session that an order made, which may not end a session of a direct sign-in. */
function sessionOutOfReach(): CountersignError {
  return new CountersignError(
    'SESSION_NOT_FRESH',
    'You signed in with another device, which is not enough to end a sign-in that was made directly; sign in on ' +
      'this device, then try again',
  )
}

/** Forgets the computer that a session came from, if it came from one. */
export async function forgetComputerOf(session: Session | undefined, computers: KnownComputers): Promise<void> {
  if (session?.computerId === undefined) return
  const wallet = walletOf(session)
  // The order may be making the computer known at this moment.
  if (session.orderId !== undefined) await computers.forgetOfOrder(wallet, session.computerId, session.orderId)
  else await computers.forget(wallet, session.computerId)
}
