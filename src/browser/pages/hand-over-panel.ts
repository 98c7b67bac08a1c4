import type { HandOver } from '../client/index.ts'
import type { WalletApp } from '../wallets/index.ts'
import { byId, element } from './dom.ts'
import type { ServiceClock } from './service-clock.ts'
import type { Words } from './texts/words.ts'

const panel = byId('hand-over')
const openButton = byId('hand-over-button')
const address = byId<HTMLInputElement>('hand-over-input')
const appLinks = byId('hand-over-apps')

/**
 * Time before a link ends at which a new one takes its place, in milliseconds: enough for a slow app to open the last
 * one.
 */
const renewBeforeMs = 20_000

/** Options of {@link HandOverPanel}. */
export interface HandOverPanelOptions {
  readonly words: Words
  readonly clock: ServiceClock
  /** Called when the user asks for a link, which {@link HandOverPanel.show} then shows. */
  readonly onOpen: () => void
  /** Makes a new link without being asked. Rejects if that fails. */
  readonly renew: () => Promise<HandOver>
  /** Called when the user opens the link in a wallet's app. */
  readonly onApp: (app: WalletApp) => void
}

/**
 * The link that continues the order in another browser, for the minute in which it works, and links that open it in
 * wallets' own browsers. They are made before the user taps, because phones open apps only by links that are tapped
 * themselves.
 */
export class HandOverPanel {
  readonly #words: Words
  readonly #clock: ServiceClock
  readonly #renew: () => Promise<HandOver>
  readonly #onApp: (app: WalletApp) => void
  #apps: readonly WalletApp[] = []
  #timers: ReturnType<typeof setTimeout>[] = []
  /** Whether the user took the link, which a new one would void. */
  #isTaken = false

  constructor({ words, clock, onOpen, renew, onApp }: HandOverPanelOptions) {
    this.#words = words
    this.#clock = clock
    this.#renew = renew
    this.#onApp = onApp
    openButton.addEventListener('click', onOpen)
    const shareButton = byId('share-button')
    shareButton.hidden = !('share' in navigator)
    // Rejects if the user closes the sheet, which is no failure: the link is still there.
    shareButton.addEventListener('click', () => {
      this.#isTaken = true
      void navigator.share({ url: address.value }).catch(() => {})
    })
    const copyButton = byId('copy-button')
    // Browsers offer the clipboard on https and localhost only; elsewhere the link can be selected.
    copyButton.hidden = !('clipboard' in navigator)
    copyButton.addEventListener('click', async () => {
      this.#isTaken = true
      address.select()
      await navigator.clipboard.writeText(address.value).then(
        () => {
          copyButton.textContent = words.say('hand-over.copied')
        },
        () => {},
      )
    })
    address.addEventListener('focus', () => address.select())
    address.addEventListener('copy', () => {
      this.#isTaken = true
    })
  }

  /** Says which apps can open the order; none if wallets here are no apps. */
  offer(apps: readonly WalletApp[]): void {
    this.#apps = apps
    byId('hand-over-apps-label').hidden = apps.length === 0
  }

  /** Opens the panel with a link. */
  show(made: HandOver): void {
    this.#fill(made)
    panel.hidden = false
    openButton.hidden = true
    panel.scrollIntoView({ block: 'nearest' })
    if (this.#apps.length === 0) address.focus()
    else appLinks.querySelector('a')?.focus()
  }

  /** Hides the link, which has a secret in it, and offers a new one. */
  hide(): void {
    this.#stop()
    address.value = ''
    appLinks.replaceChildren()
    panel.hidden = true
    openButton.hidden = false
  }

  #fill({ handoverUrl, expiresAt }: HandOver): void {
    this.#stop()
    this.#isTaken = false
    address.value = handoverUrl
    byId('copy-button').textContent = this.#words.say('hand-over.copy')
    this.#fillApps(handoverUrl)
    const leftMs = expiresAt - this.#clock.now()
    this.#timers = [
      setTimeout(() => void this.#replace(), leftMs - renewBeforeMs),
      setTimeout(() => this.hide(), leftMs),
    ]
  }

  /** Gives each app's link the new address. Links that are there stay, so that the focus does. */
  #fillApps(handoverUrl: string): void {
    if (appLinks.childElementCount === 0) appLinks.append(...this.#apps.map((app) => this.#appLink(app)))
    for (const [index, link] of appLinks.querySelectorAll('a').entries()) {
      link.href = this.#apps[index]?.linkTo(handoverUrl) ?? ''
    }
  }

  #appLink(app: WalletApp): HTMLAnchorElement {
    const link = element('a', 'button plain', app.name)
    link.rel = 'noreferrer'
    link.addEventListener('click', () => {
      this.#isTaken = true
      this.#onApp(app)
    })
    return link
  }

  async #replace(): Promise<void> {
    if (this.#isTaken || document.visibilityState === 'hidden') return
    try {
      const made = await this.#renew()
      if (!panel.hidden && !this.#isTaken) this.#fill(made)
    } catch {
      // The link that is there goes on to its end.
    }
  }

  #stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers = []
  }
}
