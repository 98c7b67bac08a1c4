import { createHmac } from 'node:crypto'
import type { AuthContext, GenericEndpointContext } from '@better-auth/core'
import { runWithTransaction } from '@better-auth/core/context'
import type { Session as AuthSession } from 'better-auth'
import { parseCookies } from 'better-auth/cookies'
import { symmetricDecrypt, symmetricEncrypt } from 'better-auth/crypto'
import { bearerToken, type RequestContext } from '../base/request.ts'
import { equalInConstantTime, newToken, tokenFromBytes } from '../base/token.ts'
import type { OrderGrant, OrderSession, Session } from '../core/users/host.ts'
import { orderSessionEnded } from '../core/users/sessions.ts'
import type { ProvenIdentity } from '../core/wallet/wallet.ts'
import { refused } from '../shared/errors.ts'
import { KeyedLock, Marks } from './once-marks.ts'
import type { sessionFields } from './schema.ts'

/** One for the process: the memory adapter, which needs it, is known to one process only. */
const lock = new KeyedLock()

/**
 * Time for which the marks of an order's session are kept, in ms. Longer than any retry of a finalize (60 s) and any
 * request in flight can last, so that neither creates a session again that was ended.
 */
const markedMs = 10 * 60_000

/**
 * Age in ms up to which an order's session may be taken back by a call that is not over. An order can be taken back for
 * ten minutes after it was finalized.
 */
const takeBackMs = 15 * 60_000

/**
 * Time for which an order's token is kept, in ms. Longer than an order is remembered after it was finalized, and can be
 * taken back, which is ten minutes.
 */
const keptMs = 20 * 60_000

/** Marks of an order's session, and the name of its token. */
const marksOf = (orderId: string) => ({
  /** It was made, or must not be made any more. */
  made: `order-session:${orderId}`,
  /** The order was taken back. */
  takenBack: `order-session-taken-back:${orderId}`,
  /** It was live when the order was taken back. */
  wasLive: `order-session-was-live:${orderId}`,
  token: `countersign:order-session:${orderId}`,
})

/** A session of Better Auth with what the plugins' schema adds. */
export type WalletSession = AuthSession & { readonly [Name in keyof typeof sessionFields]?: string | null }

/** What a new session is made from. */
interface NewSession {
  readonly userId: string
  readonly identity: ProvenIdentity
  readonly request: RequestContext
  readonly order?: OrderGrant | undefined
}

/** Sessions that Better Auth makes and keeps. */
export class WalletSessions {
  readonly #context: AuthContext
  readonly #marks: Marks

  constructor(context: AuthContext) {
    this.#context = context
    this.#marks = new Marks(context)
  }

  /** Creates a session. With `order`, at most one for each order: see `Host.createSession`. */
  async create(details: NewSession): Promise<WalletSession> {
    const { userId, order } = details
    // One after the other for each user: Better Auth's list of them in secondary storage is read, changed and written
    // back.
    return await lock.run(userId, () => {
      if (order === undefined) return this.#make(details, newToken('session'))
      return this.#makeOnce(details, order, tokenFromBytes('session', order.seed))
    })
  }

  /** The live session of a token's part before the dot. */
  async find(token: string): Promise<WalletSession | undefined> {
    const found = await this.#context.internalAdapter.findSession(token)
    return found !== null && found.session.expiresAt.getTime() > Date.now() ? found.session : undefined
  }

  /** The live sessions of a user, newest first. */
  async list(userId: string): Promise<WalletSession[]> {
    const sessions = await this.#context.internalAdapter.listSessions(userId, { onlyActiveSessions: true })
    return sessions
      .filter(({ expiresAt }) => new Date(expiresAt).getTime() > Date.now())
      .sort((a, b) => new Date(b.createdAt).getTime() - new Date(a.createdAt).getTime() || (a.id < b.id ? -1 : 1))
  }

  /** Ends a session. Does nothing if it has ended. */
  async end(token: string): Promise<void> {
    await this.#context.internalAdapter.deleteSession(token)
  }

