import { encode } from 'uqr'
import type { StartedOrder } from '../../shared/orders.ts'
import { isLoopbackHost } from '../../shared/origin.ts'
import { minutesAndSeconds } from './countdown.ts'
import { elementStyle } from './style.ts'
import type { SignInTexts } from './texts.ts'

/** Actions of the view's buttons. */
export interface ViewActions {
  readonly renew: () => void
  readonly cancel: () => void
  /** Gets the six digits of a return code. */
  readonly submitCode: (returnCode: string) => void
  /** Shows or hides the wallets on this device. */
  readonly toggleWallets: () => void
}

/** How the wallets on this device are offered. */
export interface WalletOffer {
  readonly isOffered: boolean
  /** Whether they are what the user sees first, without the QR code. */
  readonly isFirst: boolean
  /** Whether they are above the QR code. */
  readonly isAbove: boolean
}

/** Mode of the view: it decides which of the QR code, the confirmation code, the field and the buttons are visible. */
export type ViewMode = 'offer' | 'starting' | 'scan' | 'answer' | 'enter-code' | 'done' | 'again'

/** Number of digits of a return code. */
const returnCodeLength = 6

/** The content of the element's shadow root. */
export class SignInView {
  readonly #root: ShadowRoot
  readonly #qr = part('div', 'qr')
  readonly #steps = part('ol', 'steps')
  readonly #hint = part('p', 'hint')
  readonly #status = part('p', 'status')
  readonly #codeBox = part('div', 'code-box')
  readonly #codeLabel = part('p', 'code-label')
  readonly #code = part('p', 'code')
  readonly #form = part('form', 'return-code')
  readonly #fieldLabel = part('label', 'return-code-label')
  readonly #field = part('input', 'return-code-field')
  readonly #submit = part('button', 'submit')
  readonly #countdown = part('p', 'countdown')
  readonly #copy = part('button', 'copy')
  readonly #cancel = part('button', 'cancel')
  readonly #renew = part('button', 'renew')
  readonly #otherDevice = part('button', 'other-device')
  /** The sign-in with a wallet on this device. */
  readonly #device = part('div', 'device')
  readonly #thisDevice = part('button', 'this-device')
  readonly #wallets = part('div', 'device-wallets')
  readonly #deviceStatus = part('p', 'device-status')
  #isOffered = false
  #isFirst = false
  #mode: ViewMode = 'starting'
  #texts: SignInTexts
  #claimUrl = ''

