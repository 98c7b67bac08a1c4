import { encode } from 'uqr'
import type { StartedOrder } from '../../shared/orders.ts'
import { isLoopbackHost } from '../../shared/origin.ts'
import { englishTexts } from '../../shared/texts/english-element.ts'
import { shortAddress } from '../../shared/wallet-address.ts'
import { attachStyledRoot, english, part, write } from '../client/custom-element.ts'
import { CodeField } from './code-field.ts'
import { minutesAndSeconds } from './countdown.ts'
import { elementStyle } from './style.ts'
import type { SignInTexts } from './texts.ts'

for (const text of Object.values(englishTexts)) english.add(text)

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
  /** Whether the QR code is likely to lead to this computer. */
  readonly isLocal: boolean
}

/**
 * Mode of the view: it decides what is visible. `declined`, `expired` and `again` have a button for a new code, `retry`
 * one to try the same again. Without a service, as in `away`, no wallet on this device can sign in; and in `stuck`
 * nothing that the user can do here helps.
 */
export type ViewMode =
  | 'offer'
  | 'starting'
  | 'scan'
  | 'answer'
  | 'enter-code'
  | 'finishing'
  | 'done'
  | 'declined'
  | 'expired'
  | 'again'
  | 'away'
  | 'retry'
  | 'stuck'

/** The content of the element's shadow root. */
export class SignInView {
  readonly #root: ShadowRoot
  readonly #card = part('div', 'card')
  /** What is large: the QR code, the code to compare, the field for the return code, or a picture. */
  readonly #stage = part('div', 'stage')
  readonly #qr = part('div', 'qr')
  readonly #picture = part('div', 'picture')
  readonly #status = part('p', 'status')
  readonly #account = part('p', 'account')
  readonly #steps = part('ol', 'steps')
  readonly #codeBox = part('div', 'code-box')
  readonly #codeLabel = part('p', 'code-label')
  readonly #code = part('p', 'code')
  readonly #digits: CodeField
  readonly #submit = part('button', 'submit')
  readonly #countdown = part('p', 'countdown')
  /** What is said of the code that is large. */
  readonly #caption = part('div', 'caption')
  readonly #actions = part('div', 'actions')
  readonly #copy = part('button', 'copy')
  readonly #cancel = part('button', 'cancel')
  readonly #renew = part('button', 'renew')
  readonly #otherDevice = part('button', 'other-device')
  /** The sign-in with a wallet on this device. */
  readonly #device = part('div', 'device')
  readonly #thisDevice = part('button', 'this-device')
  readonly #wallets = part('div', 'device-wallets')
  readonly #deviceStatus = part('p', 'device-status')
  #offer: WalletOffer = { isOffered: false, isFirst: false, isAbove: false, isLocal: false }
  #mode: ViewMode = 'starting'
  /** Whether the user went for the wallets on this device last. */
  #isDeviceLast = false
  #texts: SignInTexts
  #claimUrl = ''

