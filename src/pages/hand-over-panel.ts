import type { HandOver } from '../client/index.ts'
import { byId } from './dom.ts'
import type { ServiceClock } from './service-clock.ts'
import type { Words } from './texts/words.ts'

const panel = byId('hand-over')
const openButton = byId('hand-over-button')
const address = byId<HTMLInputElement>('hand-over-input')

/** The link that continues the order in another browser, for the minute in which it works. */
export class HandOverPanel {
  readonly #clock: ServiceClock
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `onOpen` is called when the user asks for a link. */
  constructor(words: Words, clock: ServiceClock, onOpen: () => void) {
    this.#clock = clock
    openButton.addEventListener('click', onOpen)
    const shareButton = byId('share-button')
    shareButton.hidden = !('share' in navigator)
    // Rejects if the user closes the sheet, which is no failure: the link is still there.
    shareButton.addEventListener('click', () => void navigator.share({ url: address.value }).catch(() => {}))
    const copyButton = byId('copy-button')
    // Browsers offer the clipboard on https and localhost only; elsewhere the link can be selected.
    copyButton.hidden = !('clipboard' in navigator)
    copyButton.addEventListener('click', async () => {
      address.select()
      await navigator.clipboard.writeText(address.value).then(
        () => {
          copyButton.textContent = words.say('hand-over.copied')
        },
        () => {},
      )
    })
    address.addEventListener('focus', () => address.select())
    this.#resetCopy = () => {
      copyButton.textContent = words.say('hand-over.copy')
    }
  }

  readonly #resetCopy: () => void

  show({ handoverUrl, expiresAt }: HandOver): void {
    address.value = handoverUrl
    this.#resetCopy()
    panel.hidden = false
    openButton.hidden = true
    panel.scrollIntoView({ block: 'nearest' })
    address.focus()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.hide(), expiresAt - this.#clock.now())
  }

  /** Hides the link, which has a secret in it, and offers a new one. */
  hide(): void {
    clearTimeout(this.#timer)
    address.value = ''
    panel.hidden = true
    openButton.hidden = false
  }
}
