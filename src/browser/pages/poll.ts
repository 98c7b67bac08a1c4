import { onWake } from '../client/page.ts'

/** Looks again and again while the page is visible, and at once when it becomes visible or online again. */
export class Poll {
  readonly #look: () => Promise<void>
  #timer: ReturnType<typeof setTimeout> | undefined
  #intervalMs = 0
  #running = false
  #looking = false

  /** `look` must not reject. */
  constructor(look: () => Promise<void>) {
    this.#look = look
    onWake(() => void this.now())
  }

  /** Looks from now on, with so much time between two looks, in milliseconds. */
  start(intervalMs: number): void {
    this.#intervalMs = intervalMs
    this.#running = true
    this.#wait()
  }

  stop(): void {
    this.#running = false
    clearTimeout(this.#timer)
  }

  /** Looks now, if the page is visible and it is not looking already. */
  async now(): Promise<void> {
    if (this.#looking || document.visibilityState === 'hidden') return
    clearTimeout(this.#timer)
    this.#looking = true
    await this.#look()
    this.#looking = false
    if (this.#running) this.#wait()
  }

  #wait(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.now(), this.#intervalMs)
  }
}