  constructor(host: HTMLElement, texts: SignInTexts, actions: ViewActions) {
    this.#texts = texts
    this.#root = attachStyledRoot(host, elementStyle)
    this.#status.id = 'status'
    this.#status.setAttribute('role', 'status')
    this.#countdown.setAttribute('role', 'timer')
    for (const exact of [this.#code, this.#account]) exact.translate = false
    this.#codeBox.append(this.#codeLabel, this.#code)
    this.#digits = new CodeField({ describedBy: this.#status.id, onCode: actions.submitCode })
    this.#submit.setAttribute('form', this.#digits.form.id)
    this.#actions.append(this.#copy, this.#submit, this.#cancel, this.#renew, this.#otherDevice)
    for (const button of [this.#copy, this.#cancel, this.#renew, this.#otherDevice, this.#thisDevice]) {
      button.type = 'button'
    }
    this.#copy.addEventListener('click', () => void this.#copyLink())
    this.#cancel.addEventListener('click', actions.cancel)
    for (const button of [this.#renew, this.#otherDevice]) {
      button.addEventListener('click', () => {
        this.#isDeviceLast = false
        actions.renew()
      })
    }
    this.#thisDevice.addEventListener('click', actions.toggleWallets)
    this.#thisDevice.setAttribute('aria-expanded', 'false')
    this.#deviceStatus.setAttribute('role', 'status')
    this.#device.append(this.#thisDevice)
    this.#caption.append(this.#countdown)
    this.#stage.append(this.#qr, this.#picture, this.#digits.form, this.#caption)
    this.#card.append(this.#stage, this.#status, this.#account, this.#steps, this.#actions)
    this.#root.append(this.#card)
    this.setTexts(texts)
    this.show('starting', '')
  }

  setTexts(texts: SignInTexts): void {
    this.#texts = texts
    const steps = [texts.stepCamera, texts.stepOpen, texts.stepApprove].map((text) => {
      const step = document.createElement('li')
      this.#write(step, text)
      return step
    })
    this.#steps.replaceChildren(...steps)
    this.#write(this.#codeLabel, texts.codeLabel)
    this.#write(this.#digits.label, texts.returnCodeLabel)
    this.#write(this.#submit, texts.submit)
    this.#write(this.#copy, texts.copy)
    this.#write(this.#cancel, texts.cancel)
    this.#sayRenew()
    this.#write(this.#otherDevice, texts.otherDevice)
    this.#write(this.#thisDevice, texts.thisDevice)
  }

  #sayRenew(): void {
    const isRetry = this.#mode === 'retry' || this.#mode === 'away'
    this.#write(this.#renew, isRetry ? this.#texts.tryAgain : this.#texts.renew)
  }

  #write(place: HTMLElement, text: string): void {
    write(place, text, this.#root.host)
  }

  /** Shows or hides the sign-in with a wallet on this device. */
  offerWallets(offer: WalletOffer): void {
    this.#offer = offer
    if (offer.isAbove) this.#card.prepend(this.#device)
    else this.#card.append(this.#device)
  }

  /** Shows the place for the wallets on this device, and returns it. */
  openWallets(): HTMLElement {
    this.#isDeviceLast = true
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
    this.#write(this.#deviceStatus, text)
  }

  #showDevice(): void {
    const isOpen = this.#wallets.isConnected
    const mode = this.#mode
    const isOfNoUse = ['answer', 'enter-code', 'finishing', 'away'].includes(mode)
    const isOver = mode === 'done' || mode === 'stuck'
    this.#device.hidden = !this.#offer.isOffered || isOver || (isOfNoUse && !isOpen)
    this.#thisDevice.hidden = isOpen && this.#offer.isFirst
    this.#thisDevice.setAttribute('aria-expanded', String(isOpen))
    // One button is filled: of an order that has ended, that of the way which was used last.
    const isDeviceMain = this.#renew.hidden ? this.#offer.isAbove : this.#isDeviceLast && !this.#device.hidden
    this.#thisDevice.classList.toggle('main', isDeviceMain)
    this.#renew.classList.toggle('main', !isDeviceMain)
  }

  /** The name of this computer that the QR code leads to, if it does: then no phone can open it. */
  get localHost(): string | undefined {
    const host = this.#claimUrl === '' ? '' : new URL(this.#claimUrl).hostname
    return isLoopbackHost(host) ? host : undefined
  }

  setOrder({ claimUrl, confirmationCode }: StartedOrder): void {
    this.#claimUrl = claimUrl
    this.#qr.replaceChildren(qrImage(claimUrl, this.#texts.qrLabel))
    const shown = Object.assign(document.createElement('span'), { textContent: confirmationCode, ariaHidden: 'true' })
    // Digit by digit, because the user compares them one by one.
    const digits = [...confirmationCode].join(' ')
    const spoken = Object.assign(document.createElement('span'), { className: 'spoken', textContent: digits })
    this.#code.replaceChildren(shown, spoken)
  }

  show(mode: ViewMode, text: string): void {
    const focused = this.#root.activeElement
    const { isFirst, isLocal } = this.#offer
    const running = mode === 'scan' || mode === 'answer'
    const hasQr = mode === 'starting' || mode === 'scan'
    const canCancel = hasQr || mode === 'answer' || mode === 'enter-code'
    this.#mode = mode
    if (mode === 'answer') this.#isDeviceLast = false
    followBackground(this.#root.host, this.#card)
    if (!running) {
      this.#claimUrl = ''
      this.#qr.replaceChildren()
      this.#code.replaceChildren()
    }
    const hasCode = running && this.#code.textContent !== ''
    // Only one phone can claim an order: for a second one, the code would only lead to an error. What comes has its
    // place from the start, so that nothing moves.
    this.#qr.hidden = !hasQr
    this.#qr.classList.toggle('bone', mode === 'starting')
    // On a phone, the wallets that are on it come first, and another device scans the code.
    const hasSteps = mode === 'starting' ? !isLocal : mode === 'scan' && this.localHost === undefined
    this.#steps.hidden = !hasSteps || isFirst
    this.#codeBox.hidden = !hasCode
    // A code to compare takes the place of the QR code.
    if (mode === 'answer') this.#stage.prepend(this.#codeBox)
    else this.#caption.prepend(this.#codeBox)
    this.#digits.form.hidden = mode !== 'enter-code'
    this.#card.classList.toggle('entering', mode === 'enter-code')
    const picture = hasCode ? undefined : pictureOf[mode]
    this.#picture.hidden = picture === undefined
    this.#picture.replaceChildren(...(picture === undefined ? [] : [icon(picture)]))
    this.#picture.classList.toggle('good', mode === 'done')
    this.#actions.classList.toggle('unsaid', mode === 'starting')
    this.#copy.hidden = !hasQr
    this.#submit.hidden = true
    this.#cancel.hidden = !canCancel
    this.#renew.hidden = !['declined', 'expired', 'again', 'away', 'retry'].includes(mode)
    this.#sayRenew()
    this.#otherDevice.hidden = mode !== 'offer'
    this.#status.hidden = mode === 'offer'
    this.#status.classList.toggle('long', isLocal && !isFirst && hasQr)
    this.#stage.hidden = mode === 'offer'
    this.#account.hidden = true
    this.#caption.hidden = !canCancel
    this.#showDevice()
    this.say(text)
    if (mode === 'enter-code') this.askForCode()
    // Hiding the focused control would move the keyboard's focus out of the element.
    else if (!this.#renew.hidden && focused?.closest('[hidden]')) this.#renew.focus()
  }

  /** Shows whose account it is, below what was said last. */
  showAccount(address: string): void {
    this.#account.textContent = shortAddress(address)
    this.#account.hidden = false
  }

  /** Empties the field for the return code. `problem` says what was wrong with the last one. */
  askForCode(problem = ''): void {
    this.#digits.empty(problem !== '')
    this.sayOfCode(problem)
    this.setChecking(false)
    this.#submit.hidden = true
    if (this.#root.activeElement !== null || !isControlFocused()) this.#digits.focus()
  }

  sayOfCode(problem: string): void {
    this.#write(this.#digits.problem, problem)
  }

  /** Whether a return code is being checked: meanwhile it cannot be changed. */
  setChecking(isChecking: boolean): void {
    this.#digits.isReadOnly = isChecking
    // The sixth digit submits the code. The button is for another try of the same.
    this.#submit.hidden = isChecking
  }

  say(text: string): void {
    this.#write(this.#status, text)
  }

  /** Shows the time left; without it, keeps its place. */
  showSecondsLeft(seconds: number | undefined): void {
    // The page may have changed to its dark form.
    followBackground(this.#root.host, this.#card)
    this.#countdown.classList.toggle('unsaid', seconds === undefined)
    this.#countdown.textContent = this.#texts.expiresIn.replace('{time}', minutesAndSeconds(seconds ?? 0))
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

const ring = 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18'
const tick = `${ring}M8 12l3 3 5-6`
const cross = `${ring}M9 9l6 6M15 9l-6 6`
const clock = `${ring}M12 7v5l3.5 2`
const phone = 'M8 2.5h8a1 1 0 0 1 1 1v17a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1v-17a1 1 0 0 1 1-1M11 18.5h2'
const trouble = `${ring}M12 7.5v5.5M12 16v.5`

/** The picture of lines of a mode, in place of a code. */
const pictureOf: Readonly<Partial<Record<ViewMode, string>>> = {
  answer: phone,
  finishing: phone,
  done: tick,
  declined: cross,
  expired: clock,
  again: trouble,
  away: trouble,
  retry: trouble,
  stuck: trouble,
}

/** A picture of lines, in the colour of the text. */
function icon(picture: string): SVGSVGElement {
  const image = svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' })
  image.append(svg('path', { d: picture, fill: 'none' }))
  return image
}

/** A QR code as an SVG image. It is black on white even on a dark page, because many scanners read nothing else. */
function qrImage(text: string, label: string): SVGSVGElement {
  // The quiet zone of the standard, four modules on each side.
  const { data, size } = encode(text, { ecc: 'L', border: 4 })
  const viewBox = `0 0 ${size} ${size}`
  const image = svg('svg', { viewBox, 'shape-rendering': 'crispEdges', role: 'img', 'aria-label': label })
  const dark = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('')
  image.append(svg('path', { d: `M0 0h${size}v${size}H0z`, fill: '#fff' }), svg('path', { d: dark, fill: '#000' }))
  return image
}

function svg<Name extends 'svg' | 'path'>(name: Name, attributes: Record<string, string>): SVGElementTagNameMap[Name] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value)
  return element
}

/**
 * Gives a part of the element the colour scheme of the background behind the element: many pages are dark without a
 * `color-scheme` that says so.
 */
function followBackground(host: Element, card: HTMLElement): void {
  const brightness = brightnessBehind(host, card)
  // Without a background, what is behind is the page's canvas, which its color-scheme decides.
  card.style.colorScheme = brightness === undefined ? '' : brightness < 0.5 ? 'dark' : 'light'
}

/** Brightness of the nearest opaque background, 0 to 1. */
function brightnessBehind(host: Element, card: HTMLElement): number | undefined {
  for (let element: Element | null = host; element !== null; element = parentOf(element)) {
    const { backgroundColor } = getComputedStyle(element)
    // A mix has the form `color(srgb r g b / a)`, with a page's colour in any form.
    card.style.outlineColor = `color-mix(in srgb, ${backgroundColor}, ${backgroundColor})`
    const mixed = getComputedStyle(card).outlineColor
    card.style.outlineColor = ''
    const [red = 0, green = 0, blue = 0, opacity = 1] = (mixed.match(/-?[\d.]+(e-?\d+)?/g) ?? []).map(Number)
    if (opacity >= 0.5) return 0.299 * red + 0.587 * green + 0.114 * blue
  }
  return undefined
}

function parentOf(element: Element): Element | null {
  if (element.assignedSlot !== null) return element.assignedSlot
  const parent = element.parentNode
  return parent instanceof ShadowRoot ? parent.host : element.parentElement
}