  /**
   * Ends the session of an order, which may be in the making: see `Host.endOrderSession`. Who makes it looks for the
   * mark after the session is stored, and this looks for the session after the mark is stored; so at least one of them
   * sees the other's, and ends the session.
   */
  async endOfOrder({ orderId, userId }: OrderSession): Promise<boolean> {
    return await lock.run(userId, async () => {
      await this.#marks.sweep()
      const { made, takenBack, wasLive } = marksOf(orderId)
      const until = new Date(Date.now() + markedMs)
      await this.#marks.make(takenBack, until)
      // On an adapter that knows transactions, a session that is not stored yet is now never stored.
      await this.#marks.make(made, until)
      for (const token of await this.#tokensOfOrder(orderId, userId)) {
        // Before the end, so that a repeated call says the same, also after a crash.
        if ((await this.find(token)) !== undefined) await this.#marks.make(wasLive, until)
        await this.end(token)
      }
      return await this.#marks.has(wasLive)
    })
  }

  /**
   * Ends a session again if its order was taken back, after a call that was served with it. In secondary storage,
   * Better Auth reads a session and writes it back in two steps, and would bring back one that was ended in between.
   */
  async endIfTakenBack({ token, walletOrderId, createdAt }: WalletSession): Promise<void> {
    if (!walletOrderId || Date.now() > new Date(createdAt).getTime() + takeBackMs) return
    if (await this.#marks.has(marksOf(walletOrderId).takenBack)) await this.end(token)
  }

  async #makeOnce(details: NewSession, { orderId }: OrderGrant, token: string): Promise<WalletSession> {
    const session = await this.#findOrMake(details, orderId, token)
    if (!(await this.#marks.has(marksOf(orderId).takenBack))) return session
    await this.end(token)
    throw orderSessionEnded()
  }

  /**
   * The session's token is unique in the database, and so is the mark that it was made: the two are written together,
   * and if either exists, the order has had its session.
   */
  async #findOrMake(details: NewSession, orderId: string, token: string): Promise<WalletSession> {
    const existing = await this.find(token)
    if (existing !== undefined) return existing
    const { made: mark } = marksOf(orderId)
    if (await this.#marks.has(mark)) return await this.#findMarked(token)
    await this.#marks.sweep()
    if (!this.#inDatabase) await this.#keepToken(orderId, token)
    let made: WalletSession | undefined
    try {
      return await this.#inTransaction(async () => {
        made = await this.#make(details, token)
        await this.#marks.insert(mark, new Date(Date.now() + markedMs))
        return made
      })
    } catch (cause) {
      const found = await this.find(token)
      // Written without its mark, on an adapter that knows no transactions: it is one too many when the mark is
      // another's, since the session that had the token was ended then, and could come back later when there is no mark
      // at all.
      if (found !== undefined && found.id === made?.id && this.#inDatabase) await this.end(token)
      // Another instance was faster. Secondary storage alone does not refuse a second session; there they are the same.
      else if (found !== undefined) return found
      if (await this.#marks.has(mark)) return await this.#findMarked(token)
      throw cause
    }
  }

  /**
   * The session whose mark is there. It is looked for after the mark was seen: before that, another instance may have
   * been about to write both. When it is not there now, it was ended.
   */
  async #findMarked(token: string): Promise<WalletSession> {
    const found = await this.find(token)
    if (found === undefined) throw orderSessionEnded()
    return found
  }

  /**
   * The tokens that an order's session can have. From where the sessions are, so that the two are lost only together.
   */
  async #tokensOfOrder(orderId: string, userId: string): Promise<string[]> {
    if (!this.#inDatabase) return await this.#keptTokens(orderId)
    const rows = await this.#context.adapter.findMany<AuthSession>({
      model: 'session',
      where: [
        { field: 'userId', value: userId },
        { field: 'walletOrderId', value: orderId },
      ],
    })
    return rows.map(({ token }) => token)
  }

