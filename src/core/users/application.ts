import { applicationStepMs, applicationSteps } from '../../base/timing/time-limit.ts'
import type { Tracing } from '../../base/tracing.ts'
import { CountersignError, hostUnavailable, reasons, refused } from '../../shared/errors.ts'
import { type ProvenIdentity, type WalletIdentity, walletOf } from '../wallet/wallet.ts'
import type { CurrentSession, Host, HostUser, IssuedSession, Session } from './host.ts'
import type { Membership, PersonKey } from './people.ts'
import type { SessionWallet } from './sessions.ts'
import type { SignInUsers } from './standalone.ts'
import type { WalletClaims } from './user-records.ts'

/**
 * Reads an answer of the application and makes what the service goes on with. Throws a `TypeError` if it is unusable.
 */
type Read<Result> = (what: string, answer: unknown) => Result

/**
 * Asks the application: a hook, or a method of a session host. `what` names the call for the log, such as
 * `resolveLogin()`.
 *
 * Rejects with HOST_UNAVAILABLE if it fails, takes longer than five seconds or answers with something that `read`
 * refuses. What it answers later is dropped. A `CountersignError` that it rejects with is meant for the caller, and
 * stays as it is.
 */
async function askApplication<Result>(what: string, ask: () => unknown, read: Read<Result>): Promise<Result> {
  try {
    const answer = await applicationSteps.within(
      begin(ask),
      () => new Error(`${what} did not answer within ${applicationStepMs / 1000} seconds`),
    )
    return read(what, answer)
  } catch (thrown) {
    throw isRefusal(thrown) ? thrown : hostUnavailable(thrown)
  }
}

/**
 * A promise of what the application returns or throws, also of a value or of an object that only looks like a promise.
 */
async function begin(ask: () => unknown): Promise<unknown> {
  return await ask()
}

/**
 * Whether something thrown is a failure for the caller. A host in JavaScript can make one with a reason that does not
 * exist.
 */
function isRefusal(thrown: unknown): boolean {
  try {
    return thrown instanceof CountersignError && Object.hasOwn(reasons, thrown.reason)
  } catch {
    // A Proxy can refuse to be looked at.
    return false
  }
}

/** A wallet as applications and their functions get it. */
export type ClaimsWallet = Pick<Session, 'adapterId' | 'address' | 'publicKeyHex'>

/** Subject of claims. */
export interface ClaimsSubject {
  readonly userId: string
  /** The wallet that the user signed in with. */
  readonly wallet: ClaimsWallet
  readonly clientId: string
}

/** The application's claims of a user, such as `{ groups: ['staff'] }`. */
export type OwnClaims = (subject: ClaimsSubject) => Promise<Readonly<Record<string, unknown>>>

/**
 * Decides who can sign in: returns the application's user of a proven identity, or null to refuse. The id of a user is
 * text of 1 to 200 characters.
 *
 * If it throws, returns anything else or takes longer than five seconds, the call fails with HOST_UNAVAILABLE, so that
 * an outage does not look like a refusal. A `CountersignError` that it throws reaches the caller as it is.
 *
 * Go by `adapterId` and `address` to recognise a wallet, or by `adapterId` and `subject`; never by the key or address
 * alone. One key can be a wallet of several adapters, and a signature that its holder made for something else can be a
 * proof for one of them: see `nimiq` in src/core/wallet/nimiq.ts.
 */
export type ResolveLogin = (identity: ProvenIdentity) => HostUser | null | Promise<HostUser | null>

/** `resolveLogin` as a traced step; spans inside it become its children. */
export function tracedLogin(resolveLogin: ResolveLogin, tracing: Tracing): ResolveLogin {
  const step = { kind: 'application', name: 'resolveLogin' } as const
  return (identity) => tracing.step(step, () => resolveLogin(identity))
}

/** Asks the application for the user of a proven identity. LOGIN_REFUSED if it returns null. */
export async function askResolveLogin(resolveLogin: ResolveLogin, identity: ProvenIdentity): Promise<HostUser> {
  const found = await askApplication(
    'resolveLogin()',
    () => resolveLogin(identity),
    (what, answer) => (answer === null ? null : user(what, answer)),
  )
  if (found === null) throw refused('LOGIN_REFUSED')
  return found
}

/** Parts of {@link ApplicationUsers}. */
interface ApplicationUsersParts {
  readonly resolveLogin: ResolveLogin
  readonly membership: Membership
  readonly claims: WalletClaims
}

/** The users of an application that decides with `resolveLogin`. The store has the blocks of operators only. */
export class ApplicationUsers implements SignInUsers {
  readonly #parts: ApplicationUsersParts

  constructor(parts: ApplicationUsersParts) {
    this.#parts = parts
  }

  async resolve(identity: ProvenIdentity): Promise<HostUser> {
    const { resolveLogin, claims } = this.#parts
    await claims.requireNotBlocked(identity)
    const { id } = await askResolveLogin(resolveLogin, identity)
    await this.admit(id, identity)
    return { id }
  }

  async requireListed(identity: ProvenIdentity): Promise<void> {
    const { resolveLogin, membership } = this.#parts
    if (membership.isRequired) await this.admit((await askResolveLogin(resolveLogin, identity)).id, identity)
  }

  async admit(userId: string, { adapterId, address }: ProvenIdentity): Promise<PersonKey> {
    const key = { userId, adapterId, address, firstWallet: undefined }
    this.#parts.membership.requireListed(key)
    return key
  }

