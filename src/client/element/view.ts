import type { StartedOrder } from '../types.ts'
import { minutesAndSeconds } from './countdown.ts'
import { qrImage } from './qr.ts'
import { elementStyle } from './style.ts'
import type { SignInTexts } from './texts.ts'

/** Actions of the view's buttons. */
export interface ViewActions {
  readonly renew: () => void
  readonly cancel: () => void
}

/** Mode of the view: it decides which of the QR code, the confirmation code and the buttons are visible. */
export type ViewMode = 'starting' | 'scan' | 'answer' | 'done' | 'again'

/** The content of the element's shadow root. */
export class SignInView {
  readonly #root: ShadowRoot
  readonly #qr = part('div', 'qr')
  readonly #status = part('p', 'status')
  readonly #codeBox = part('div', 'code-box')
  readonly #codeLabel = part('p', 'code-label')
  readonly #code = part('p', 'code')
  readonly #countdown = part('p', 'countdown')
  readonly #copy = part('button', 'copy')
  readonly #cancel = part('button', 'cancel')
  readonly #renew = part('button', 'renew')
  #texts: SignInTexts
  #claimUrl = ''

  constructor(host: HTMLElement, texts: SignInTexts, actions: ViewActions) {
    this.#texts = texts
    this.#root = host.attachShadow({ mode: 'open' })
    // A constructed style sheet works under a Content-Security-Policy that forbids inline styles.
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(elementStyle)
    this.#root.adoptedStyleSheets = [sheet]
    this.#status.setAttribute('role', 'status')
    this.#countdown.setAttribute('role', 'timer')
    this.#codeBox.append(this.#codeLabel, this.#code)
    const buttons = part('div', 'actions')
    buttons.append(this.#copy, this.#cancel, this.#renew)
    for (const button of [this.#copy, this.#cancel, this.#renew]) button.type = 'button'
    this.#copy.addEventListener('click', () => void this.#copyLink())
    this.#cancel.addEventListener('click', actions.cancel)
    this.#renew.addEventListener('click', actions.renew)
    this.#root.append(this.#qr, this.#status, this.#codeBox, this.#countdown, buttons)
    this.setTexts(texts)
    this.show('starting', '')
  }

  setTexts(texts: SignInTexts): void {
    this.#texts = texts
    this.#codeLabel.textContent = texts.codeLabel
    this.#copy.textContent = texts.copy
    this.#cancel.textContent = texts.cancel
    this.#renew.textContent = texts.renew
  }

  setOrder({ claimUrl, confirmationCode }: StartedOrder): void {
    this.#claimUrl = claimUrl
    this.#qr.replaceChildren(qrImage(claimUrl, this.#texts.qrLabel))
    const shown = document.createElement('span')
    shown.textContent = confirmationCode
    shown.ariaHidden = 'true'
    // Digit by digit, because the user compares them one by one.
    const spoken = document.createElement('span')
    spoken.className = 'spoken'
    spoken.textContent = [...confirmationCode].join(' ')
    this.#code.replaceChildren(shown, spoken)
  }

  show(mode: ViewMode, text: string): void {
    const focused = this.#root.activeElement
    const running = mode === 'scan' || mode === 'answer'
    // Only one phone can claim an order: for a second one, the code would only lead to an error.
    this.#qr.hidden = mode !== 'scan'
    this.#copy.hidden = mode !== 'scan'
    this.#codeBox.hidden = !running
    this.#cancel.hidden = !running
    this.#renew.hidden = mode !== 'again'
    if (!running) {
      this.#claimUrl = ''
      this.#qr.replaceChildren()
      this.#code.replaceChildren()
    }
    this.say(text)
    // Hiding the focused button would move the keyboard's focus out of the element.
    if (focused instanceof HTMLElement && focused.hidden && mode === 'again') this.#renew.focus()
  }

  say(text: string): void {
    if (this.#status.textContent !== text) this.#status.textContent = text
  }

  showSecondsLeft(seconds: number | undefined): void {
    const time = seconds === undefined ? '' : minutesAndSeconds(seconds)
    this.#countdown.hidden = seconds === undefined
    this.#countdown.textContent = this.#texts.expiresIn.replace('{time}', time)
  }

  async #copyLink(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.#claimUrl)
      this.say(this.#texts.copied)
    } catch {
      this.say(this.#texts.copyFailed)
    }
  }
}

function part<Name extends 'div' | 'p' | 'button'>(name: Name, label: string): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  element.setAttribute('part', label)
  return element
}
