import { isPassing } from '../client/errors.ts'
import { CountersignClientError } from '../client/index.ts'
import { byId, element, fill, noteForOperator, write } from './dom.ts'
import type { Page } from './open-page.ts'
import type { Words } from './words.ts'

/** Time without an answer after which the page says that it is still trying, in milliseconds. */
const slowMs = 3000

/** A task. Its signal aborts if the user chooses another task instead. */
export type Task = (signal: AbortSignal) => Promise<void>

/** Options of {@link Tasks}. */
export interface TasksOptions {
  readonly page: Page
  /** May handle an error code itself; if it returns true, no notice is shown. */
  readonly isHandled?: (code: string) => boolean
  /** What the notice's button does after this error code, if not to try again. */
  readonly remedyOf?: (code: string) => Remedy | undefined
  /** What the notice says after this error code, if not the text that it has on all pages. */
  readonly noticeOf?: (code: string) => string | undefined
  /** Whether the notice moves to what was tapped, on a page that is longer than a screen. */
  readonly isBesideTap?: boolean
}

/** What the button of a notice does. */
export interface Remedy {
  /** Label of the button. */
  readonly text: string
  readonly act: () => void
}

/**
 * Runs the tasks that the user starts, one at a time. Shows their progress and their failures in the page's `#notice`,
 * with a button to try again after a failure, or to do what helps.
 */
export class Tasks {
  readonly #notice = byId('notice')
  readonly #retryButton = byId('retry-button')
  readonly #otherButton = Object.assign(element('button', 'button small plain'), { type: 'button' })
  /** The live region around the notice, and its place in the page. */
  readonly #region = this.#notice.parentNode as HTMLElement
  readonly #home = this.#region.parentNode as HTMLElement
  readonly #options: TasksOptions
  readonly #words: Words
  #running: { readonly controller: AbortController; readonly done: Promise<void> } | undefined
  #remedy: Remedy | undefined
  #other: Remedy | undefined
  #slow: ReturnType<typeof setTimeout> | undefined
  /** What was tapped last. */
  #tapped: Element | undefined
  /** Signal of the task that waits for a wallet. */
  #asking: AbortSignal | undefined