  async refusalOf(_user: HostUser, wallet: WalletIdentity): Promise<CountersignError | undefined> {
    return (await this.#parts.claims.isBlocked(wallet)) ? refused('LOGIN_REFUSED') : undefined
  }

  async holds(_userId: string, wallet: SessionWallet): Promise<boolean> {
    return !(await this.#parts.claims.isBlocked(walletOf(wallet)))
  }

  async walletsOf(): Promise<[]> {
    return []
  }
}

/**
 * A session host of the application's own for which the blocks of operators hold: a blocked wallet gets no user, and so
 * no session. `requireNotBlocked` rejects with LOGIN_REFUSED for such a wallet.
 */
export function blockingHost(host: Host, requireNotBlocked: (wallet: WalletIdentity) => Promise<void>): Host {
  return {
    ...host,
    async resolveUser(identity, request) {
      await requireNotBlocked(identity)
      return await host.resolveUser(identity, request)
    },
  }
}

/**
 * A session host of the application's own, so that the service can rely on it: each step answers within five seconds
 * with what the contract says, or rejects with HOST_UNAVAILABLE, and the log has the cause. Without tracing, nothing is
 * traced.
 */
export function guardedHost(host: Host, tracing?: Tracing): Host {
  const ask: typeof askApplication = (what, step, read) =>
    tracing === undefined
      ? askApplication(what, step, read)
      : tracing.step({ kind: 'application', name: what.replace('()', '') }, () => askApplication(what, step, read))
  const guarded = Object.entries<Read<unknown>>(answers).map(([name, read]) => {
    const method = name as keyof Host
    const step = (...given: [never, never, never, never]): unknown =>
      ask(`sessionHost.${name}()`, () => host[method](...given), read)
    return [name, step]
  })
  return Object.fromEntries(guarded)
}

// What the application answers is copied field by field, and each field is read once: an object can have getters or be
// a Proxy, and must not be one thing when it is checked and another when it is used.

/** Longest identifier of a user, a session, an order or a computer, in characters. */
const maxIdLength = 200

/** Longest text of any other kind, in characters. No header that a client sends is longer. */
const maxTextLength = 16_384

/** Most Set-Cookie headers of one answer. */
const maxCookies = 50

/** Characters that a header can carry (RFC 9110), without the tab. A line break would begin a header of its own. */
const headerValue = /^[ -~\u0080-\u00ff]+$/

/** Characters that `Authorization: Bearer` can carry. */
const bearerToken = /^[!-~]+$/

/** Reads text of a length. Half of a surrogate pair is refused, because no protocol can write it. */
function text(min: number, max: number): Read<string> {
  return (what, answer) => {
    if (typeof answer === 'string' && answer.length >= min && answer.length <= max && answer.isWellFormed())
      return answer
    throw new TypeError(`${what} must be text of ${min} to ${max} characters`)
  }
}

const id = text(1, maxIdLength)
const anyText = text(0, maxTextLength)

const time: Read<number> = (what, answer) => {
  if (Number.isSafeInteger(answer)) return answer as number
  throw new TypeError(`${what} must be a time in epoch milliseconds, a whole number`)
}

const token: Read<string> = (what, answer) => {
  const read = text(1, maxTextLength)(what, answer)
  if (bearerToken.test(read)) return read
  throw new TypeError(`${what} must consist of printable ASCII characters without spaces`)
}

const cookie: Read<string> = (what, answer) => {
  const read = text(1, maxTextLength)(what, answer)
  if (headerValue.test(read)) return read
  throw new TypeError(`${what} must not have line breaks or control characters, because it becomes a header`)
}

function optional<Result>(read: Read<Result>): Read<Result | undefined> {
  return (what, answer) => (answer === undefined ? undefined : read(what, answer))
}

function listOf<Result>(read: Read<Result>, most = Number.POSITIVE_INFINITY): Read<Result[]> {
  return (what, answer) => {
    if (!Array.isArray(answer)) throw new TypeError(`${what} must be an array`)
    if (answer.length > most) throw new TypeError(`${what} must have at most ${most} entries`)
    return Array.from(answer, (entry, index) => read(`${what}[${index}]`, entry))
  }
}

/** How to read each field of an object. A field that is not in the list is not taken over. */
type FieldReaders<Result> = { readonly [Field in keyof Required<Result>]: Read<Result[Field]> }

function object<Result extends object>(fields: FieldReaders<Result>): Read<Result> {
  return (what, answer) => {
    if (typeof answer !== 'object' || answer === null) throw new TypeError(`${what} must be an object`)
    const read = Object.entries<Read<unknown>>(fields).map(([field, readField]) => [
      field,
      readField(`${what}.${field}`, (answer as Record<string, unknown>)[field]),
    ])
    return Object.fromEntries(read.filter(([, value]) => value !== undefined)) as Result
  }
}

const cookies = listOf(cookie, maxCookies)

// A list of people is the built-in host's only.
const session = object<Omit<Session, 'firstWallet'>>({
  id,
  userId: id,
  adapterId: anyText,
  subject: optional(id),
  publicKeyHex: anyText,
  address: anyText,
  createdAt: time,
  expiresAt: time,
  orderId: optional(id),
  ip: anyText,
  userAgent: anyText,
  computerId: optional(id),
})

const user = object<HostUser>({ id })

const yesOrNo: Read<boolean> = (what, answer) => {
  if (typeof answer === 'boolean') return answer
  throw new TypeError(`${what} must be true or false`)
}

/** How to read what each method of a host answers. */
const answers: { readonly [Method in keyof Host]: Read<Awaited<ReturnType<Host[Method]>>> } = {
  resolveUser: user,
  createSession: object<IssuedSession>({ token, session, cookies }),
  orderSessionId: id,
  endOrderSession: yesOrNo,
  currentSession: object<CurrentSession>({ session, cookies }),
  signOut: cookies,
  listSessions: listOf(session),
  revokeSession: yesOrNo,
  introspect: optional(session),
}
