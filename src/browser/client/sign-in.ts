import { given } from '../../shared/defined-fields.ts'
import type { NonceChallenge, NonceRequest, Session, SignInResult, SigningAccount } from '../../shared/session.ts'
import type { SignInApi } from './api.ts'
import { run, runTrusted } from './call.ts'
import type { CountersignClientError } from './errors.ts'
import { isHidden, onWake, Stopwatch } from './page.ts'
import { keepToken, type TokenStore } from './token-store.ts'
import { type ProofOptions, proveWithWallet, type Wallet, type WalletProof } from './wallet.ts'

/** Options of a direct sign-in. */
export interface SignInOptions extends ProofOptions {
  /**
   * Application name that the signed message must begin with. If it is not the service's own, the service refuses with
   * APP_NAME_MISMATCH; it never takes the name from here.
   */
  readonly appName?: string | undefined
  /**
   * Answer of `issueNonce` whose text the wallet signs. Default: it is fetched. For wallets at sites that take the
   * place of the page: the page keeps the challenge, and passes it again with the signature that it came back with.
   */
  readonly challenge?: NonceChallenge | undefined
  /** Whether the session token is stored; if not, only the cookie keeps the user signed in. Default true. */
  readonly autoPersistToken?: boolean | undefined
}

/** What a direct sign-in works with. */
export interface SignInParts {
  readonly service: SignInApi
  /** Address of the service; empty for the page's own origin. */
  readonly baseUrl: string
  readonly tokens: TokenStore
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
  readonly prepared?: PreparedNonce
}

/**
 * Signs in: nonce, wallet signature, verification. With a prepared nonce that fits, the wallet is asked before anything
 * is awaited.
 */
export async function signIn(
  { service, baseUrl, tokens, timeoutMs, prepared }: SignInParts,
  options: SignInOptions,
): Promise<SignInResult> {
  const { appName, signal } = options
  const used: { held?: HeldNonce | undefined; nonceId: string } = { nonceId: '' }
  const textOf = ({ nonceId, message }: NonceChallenge): string => {
    used.nonceId = nonceId
    return message
  }
  let proof: WalletProof
  try {
    proof = await proveWithWallet((account) => {
      if (options.challenge !== undefined) return textOf(options.challenge)
      used.held = prepared?.take(appName, account)
      if (used.held !== undefined) return textOf(used.held.challenge)
      const request = { ...given({ appName }), ...account }
      return runTrusted((call) => service.issueNonce(request, call), signal, timeoutMs, baseUrl).then(textOf)
    }, options)
  } catch (thrown) {
    if (used.held !== undefined) prepared?.giveBack(used.held)
    throw thrown
  }
  const request = { ...proof, nonceId: used.nonceId }
  const result = await run((call) => service.verifySignIn(request, call), signal, timeoutMs)
  prepared?.stop()
  keepToken(tokens, result.token, options.autoPersistToken)
  return result
}

/** Options of {@link SignInCalls.prepareSignIn}. */
export interface PrepareSignInOptions extends Pick<SignInOptions, 'appName' | 'signal'> {
  /**
   * Account that is going to sign, for wallets with `getAccount`. `signInWallet` uses the nonce only if the wallet then
   * names the same one, and fetches another if not. Default: a nonce for wallets without `getAccount`.
   */
  readonly account?: SigningAccount | undefined
}

/** Options of {@link SignInCalls.issueNonce}. */
export interface IssueNonceOptions extends PrepareSignInOptions {
  /**
   * Whether the answer has the fields of the sign-in form, for a page that writes the text itself, as
   * `countersign/client/siwe` does. `account` has to name `ethereum` or `solana`, and may leave out the rest. Default:
   * no.
   */
  readonly form?: boolean | undefined
}

/** Calls for a direct sign-in. */
export interface SignInCalls {
  /**
   * Signs in with a wallet on this device: nonce, wallet signature, verification. Call it in a user gesture, because
   * the wallet may open a window. It does not retry: after NETWORK, call it again.
   */
  signInWallet(options?: SignInOptions): Promise<SignInResult>
  /**
   * Fetches a nonce in advance, so that `signInWallet` makes no network call between the tap and the wallet. The nonce
   * is replaced before it expires for as long as the page is visible, until the user has signed in or `signal` aborts.
   */
  prepareSignIn(options?: PrepareSignInOptions): Promise<void>
  /**
   * Fetches a nonce for `signInWallet`, which takes it as `challenge`. Most pages need no such call: `signInWallet`
   * makes it.
   */
  issueNonce(options?: IssueNonceOptions): Promise<NonceChallenge>
}