  constructor(host: HTMLElement, texts: SignInTexts, actions: ViewActions) {
    this.#texts = texts
    this.#root = host.attachShadow({ mode: 'open' })
    // A constructed style sheet works under a Content-Security-Policy that forbids inline styles.
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(elementStyle)
    this.#root.adoptedStyleSheets = [sheet]
    this.#status.id = 'status'
    this.#status.setAttribute('role', 'status')
    this.#countdown.setAttribute('role', 'timer')
    this.#codeBox.append(this.#codeLabel, this.#code)
    this.#field.id = 'return-code'
    this.#field.inputMode = 'numeric'
    this.#field.autocomplete = 'one-time-code'
    this.#field.setAttribute('aria-describedby', this.#status.id)
    this.#fieldLabel.htmlFor = this.#field.id
    this.#form.append(this.#fieldLabel, this.#field)
    this.#form.id = 'form'
    this.#submit.setAttribute('form', this.#form.id)
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault()
      this.#submitCode(actions)
    })
    this.#field.addEventListener('input', () => {
      // Codes are pasted and spoken in groups.
      this.#field.value = this.#field.value.replace(/\D/g, '').slice(0, returnCodeLength)
      this.#submitCode(actions)
    })
    const buttons = part('div', 'actions')
    buttons.append(this.#copy, this.#submit, this.#cancel, this.#renew, this.#otherDevice)
    for (const button of [this.#copy, this.#cancel, this.#renew, this.#otherDevice, this.#thisDevice]) {
      button.type = 'button'
    }
    this.#copy.addEventListener('click', () => void this.#copyLink())
    this.#cancel.addEventListener('click', actions.cancel)
    this.#renew.addEventListener('click', actions.renew)
    this.#otherDevice.addEventListener('click', actions.renew)
    this.#thisDevice.addEventListener('click', actions.toggleWallets)
    this.#thisDevice.setAttribute('aria-expanded', 'false')
    this.#deviceStatus.setAttribute('role', 'status')
    this.#device.append(this.#thisDevice)
    this.#root.append(
      this.#qr,
      this.#hint,
      this.#status,
      this.#steps,
      this.#codeBox,
      this.#form,
      this.#countdown,
      buttons,
    )
    this.setTexts(texts)
    this.show('starting', '')
  }

  setTexts(texts: SignInTexts): void {
    this.#texts = texts
    this.#codeLabel.textContent = texts.codeLabel
    this.#fieldLabel.textContent = texts.returnCodeLabel
    this.#steps.replaceChildren(
      step(texts.stepCamera, pictures.camera),
      step(texts.stepOpen, pictures.corners),
      step(texts.stepApprove, pictures.tick),
    )
    this.#sayIfLocal()
    this.#submit.textContent = texts.submit
    this.#copy.textContent = texts.copy
    this.#cancel.textContent = texts.cancel
    this.#renew.textContent = texts.renew
    this.#otherDevice.textContent = texts.otherDevice
    this.#thisDevice.textContent = texts.thisDevice
  }

  /** Shows or hides the sign-in with a wallet on this device. */
  offerWallets({ isOffered, isFirst, isAbove }: WalletOffer): void {
    this.#isOffered = isOffered
    this.#isFirst = isFirst
    if (isAbove) this.#root.prepend(this.#device)
    else this.#root.append(this.#device)
  }

  /** Shows the place for the wallets on this device, and returns it. */
  openWallets(): HTMLElement {
    this.#device.append(this.#deviceStatus, this.#wallets)
    this.#showDevice()
    return this.#wallets
  }

  closeWallets(text: string): void {
    this.#wallets.remove()
    this.sayOfWallet(text)
    this.#showDevice()
  }

  sayOfWallet(text: string): void {
    if (this.#deviceStatus.textContent !== text) this.#deviceStatus.textContent = text
  }

  #showDevice(): void {
    const isOpen = this.#wallets.isConnected
    const isPhoneBusy = this.#mode === 'answer' || this.#mode === 'enter-code'
    this.#device.hidden = !this.#isOffered || this.#mode === 'done' || (isPhoneBusy && !isOpen)
    this.#thisDevice.hidden = isOpen && this.#isFirst
    this.#thisDevice.setAttribute('aria-expanded', String(isOpen))
  }

  setOrder({ claimUrl, confirmationCode }: StartedOrder): void {
    this.#claimUrl = claimUrl
    this.#sayIfLocal()
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

  /** Says so if the code leads to this computer. */
  #sayIfLocal(): void {
    const host = this.#claimUrl === '' ? '' : new URL(this.#claimUrl).hostname
    this.#hint.textContent = isLoopbackHost(host) ? this.#texts.localOnly.replace('{host}', host) : ''
  }

  show(mode: ViewMode, text: string): void {
    const focused = this.#root.activeElement
    const running = mode === 'scan' || mode === 'answer'
    // Only one phone can claim an order: for a second one, the code would only lead to an error.
    this.#qr.hidden = mode !== 'scan'
    this.#copy.hidden = mode !== 'scan'
    this.#hint.hidden = mode !== 'scan' || this.#hint.textContent === ''
    // On a phone, the wallets that are on it come first, and another device scans the code.
    this.#steps.hidden = mode !== 'scan' || this.#isFirst
    this.#codeBox.hidden = !running || this.#code.textContent === ''
    this.#form.hidden = mode !== 'enter-code'
    this.#submit.hidden = mode !== 'enter-code'
    this.#cancel.hidden = !running && mode !== 'enter-code'
    this.#renew.hidden = mode !== 'again'
    this.#otherDevice.hidden = mode !== 'offer'
    this.#status.hidden = mode === 'offer'
    this.#mode = mode
    this.#showDevice()
    if (!running) {
      this.#claimUrl = ''
      this.#qr.replaceChildren()
      this.#code.replaceChildren()
    }
    this.say(text)
    if (mode === 'enter-code') this.askForCode()
    // Hiding the focused control would move the keyboard's focus out of the element.
    else if (mode === 'again' && focused?.closest('[hidden]')) this.#renew.focus()
  }

  /** Empties the field for the return code. `isWrong` says whether the last code was wrong. */
  askForCode(isWrong = false): void {
    this.#field.value = ''
    this.#field.ariaInvalid = isWrong ? 'true' : null
    this.setChecking(false)
    if (this.#root.activeElement !== null || !isControlFocused()) this.#field.focus()
  }

  /** Whether a return code is being checked: meanwhile it cannot be changed. */
  setChecking(isChecking: boolean): void {
    this.#field.readOnly = isChecking
  }

  #submitCode(actions: ViewActions): void {
    const code = this.#field.value
    if (code.length === returnCodeLength && !this.#field.readOnly) actions.submitCode(code)
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

/**
 * Whether the user is at a control of the page, which must not lose the focus. Headings have it for screen readers
 * only.
 */
function isControlFocused(): boolean {
  const focused = document.activeElement
  return focused instanceof HTMLElement && (focused.tabIndex >= 0 || focused.shadowRoot !== null)
}

/** Pictures of the steps: a camera, the corners that scanners show, a tick. */
const pictures = {
  camera: 'M4 7h3l1.5-2h7L17 7h3v12H4zM12 10a3 3 0 1 0 0 6 3 3 0 0 0 0-6',
  corners: 'M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5M9 9h6v6H9z',
  tick: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M8 12l3 3 5-6',
} as const

function step(text: string, picture: string): HTMLLIElement {
  const item = document.createElement('li')
  const image = document.createElementNS(svg, 'svg')
  image.setAttribute('viewBox', '0 0 24 24')
  image.setAttribute('aria-hidden', 'true')
  image.append(path(picture, 'none'))
  const words = document.createElement('span')
  words.textContent = text
  item.append(image, words)
  return item
}

function part<Name extends 'div' | 'ol' | 'p' | 'button' | 'form' | 'label' | 'input'>(
  name: Name,
  label: string,
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  element.setAttribute('part', label)
  return element
}

const svg = 'http://www.w3.org/2000/svg'

/** A QR code as an SVG image. It is black on white even on a dark page, because many scanners read nothing else. */
function qrImage(text: string, label: string): SVGSVGElement {
  // The quiet zone of the standard, four modules on each side.
  const { data, size } = encode(text, { ecc: 'L', border: 4 })
  const image = document.createElementNS(svg, 'svg')
  image.setAttribute('viewBox', `0 0 ${size} ${size}`)
  image.setAttribute('shape-rendering', 'crispEdges')
  image.setAttribute('role', 'img')
  image.setAttribute('aria-label', label)
  const dark = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('')
  image.append(path(`M0 0h${size}v${size}H0z`, '#fff'), path(dark, '#000'))
  return image
}

function path(d: string, fill: string): SVGPathElement {
  const element = document.createElementNS(svg, 'path')
  element.setAttribute('d', d)
  element.setAttribute('fill', fill)
  return element
}
