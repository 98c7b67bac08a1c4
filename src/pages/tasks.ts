import { CountersignClientError } from '../client/index.ts'
import { byId, fill } from './dom.ts'
import { noticeOf } from './words.ts'

/** After this long without an answer people are told that it is still being tried, milliseconds. */
const slowMs = 3000

const offline = 'You are offline. It goes on as soon as the connection is back.'
const slow = 'The service does not answer. Still trying.'

/** What is to be done. The signal aborts when its user wants something else instead. */
export type Task = (signal: AbortSignal) => Promise<void>

/**
 * Does what people ask a page for, one thing at a time, and says what comes of it in the page's `#notice`, with a button to
 * try again after a failure.
 */
export class Tasks {
  readonly #notice = byId('notice')
  readonly #isHandled: (code: string) => boolean
  #running: { readonly controller: AbortController; readonly done: Promise<void> } | undefined
  #again: Task | undefined

  /** `isHandled` may deal with an error code in its own way; with true, nothing more is said. */
  constructor(isHandled: (code: string) => boolean = () => false) {
    this.#isHandled = isHandled
    byId('retry-button').addEventListener('click', () => this.#again !== undefined && void this.run(this.#again))
    addEventListener('offline', () => this.busy && this.#say(offline))
  }

  get busy(): boolean {
    return this.#running !== undefined
  }

  /** Does it, unless something else is being done. Never rejects. */
  async run(task: Task): Promise<void> {
    if (this.busy) return
    const controller = new AbortController()
    this.#running = { controller, done: this.#do(task, controller.signal) }
    await this.#running.done
  }

  /** Does it instead of whatever is being done. Never rejects. */
  async runInstead(task: Task): Promise<void> {
    const running = this.#running
    running?.controller.abort()
    await running?.done
    await this.run(task)
  }

  async #do(task: Task, signal: AbortSignal): Promise<void> {
    this.#say(navigator.onLine ? '' : offline)
    document.body.toggleAttribute('data-busy', true)
    const timer = setTimeout(() => this.#say(navigator.onLine ? slow : offline), slowMs)
    try {
      await task(signal)
      this.#say('')
    } catch (thrown) {
      const { code, message } =
        thrown instanceof CountersignClientError ? thrown : { code: 'UNEXPECTED', message: String(thrown) }
      if (code === 'ABORTED' || this.#isHandled(code)) this.#say('')
      else this.#say(noticeOf(code, message), task)
    } finally {
      clearTimeout(timer)
      document.body.toggleAttribute('data-busy', false)
      this.#running = undefined
    }
  }

  /** Says something, or with no text nothing any more. `again` is what "Try again" does. */
  #say(text: string, again?: Task): void {
    this.#again = again
    this.#notice.hidden = text === ''
    fill(this.#notice, 'notice', text)
    byId('retry-button').hidden = again === undefined
    this.#notice.scrollIntoView({ block: 'nearest' })
  }
}
