import type { NonceChallenge, NonceRequest, SigningAccount } from '../../shared/session.ts'
import type { CountersignClientError } from './errors.ts'
import { isHidden, onWake, Stopwatch } from './page.ts'

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
