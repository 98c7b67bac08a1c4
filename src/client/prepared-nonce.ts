import type { CountersignClientError } from './errors.ts'
import { isHidden, onWake } from './page.ts'
import type { NonceChallenge } from './types.ts'

/** Time that a user is given in the wallet, at least, milliseconds; less when a nonce lives for less than twice as long. */
const marginMs = 60_000

/**
 * A nonce that is fetched before it is needed: a network call between a tap and the wallet breaks deep links on phones, and
 * pop-ups everywhere. It is fetched anew before it expires, for as long as the page can be seen.
 */
export class PreparedNonce {
  readonly #issue: (appName: string | undefined) => Promise<NonceChallenge>
  #run: { readonly appName: string | undefined } | undefined
  #held: HeldNonce | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #stopListening: (() => void) | undefined

  constructor(issue: (appName: string | undefined) => Promise<NonceChallenge>) {
    this.#issue = issue
  }

  /**
   * Fetches a nonce, and goes on until {@link stop}, another start, or `signal` aborts. Rejects when the first cannot be had
   * now; the next wake-up of the page tries again.
   */
  async start(appName: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    this.stop()
    if (signal?.aborted) return
    const run = { appName }
    this.#run = run
    this.#stopListening = onWake(() => this.#renew())
    const onAbort = (): void => {
      if (this.#run === run) this.stop()
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    await this.#fetch()
  }

  /** Hands out the nonce, for one use. `undefined` when there is none, or not for this application name. */
  take(appName: string | undefined): HeldNonce | undefined {
    const held = this.#held
    if (held === undefined || held.isStale() || this.#run?.appName !== appName) return undefined
    this.#held = undefined
    return held
  }

  /** Takes back a nonce that nobody used. */
  giveBack(nonce: HeldNonce): void {
    if (this.#run !== undefined) this.#held ??= nonce
  }

  /** Lets go of the nonce and fetches no more. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#stopListening?.()
    this.#run = undefined
    this.#held = undefined
  }

  async #fetch(): Promise<void> {
    const run = this.#run
    const held = new HeldNonce(await this.#issue(run?.appName))
    // Stopped or started anew meanwhile: the nonce is another run's, if anybody's.
    if (this.#run !== run) return
    this.#held = held
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#renew(), held.freshMs)
  }

  #renew(): void {
    // Nobody taps a page that nobody sees: it waits until it is seen again.
    if (isHidden() || (this.#held !== undefined && !this.#held.isStale())) return
    // When it cannot be had now, the next wake-up or the tap itself fetches it.
    this.#fetch().catch((_: CountersignClientError) => {})
  }
}

/** A nonce and its age. */
export class HeldNonce {
  readonly challenge: NonceChallenge
  /** How long after its receipt there is still time to sign, milliseconds. */
  readonly freshMs: number
  readonly #wall = Date.now()
  readonly #monotonic = performance.now()

  constructor(challenge: NonceChallenge) {
    this.challenge = challenge
    // The server's two times, not one of them and this device's clock, which may be hours off.
    const lifeMs = challenge.expiresAt - challenge.issuedAt
    this.freshMs = Math.max(0, lifeMs - Math.min(marginMs, lifeMs / 2))
  }

  isStale(): boolean {
    // The one clock may be set back, the other may stand still while the device sleeps.
    return Math.max(Date.now() - this.#wall, performance.now() - this.#monotonic) >= this.freshMs
  }
}