/** Options of {@link signInCalls}. */
export interface SignInCallsOptions extends Omit<SignInParts, 'prepared'> {
  /** Options of the calls, where they do not say otherwise. */
  readonly defaults: Omit<SignInOptions, 'signal' | 'challenge'>
  /** Called after a sign-in, with the wallet that the caller named. */
  readonly onSession: (session: Session, wallet: Wallet | undefined) => void
}

/** The calls for a direct sign-in, over any protocol. */
export function signInCalls(options: SignInCallsOptions): SignInCalls {
  const { service, baseUrl, tokens, defaults, timeoutMs, onSession } = options
  const issueNonce = (request: NonceRequest, signal: AbortSignal | undefined): Promise<NonceChallenge> =>
    runTrusted((call) => service.issueNonce(request, call), signal, timeoutMs, baseUrl)
  const prepared = new PreparedNonce((request) => issueNonce(request, undefined))
  return {
    async signInWallet(callOptions = {}) {
      const own = { ...defaults, ...given(callOptions) }
      const result = await signIn({ service, baseUrl, tokens, timeoutMs, prepared }, own)
      onSession(result.session, own.wallet)
      return result
    },
    prepareSignIn: ({ appName = defaults.appName, account, signal } = {}) =>
      prepared.start({ ...given({ appName }), ...account }, signal),
    issueNonce: ({ appName = defaults.appName, account, form, signal } = {}) =>
      issueNonce({ ...given({ appName, form }), ...account }, signal),
  }
}

const accountParts = ['adapterId', 'address', 'chainId'] as const

/** Least time that the user has in the wallet, in milliseconds; half of a nonce's lifetime if that is shorter. */
const marginMs = 60_000

/**
 * A nonce that is fetched in advance: a network call between a tap and the wallet breaks deep links on phones, and
 * pop-ups everywhere. It is replaced before it expires for as long as the page is visible.
 */
export class PreparedNonce {
  readonly #issue: (request: NonceRequest) => Promise<NonceChallenge>
  #run: NonceRequest | undefined
  #held: HeldNonce | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #stopListening: (() => void) | undefined

  constructor(issue: (request: NonceRequest) => Promise<NonceChallenge>) {
    this.#issue = issue
  }

  /**
   * Fetches a nonce and keeps it fresh until {@link stop}, the next start, or `signal` aborts. Rejects if the first one
   * cannot be fetched now; the next wake-up of the page tries again.
   */
  async start(request: NonceRequest, signal: AbortSignal | undefined): Promise<void> {
    this.stop()
    if (signal?.aborted) return
    const run = { ...request }
    this.#run = run
    this.#stopListening = onWake(() => this.#renew())
    const onAbort = (): void => {
      if (this.#run === run) this.stop()
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    await this.#fetch()
  }

  /** Returns the nonce for one use, or `undefined` if there is none for this application name and this account. */
  take(appName: string | undefined, account: SigningAccount | undefined): HeldNonce | undefined {
    const [held, run] = [this.#held, this.#run]
    if (held === undefined || held.isStale() || run?.appName !== appName) return undefined
    // The text names the account, or the wallet has a text without one.
    if (accountParts.some((part) => run?.[part] !== account?.[part])) return undefined
    this.#held = undefined
    return held
  }

  /** Takes back a nonce that was not used. */
  giveBack(nonce: HeldNonce): void {
    if (this.#run !== undefined) this.#held ??= nonce
  }

  /** Drops the nonce and fetches no more. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#stopListening?.()
    this.#run = undefined
    this.#held = undefined
  }

  async #fetch(): Promise<void> {
    const run = this.#run
    const held = new HeldNonce(await this.#issue(run ?? {}))
    // Stopped or restarted in the meantime: this run has ended.
    if (this.#run !== run) return
    this.#held = held
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#renew(), held.freshMs)
  }

  #renew(): void {
    // A hidden page needs no nonce until it is visible again.
    if (isHidden() || (this.#held !== undefined && !this.#held.isStale())) return
    // If this fails, the next wake-up or the sign-in itself fetches one.
    this.#fetch().catch((_: CountersignClientError) => {})
  }
}

/** A fetched nonce and its age. */
export class HeldNonce {
  readonly challenge: NonceChallenge
  /** Time after its receipt during which there is enough left to sign, in milliseconds. */
  readonly freshMs: number
  readonly #sinceReceipt = new Stopwatch()

  constructor(challenge: NonceChallenge) {
    this.challenge = challenge
    // From the server's own times only, because this device's clock may be hours off.
    const lifeMs = challenge.expiresAt - challenge.issuedAt
    this.freshMs = Math.max(0, lifeMs - Math.min(marginMs, lifeMs / 2))
  }

  isStale(): boolean {
    return this.#sinceReceipt.elapsedMs >= this.freshMs
  }
}
