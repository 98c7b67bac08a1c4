import { aborted } from '../client/errors.ts'
import type { HandOver } from '../client/index.ts'
import type { AppAddress } from '../wallets/found.ts'
import { byId } from './dom.ts'
import type { ServiceClock } from './phone-calls.ts'
import type { Words } from './words.ts'

const panel = byId('hand-over')
const openButton = byId('hand-over-button')
const address = byId<HTMLInputElement>('hand-over-input')

/**
 * Time before a link ends at which a new one takes its place, in milliseconds: enough for a slow app to open the last
 * one.
 */
const renewBeforeMs = 20_000

/** Options of {@link HandOverPanel}. */
export interface HandOverPanelOptions {
  readonly words: Words
  readonly clock: ServiceClock
  /** Called when the user asks for a link and none is ready: {@link HandOverPanel.open} shows one. */
  readonly onOpen: () => void
  /** Makes a new link. Rejects if that fails. */
  readonly make: () => Promise<HandOver>
  /** Called with what wallets' apps open from now on. */
  readonly onAddress: (address: AppAddress) => void
}

/**
 * The link that continues the order in another browser, for the minute in which it works: for wallets' apps, made
 * before the user taps, because phones open apps only by links that are tapped themselves; and for any other browser,
 * shown when the user asks for it. A new link voids the last, so there is one for both.
 */
export class HandOverPanel {
  readonly #options: HandOverPanelOptions
  #timers: ReturnType<typeof setTimeout>[] = []
  /** Whether apps are offered, so that a link has to be ready. */
  #isForApps = false
  #making: Promise<HandOver> | undefined
  /** Whether the user took the link, which a new one would void. */
  #isTaken = false

  constructor(options: HandOverPanelOptions) {
    this.#options = options
    const { words, onOpen } = options
    openButton.addEventListener('click', () => {
      if (this.#timers.length > 0) this.#open()
      else onOpen()
    })
    const shareButton = byId('share-button')
    shareButton.hidden = !('share' in navigator)
    // Rejects if the user closes the sheet, which is no failure: the link is still there.
    shareButton.addEventListener('click', () => {
      this.take()
      void navigator.share({ url: address.value }).catch(() => {})
    })
    const copyButton = byId('copy-button')
    // Browsers offer the clipboard on https and localhost only; elsewhere the link can be selected.
    copyButton.hidden = !('clipboard' in navigator)
    copyButton.addEventListener('click', async () => {
      this.take()
      address.select()
      await navigator.clipboard.writeText(address.value).then(
        () => {
          copyButton.textContent = words.say('hand-over.copied')
        },
        () => {},
      )
    })
    address.addEventListener('focus', () => address.select())
    address.addEventListener('copy', () => this.take())
    document.addEventListener('visibilitychange', () => void this.#prepare())
  }

  /** Keeps a link ready for wallets' apps from now on, or no longer. */
  keepReady(isForApps: boolean): void {
    if (this.#isForApps === isForApps) return
    this.#isForApps = isForApps
    void this.#prepare()
  }

  /** The link is in use: no new one takes its place while it works. */
  take(): void {
    this.#isTaken = true
  }

  /**
   * Opens the panel with a link: the one that is being made for apps, which a second would void, or a new one. Rejects
   * if that fails, or when the signal aborts.
   */
  async open(signal: AbortSignal): Promise<void> {
    const ended = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(aborted(signal))))
    this.#fill(await Promise.race([this.#make(), ended]))
    this.#open()
  }

  /** Hides the link, which has a secret in it, and makes none from now on. */
  hide(): void {
    this.#isForApps = false
    this.#drop()
  }

  #open(): void {
    panel.hidden = false
    openButton.hidden = true
    panel.scrollIntoView({ block: 'nearest' })
    address.focus()
  }

  /** Makes a link for apps, if there is none. If that fails, the user's tap makes it. */
  async #prepare(): Promise<void> {
    if (!this.#isForApps || this.#timers.length > 0 || document.visibilityState === 'hidden') return
    this.#options.onAddress(this.#makeForApp)
    await this.#make().catch(() => {})
  }

  /** What a tap on an app does before there is a link. */
  readonly #makeForApp = async (): Promise<string> => (await this.#make()).handoverUrl

  async #make(): Promise<HandOver> {
    this.#making ??= this.#options.make().finally(() => {
      this.#making = undefined
    })
    const made = await this.#making
    if (this.#isForApps || !panel.hidden) this.#fill(made)
    return made
  }

  #fill({ handoverUrl, expiresAt }: HandOver): void {
    const { words, clock, onAddress } = this.#options
    this.#stop()
    this.#isTaken = false
    address.value = handoverUrl
    byId('copy-button').textContent = words.say('hand-over.copy')
    onAddress(handoverUrl)
    const leftMs = expiresAt - clock.now()
    this.#timers = [setTimeout(() => void this.#renew(), leftMs - renewBeforeMs), setTimeout(() => this.#end(), leftMs)]
  }

  async #renew(): Promise<void> {
    if (this.#isTaken || document.visibilityState === 'hidden') return
    // Otherwise the link that is there goes on to its end.
    await this.#make().catch(() => {})
  }

  /** The link has ended: it leaves the page. Apps that the user still looks at get another one. */
  #end(): void {
    this.#drop()
    void this.#prepare()
  }

  #drop(): void {
    this.#stop()
    address.value = ''
    this.#options.onAddress(this.#makeForApp)
    panel.hidden = true
    openButton.hidden = false
  }

  #stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers = []
  }
}
