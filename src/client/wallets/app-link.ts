import type { AppAddress, CountersignWalletsEvents } from './chooser-events.ts'
import type { ChooserTexts } from './chooser-texts.ts'
import { setFlag } from './flag.ts'
import type { WalletApp } from './found.ts'

/** Tells the page of an event of the chooser. */
type Tell = <Name extends 'countersign:open-in' | 'countersign:link-error'>(
  name: Name,
  detail: CountersignWalletsEvents[Name],
) => void

/** How long an address that was made for one tap is offered for another, in milliseconds. A hand-over ticket lasts a minute. */
const addressLifeMs = 45_000

/**
 * The entry of a wallet's app. With an address it is a link, because phones open apps by links that users tap. Without one it is a
 * button, which makes the address, goes there, and becomes a link for a second tap.
 */
export class AppLink {
  readonly item = document.createElement('li')
  readonly #tell: Tell
  readonly #note = document.createElement('p')
  #control: HTMLAnchorElement | HTMLButtonElement | undefined
  #made: string | undefined
  #forget: ReturnType<typeof setTimeout> | undefined
  #show = (): void => {}

  constructor(tell: Tell) {
    this.#tell = tell
    this.#note.setAttribute('part', 'note')
    this.#note.setAttribute('role', 'status')
    this.item.append(this.#note)
  }

  show(app: WalletApp, address: AppAddress | undefined, texts: ChooserTexts, isDisabled: boolean): void {
    this.#show = () => this.show(app, address, texts, isDisabled)
    const url = typeof address === 'string' ? address : this.#made
    const control = this.#use(url === undefined || isDisabled ? 'button' : 'a')
    control.textContent = texts.openIn.replace('{name}', () => app.name)
    if (control instanceof HTMLAnchorElement) {
      control.href = app.linkTo(url as string)
      control.onclick = () => this.#opened(app, texts)
    } else {
      setFlag(control, 'aria-disabled', isDisabled)
      control.onclick = () => {
        if (!isDisabled && typeof address === 'function') void this.#make(app, address, texts)
      }
    }
  }

  /** Forgets the address that was made, and what was said about it. */
  reset(): void {
    clearTimeout(this.#forget)
    this.#made = undefined
    this.#note.textContent = ''
  }

  #use(name: 'a' | 'button'): HTMLAnchorElement | HTMLButtonElement {
    if (this.#control?.localName === name) return this.#control
    const control = document.createElement(name)
    control.setAttribute('part', 'app')
    if (control instanceof HTMLButtonElement) control.type = 'button'
    const root = this.item.getRootNode() as Document | ShadowRoot
    const hadFocus = this.#control !== undefined && root.activeElement === this.#control
    this.#control?.remove()
    this.#control = control
    this.item.prepend(control)
    if (hadFocus) control.focus()
    return control
  }

  async #make(app: WalletApp, makeAddress: () => string | Promise<string>, texts: ChooserTexts): Promise<void> {
    this.#note.textContent = texts.opening
    try {
      const address = await makeAddress()
      const link = app.linkTo(address)
      this.#made = address
      this.#forget = setTimeout(() => {
        this.reset()
        this.#show()
      }, addressLifeMs)
      this.#show()
      this.#opened(app, texts)
      location.assign(link)
    } catch (error) {
      this.reset()
      this.#note.textContent = texts.openFailed
      this.#show()
      this.#tell('countersign:link-error', { app, error })
    }
  }

  #opened(app: WalletApp, texts: ChooserTexts): void {
    this.#note.textContent = texts.openAgain
    this.#tell('countersign:open-in', { app })
  }
}
