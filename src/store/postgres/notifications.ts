/** Most payloads that wait to be sent. Watchers of others read again at their next heartbeat. */
const mostWaiting = 10_000

/**
 * Payloads of changes, on their way to other processes. All of a turn of the event loop are one statement, which
 * follows their commits and writes nothing: PostgreSQL makes commits that write and notify one after another.
 */
export class Notifications {
  readonly #send: (payloads: readonly string[]) => Promise<unknown>
  readonly #waiting = new Set<string>()
  #sending: Promise<void> | undefined

  /** `send` rejects if the payloads could not be sent; they are sent again then. */
  constructor(send: (payloads: readonly string[]) => Promise<unknown>) {
    this.#send = send
  }

  add(payload: string): void {
    this.#keep(payload)
    this.flush()
  }

  /** Sends what waits after the current turn of the event loop, one statement at a time, so that the order is kept. */
  flush(): void {
    if (this.#waiting.size > 0) this.#sending ??= this.#sendAll()
  }

  /** Resolves once what waits has been sent, or could not be. */
  async settled(): Promise<void> {
    await this.#sending
  }

  #keep(payload: string): void {
    if (this.#waiting.size < mostWaiting) this.#waiting.add(payload)
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      await new Promise(setImmediate)
      const payloads = [...this.#waiting]
      this.#waiting.clear()
      try {
        await this.#send(payloads)
      } catch {
        for (const payload of payloads) this.#keep(payload)
        break
      }
    }
    this.#sending = undefined
  }
}
