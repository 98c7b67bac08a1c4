/**
 * Counts an order's life down for people to see; whether it is over, only the service says.
 *
 * The two clocks may be hours apart, so the time left is taken from the service's own times: its `expiresAt` less the `at` of
 * an event is the time that was left when the event happened.
 */
export class Countdown {
  readonly #show: (seconds: number | undefined) => void
  #endsAt = Number.POSITIVE_INFINITY
  #timer: ReturnType<typeof setInterval> | undefined

  /** `show` gets the whole seconds left, or `undefined` for none to show. */
  constructor(show: (seconds: number | undefined) => void) {
    this.#show = show
  }

  /** Takes in what an event says. One that arrives late says too much, so the least counts. */
  hear(lifeMs: number): void {
    this.#endsAt = Math.min(this.#endsAt, performance.now() + lifeMs)
    this.#tick()
    this.#timer ??= setInterval(() => this.#tick(), 1000)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#endsAt = Number.POSITIVE_INFINITY
    this.#show(undefined)
  }

  #tick(): void {
    this.#show(Math.max(0, Math.ceil((this.#endsAt - performance.now()) / 1000)))
  }
}