  constructor(options: TasksOptions) {
    this.#options = options
    this.#words = options.page.words
    this.#retryButton.addEventListener('click', () => this.#remedy?.act())
    this.#otherButton.addEventListener('click', () => this.#other?.act())
    this.#otherButton.hidden = true
    this.#retryButton.after(this.#otherButton)
    // Before the button's own listener, which starts the task. Some browsers do not focus buttons that are tapped.
    addEventListener('click', ({ target }) => (this.#tapped = target as Element), true)
    addEventListener('offline', () => this.busy && this.#say(this.#words.say('task.offline')))
  }

  get busy(): boolean {
    return this.#running !== undefined
  }

  /** Whether the running task waits for a wallet, whose user may take any time. */
  get isAskingWallet(): boolean {
    return this.#asking?.aborted === false
  }

  /** Runs a task, unless another one is running. Never rejects. */
  async run(task: Task): Promise<void> {
    if (this.busy) return
    const controller = new AbortController()
    this.#running = { controller, done: this.#do(task, controller.signal) }
    await this.#running.done
  }

  /** Runs a task, in place of the one that is running, if any, which is aborted. Never rejects. */
  async runInstead(task: Task): Promise<void> {
    const running = this.#running
    // At once if none is running, so that a wallet can open a window in the user gesture.
    if (running !== undefined) {
      running.controller.abort()
      await running.done
    }
    await this.run(task)
  }

  /** Aborts the running task. What it then rejects with is not shown. */
  abort(): void {
    this.#running?.controller.abort()
  }

  /**
   * Asks the user's wallet for the running task, whose signal it is, and shows `text` until it answers: it may take its
   * time. Calls `ask` before anything is awaited, so that a wallet can open a window in the user gesture.
   */
  async askWallet<T>(text: string, signal: AbortSignal, ask: () => T): Promise<Awaited<T>> {
    clearTimeout(this.#slow)
    this.#say(text)
    this.#asking = signal
    try {
      return await ask()
    } finally {
      if (this.#asking === signal) this.#asking = undefined
      // Else another task may have the notice by now.
      if (!signal.aborted) this.#awaitService()
    }
  }

  async #do(task: Task, signal: AbortSignal): Promise<void> {
    document.body.toggleAttribute('data-busy', true)
    const button = this.#tapped?.closest('.button')
    if (this.#options.isBesideTap) this.#moveTo(this.#tapped?.closest('li, section') ?? this.#home)
    this.#tapped = undefined
    button?.setAttribute('aria-busy', 'true')
    this.#awaitService()
    const { isHandled, remedyOf, noticeOf } = this.#options
    try {
      await task(signal)
      this.#say('')
    } catch (thrown) {
      const { code, message } =
        thrown instanceof CountersignClientError ? thrown : { code: 'UNEXPECTED', message: String(thrown) }
      if (code === 'ABORTED' || isHandled?.(code)) this.#say('')
      else if (thrown instanceof CountersignClientError && thrown.address !== undefined) this.sayNotListed(thrown)
      // Another try of the same would get the same answer.
      else if (isUsedUp(thrown)) this.#say(this.#words.say('notice.contract-checks'))
      else {
        noteForOperator({ code, message })
        const again = { text: this.#words.say('task.retry'), act: () => void this.run(task) }
        this.#say(noticeOf?.(code) ?? this.#words.notice(code), remedyOf?.(code) ?? again)
      }
    } finally {
      clearTimeout(this.#slow)
      document.body.toggleAttribute('data-busy', false)
      button?.removeAttribute('aria-busy')
      this.#running = undefined
    }
  }

  /**
   * Says that a wallet is not on the service's list. Offers its address for the operator, as the list has it, and
   * another wallet.
   */
  sayNotListed({ adapterId, address }: Pick<CountersignClientError, 'adapterId' | 'address'>): void {
    const { page, remedyOf } = this.#options
    const text = this.#words.say('task.not-listed', { app: page.values.appName })
    // Browsers offer the clipboard on https and localhost only.
    const name = `${adapterId}:${address}`
    const withAddress = `${text} ${name}`
    const other = remedyOf?.('LOGIN_REFUSED')
    if (!('clipboard' in navigator)) {
      this.#say(withAddress, other)
      return
    }
    const copied = () => {
      this.#retryButton.textContent = this.#words.say('task.address-copied')
    }
    const act = () => void navigator.clipboard.writeText(name).then(copied, () => this.#say(withAddress, other))
    this.#say(text, { text: this.#words.say('task.copy-address'), act }, other)
  }

  /** Moves the notice, unless it is there: the button in it would lose the focus. */
  #moveTo(place: Element): void {
    if (this.#region.parentNode !== place) place.append(this.#region)
  }

  #awaitService(): void {
    const offline = this.#words.say('task.offline')
    this.#say(navigator.onLine ? '' : offline)
    clearTimeout(this.#slow)
    this.#slow = setTimeout(() => this.#say(navigator.onLine ? this.#words.say('task.slow') : offline), slowMs)
  }

  /** Shows a notice, or hides it if the text is empty. The buttons apply the remedies. */
  #say(text: string, remedy?: Remedy, other?: Remedy): void {
    this.#remedy = remedy
    this.#other = other
    this.#notice.hidden = text === ''
    fill(this.#notice, 'notice', text)
    this.#retryButton.hidden = remedy === undefined
    if (remedy !== undefined) write(this.#retryButton, remedy.text)
    this.#otherButton.hidden = other === undefined
    write(this.#otherButton, other?.text ?? '')
    this.#notice.scrollIntoView({ block: 'nearest' })
  }
}

/** Whether an order has no checks of contract wallets left: the one limit that lasts. */
function isUsedUp(thrown: unknown): boolean {
  return thrown instanceof CountersignClientError && thrown.code === 'RATE_LIMITED' && !isPassing(thrown)
}