  /**
   * Keeps the token of an order's session that is about to be made, encrypted, in Better Auth's verification values:
   * secondary storage finds a session by its token only, and its list of a user's sessions can lose one if two
   * instances change it at once.
   */
  async #keepToken(orderId: string, token: string): Promise<void> {
    const { internalAdapter, secretConfig } = this.#context
    await internalAdapter.createVerificationValue({
      identifier: marksOf(orderId).token,
      value: await symmetricEncrypt({ key: secretConfig, data: token }),
      expiresAt: new Date(Date.now() + keptMs),
    })
  }

  async #keptTokens(orderId: string): Promise<string[]> {
    const { internalAdapter, secretConfig } = this.#context
    const kept = await internalAdapter.findVerificationValue(marksOf(orderId).token)
    return kept === null ? [] : [await symmetricDecrypt({ key: secretConfig, data: kept.value })]
  }

  async #make({ userId, identity, request, order }: NewSession, token: string): Promise<WalletSession> {
    const session: WalletSession | null = await this.#context.internalAdapter.createSession(
      userId,
      false,
      {
        token,
        ipAddress: request.ip ?? '',
        userAgent: request.userAgent,
        walletAdapterId: identity.adapterId,
        walletSubject: identity.subject,
        walletPublicKeyHex: identity.publicKeyHex,
        walletAddress: identity.address,
        walletOrderId: order?.orderId ?? null,
        walletComputerId: order?.computerId ?? null,
      },
      true,
      { deferSecondaryStorageWrites: this.#inDatabase },
    )
    // A hook of the application answers false for one it does not want.
    if (session === null) throw refused('LOGIN_REFUSED')
    return session
  }

  /** Whether the database has the sessions, and not secondary storage alone. */
  get #inDatabase(): boolean {
    const { secondaryStorage, session } = this.#context.options
    return secondaryStorage === undefined || session?.storeSessionInDatabase === true
  }

  async #inTransaction<T>(task: () => Promise<T>): Promise<T> {
    return this.#inDatabase ? await runWithTransaction(this.#context.adapter, task) : await task()
  }
}

/** A session as the domain sees it. The wallet's fields are empty if it was made without a wallet. */
export function sessionOf(session: WalletSession): Session {
  const { id, userId, createdAt, expiresAt, ipAddress, userAgent, walletOrderId, walletComputerId } = session
  return {
    id,
    userId,
    adapterId: session.walletAdapterId ?? '',
    ...(session.walletSubject ? { subject: session.walletSubject } : {}),
    publicKeyHex: session.walletPublicKeyHex ?? '',
    address: session.walletAddress ?? '',
    createdAt: new Date(createdAt).getTime(),
    expiresAt: new Date(expiresAt).getTime(),
    ...(walletOrderId ? { orderId: walletOrderId } : {}),
    ip: ipAddress ?? '',
    userAgent: userAgent ?? '',
    ...(walletComputerId ? { computerId: walletComputerId } : {}),
  }
}

/** A token in the form of Better Auth's cookie, which its bearer plugin also accepts with `requireSignature`. */
export function signedToken(token: string, { secret }: AuthContext): string {
  return `${token}.${signatureOf(token, secret)}`
}

/** A signed token's part before the dot; `undefined` unless Better Auth's secret signed it. */
export function unsignedToken(signed: string, { secret }: AuthContext): string | undefined {
  const [token, signature, ...rest] = decoded(signed).split('.')
  if (token === undefined || signature === undefined || rest.length > 0) return undefined
  return equalInConstantTime(signatureOf(token, secret), signature) ? token : undefined
}

/** The signed token of a request: its bearer token or, without one, its cookie. */
export function credentialOf(
  ctx: GenericEndpointContext,
  request: RequestContext,
): { signed: string; fromCookie: boolean } | undefined {
  const bearer = bearerToken(request)
  if (bearer !== undefined) return { signed: decoded(bearer), fromCookie: false }
  const cookie = cookieOf(ctx, request.headers)
  return cookie === undefined ? undefined : { signed: cookie, fromCookie: true }
}

/** The session cookie's value. */
export function cookieOf(ctx: GenericEndpointContext, headers: Headers): string | undefined {
  const { name } = ctx.context.authCookies.sessionToken
  return parseCookies(headers.get('cookie') ?? '').get(name) || undefined
}

function signatureOf(token: string, secret: string): string {
  return createHmac('sha256', secret).update(token).digest('base64')
}

/** Undoes the percent-encoding that the cookie's value has in browsers. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
