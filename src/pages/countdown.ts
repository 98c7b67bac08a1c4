/** Tells how much of an order's life is left, once a second. */
export class Countdown {
  readonly #show: (text: string) => void
  readonly #onEnd: () => void
  #timer: ReturnType<typeof setInterval> | undefined

  /** `onEnd` is called once, when the time is up by this device's clock; only the server knows for certain. */
  constructor(show: (text: string) => void, onEnd: () => void) {
    this.#show = show
    this.#onEnd = onEnd
  }

  /** Counts to `expiresAt`, epoch milliseconds. The clocks may differ: at most `lifeMs`, all that an order has, is shown. */
  start(expiresAt: number, lifeMs: number): void {
    this.stop()
    const end = Math.min(expiresAt, Date.now() + lifeMs)
    const tick = (): void => {
      const seconds = Math.ceil((end - Date.now()) / 1000)
      this.#show(seconds > 0 ? `Expires in ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}` : '')
      if (seconds > 0) return
      this.stop()
      this.#onEnd()
    }
    this.#timer = setInterval(tick, 1000)
    tick()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#show('')
  }
}
