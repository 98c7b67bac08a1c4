import type { OrderChallenge, OrderKind, OrderPreview, OrderRequester } from '../client/index.ts'
import { Countdown, minutesAndSeconds } from '../element/countdown.ts'
import { describeDevice } from './device.ts'
import { byId, element, fill } from './dom.ts'
import type { HeldApproval } from './held-claim.ts'
import { payloadView, readPayload } from './payload-view.ts'
import type { ServiceClock } from './phone-calls.ts'
import type { Words } from './words.ts'

const root = byId('request')
const asks = byId('asks')
const compare = byId('compare')
const start = byId('start')
const rest = byId('review')
const restTitle = byId('review-title')

/** Who asks, as it is shown before the order is claimed and after. */
type ShownRequester = Pick<OrderRequester, 'origin' | 'userAgent' | 'sameNetwork' | 'startedWithKey' | 'startedBy'>

/**
 * The screen on which the user decides: who asks, from which device, what approving gives away, and the digits to
 * compare. Until the order is claimed, beneath them is the one button that claims it; then, in place of that button,
 * all else that is known, and the two answers. So nothing is read twice.
 */
export class RequestScreen {
  readonly #words: Words
  readonly #clock: ServiceClock
  #issuedAt = 0

  constructor(words: Words, clock: ServiceClock) {
    this.#words = words
    this.#clock = clock
    addEventListener('resize', () => foldLongTexts(rest, words))
  }

  /** Keeps places for what the service is going to say. */
  wait(): void {
    root.ariaBusy = 'true'
  }

  /** Fills in what the service says of an order that is not claimed. Returns the headline. */
  fillPreview(preview: OrderPreview): string {
    return this.#fillTop(preview.kind, preview, preview.confirmationCode)
  }

  /** Leaves the button alone: the service did not say who asks. */
  fillNothing(): void {
    root.ariaBusy = null
    for (const place of [asks, compare]) place.hidden = true
  }

  /** Fills in a challenge; `fromInbox` if it is of the user's inbox. Returns the headline. */
  fill(challenge: OrderChallenge, fromInbox: boolean): string {
    const { kind, requester, confirmationCode, issuedAt, sessionAccount: account = '' } = challenge
    const { origin } = requester
    const host = siteName(origin)
    const titleOfKind = this.#fillTop(kind, requester, confirmationCode)
    const title = fromInbox ? this.#words.say('review.inbox.title') : titleOfKind
    fill(root, 'title', title)
    if (fromInbox) fill(root, 'gives', this.#words.say('review.inbox.gives', { host }), host)
    if (kind === 'link') fill(root, 'gives', this.#words.say('review.link.gives', { account, origin }), account, origin)
    this.#issuedAt = issuedAt
    byId('asked').hidden = false
    this.#fillSayings(challenge)
    const codeLater = confirmationCode === undefined && !fromInbox
    const before = codeLater ? this.#words.say('code.before', { origin }) : ''
    fill(rest, 'codeBefore', before, origin)
    byId('remember').hidden = !challenge.canRememberComputer
    this.#fillPayload(challenge)
    fill(rest, 'expected', challenge.expectedAddress ?? challenge.expectedPublicKeyHex)
    fill(rest, 'ip', requester.ip)
    fill(rest, 'userAgent', requester.userAgent)
    fill(rest, 'payloadHash', challenge.payloadHash)
    this.fillText(challenge)
    return title
  }

  /**
   * Shows all of the challenge, in place of the button that claims. Needs the screen to be visible. If its beginning
   * was there before, the focus moves to what is new.
   */
  open(isNew: boolean): void {
    start.hidden = true
    rest.hidden = false
    if (!isNew) restTitle.focus({ preventScroll: true })
    foldLongTexts(rest, this.#words)
  }

  /** Fills in the exact text, which depends on the account that signs it. */
  fillText({ message }: OrderChallenge): void {
    fill(rest, 'message', message)
  }

  /**
   * Looks after what depends on the layout and on the time, once the screen is visible and each second from then on.
   */
  refresh(secondsLeft: number | undefined, isWalletAwaited: boolean): void {
    const words = this.#words
    fill(root, 'ago', words.ago(Math.max(0, this.#clock.now() - this.#issuedAt)))
    const text = isWalletAwaited ? 'review.expires.signing' : 'review.expires'
    byId('countdown').textContent = secondsLeft ? words.say(text, { time: timeLeft(secondsLeft, words) }) : ''
  }

  #fillTop(kind: OrderKind, requester: ShownRequester, confirmationCode: string | undefined): string {
    const words = this.#words
    const title = words.say(`review.${kind}.title`)
    root.ariaBusy = null
    fill(root, 'title', title)
    // Whose account a wallet is added to, only the challenge says.
    fill(root, 'gives', words.say(kind === 'link' ? 'start.text' : `review.${kind}.gives`))
    fill(root, 'startHint', words.say(kind === 'link' ? 'start.hint.link' : 'start.hint'))
    asks.hidden = false
    fillRequester(requester, words)
    compare.hidden = confirmationCode === undefined
    fillDigits(byId('code'), confirmationCode ?? '')
    return title
  }

  /** The requester's own words, marked as such. */
  #fillSayings({ displayTitle, displaySummary, requester }: OrderChallenge): void {
    const { host } = new URL(requester.origin)
    const title = visibleText(displayTitle)
    const summary = visibleText(displaySummary)
    byId('says').hidden = title === undefined && summary === undefined
    const says = requester.startedWithKey
      ? this.#words.say('review.says.site', { host })
      : this.#words.say('review.says.computer')
    fill(rest, 'says', says, host)
    fill(rest, 'displayTitle', title)
    fill(rest, 'displaySummary', summary)
  }

  #fillPayload({ payload, payloadAsWritten = payload }: OrderChallenge): void {
    byId('payload').hidden = payload === undefined
    const { shown, nonce } = payloadAsWritten === undefined ? {} : readPayload(payloadAsWritten)
    fill(rest, 'nonce', nonce)
    if (shown === undefined) return
    rest.querySelector('[data-slot="payload"]')?.replaceChildren(payloadView(shown, this.#words))
  }
}

/** Fills the card of who asks. */
function fillRequester(requester: ShownRequester, words: Words): void {
  const { origin, userAgent, sameNetwork, startedWithKey, startedBy } = requester
  fill(root, 'origin', siteName(origin))
  // What a backend asks for by itself has no device.
  const devices = startedWithKey && userAgent === '' ? [] : [describeDevice(userAgent, words)]
  const names = startedBy === undefined ? [] : [words.say('review.asked-by', { name: startedBy })]
  fill(root, 'device', words.join(...names, ...devices))
  const network = sameNetwork === undefined ? '' : words.say(sameNetwork ? 'network.same' : 'network.other')
  fill(root, 'network', network).dataset.same = String(sameNetwork)
  fill(root, 'unverified', startedWithKey ? '' : words.say('review.unverified'))
}

/** A site as people know it: the host, or the whole origin if it is not https. */
export function siteName(origin: string): string {
  const { protocol, host } = new URL(origin)
  return protocol === 'https:' ? host : origin
}

/** Orders of an inbox live up to a day. */
function timeLeft(seconds: number, words: Words): string {
  return seconds > 3600 ? words.left(seconds * 1000) : minutesAndSeconds(seconds)
}

/**
 * A text of the requester, whose white space the service has collapsed; `undefined` if there is nothing to be seen in
 * it.
 */
function visibleText(text = ''): string | undefined {
  const visible = /[^\s\p{Default_Ignorable_Code_Point}\u2800]/u
  return visible.test(text) ? text : undefined
}

const outcomeRoot = byId('outcome')

/** Where an order is after the user's part in it. */
export type Stage = 'code' | 'approved' | 'finalized' | 'moved'

/** What the screen shows of a stage. */
interface Shown {
  readonly stage: Stage
  readonly title: string
  readonly text: string
  /** What the button that takes it back says; none if it is empty. */
  readonly stop: string
  /** The requester, which is shown with the time. */
  readonly origin?: string | undefined
  /** The part of the title that no translation may change. */
  readonly exact?: string
}

/** Screen after an approval: the code to type on the computer, what the computer did, and the way to take it back. */
export class OutcomeScreen {
  readonly #words: Words
  readonly #clock: ServiceClock
  readonly #countdown: Countdown
  #stage: Stage | undefined
  #waiting: 'outcome.waiting' | 'outcome.waiting.link' | 'outcome.inbox.waiting' = 'outcome.waiting'

  /** `onLate` is called when the time to type the code is over. */
  constructor(words: Words, clock: ServiceClock, onLate: () => void) {
    this.#words = words
    this.#clock = clock
    this.#countdown = new Countdown((seconds) => {
      fill(outcomeRoot, 'goodFor', seconds ? words.say('code.good-for', { time: minutesAndSeconds(seconds) }) : '')
    }, onLate)
    for (const change of ['online', 'offline']) addEventListener(change, () => this.#fillStatus())
  }

  /** Shows the code for the computer. Returns the headline. */
  showCode({ kind, origin, until }: HeldApproval, returnCode: string): string {
    const words = this.#words
    const title = words.say('code.title', { origin })
    if (this.#stage === 'code') return title
    if (kind === 'link') this.#waiting = 'outcome.waiting.link'
    fillDigits(byId('return-code'), returnCode)
    this.#countdown.start(until - this.#clock.now())
    return this.#show({
      stage: 'code',
      title,
      text: words.say('code.hint'),
      stop: words.say('code.stop'),
      exact: origin,
    })
  }

  /** Shows that the order is approved and the computer continues by itself. Returns the headline. */
  showApproved(approved: HeldApproval | undefined): string {
    const words = this.#words
    const title = words.say('outcome.approved.title')
    if (this.#stage === 'approved') return title
    const fromInbox = approved?.fromInbox === true
    if (fromInbox) this.#waiting = 'outcome.inbox.waiting'
    const text = words.say(fromInbox ? 'outcome.inbox.approved.text' : 'outcome.approved.text')
    const stop = words.say('outcome.approved.not-me')
    return this.#show({ stage: 'approved', title, text, stop, origin: approved?.origin })
  }

  /** Shows that the computer has finished. Returns the headline. */
  showFinalized(approved: HeldApproval): string {
    const words = this.#words
    const { kind, origin, fromInbox } = approved
    const name = fromInbox ? 'inbox' : kind
    const title = words.say(`outcome.${name}.title`)
    const stop = kind === 'sign' ? '' : words.say(`outcome.${kind}.not-me`)
    return this.#show({ stage: 'finalized', title, text: words.say(`outcome.${name}.text`), stop, origin })
  }

  /** Shows that another browser, perhaps a wallet's, has taken the order over. Returns the headline. */
  showMoved(to: 'browser' | 'wallet', origin: string | undefined): string {
    const words = this.#words
    return this.#show({
      stage: 'moved',
      title: words.say(to === 'wallet' ? 'outcome.moved.wallet' : 'outcome.moved.title'),
      text: words.say('outcome.moved.text'),
      stop: words.say('code.stop'),
      origin,
    })
  }

  /** Stops what the screen does by itself. */
  leave(): void {
    this.#stage = undefined
    this.#countdown.stop()
    fillDigits(byId('return-code'), '')
  }

  #show({ stage, title, text, stop, origin, exact = '' }: Shown): string {
    if (stage !== 'code') this.leave()
    this.#stage = stage
    outcomeRoot.dataset.stage = stage
    outcomeRoot.dataset.seal = stage === 'moved' ? 'go' : 'yes'
    fill(outcomeRoot, 'outcome', title, exact)
    const about = origin && this.#words.join(siteName(origin), this.#words.time(this.#clock.now()))
    fill(outcomeRoot, 'outcomeAbout', about, origin === undefined ? '' : siteName(origin))
    fill(outcomeRoot, 'outcomeText', text)
    fill(outcomeRoot, 'stop', stop)
    this.#fillStatus()
    return title
  }

  #fillStatus(): void {
    const waits = this.#stage === 'code' || this.#stage === 'approved'
    const status = navigator.onLine ? this.#waiting : 'outcome.offline'
    fill(outcomeRoot, 'outcomeStatus', waits ? this.#words.say(status) : '')
  }
}

/** Writes a code in groups of three to read, and once more digit by digit for screen readers. */
function fillDigits(place: HTMLElement, digits: string): void {
  const shown = element('span', '', ...(digits.match(/.{1,3}/g) ?? []).map((group) => element('span', '', group)))
  shown.ariaHidden = 'true'
  place.replaceChildren(shown, element('span', 'spoken', [...digits].join(' ')))
}

/**
 * Gives each long text in `root` that is cut off a button that shows all of it. Call it whenever texts or their width
 * change.
 */
function foldLongTexts(root: HTMLElement, words: Words): void {
  for (const text of root.querySelectorAll<HTMLElement>('.folding')) {
    const button = text.nextElementSibling
    const isOpen = button?.getAttribute('aria-expanded') === 'true'
    if (isOpen) continue
    const isCut = text.scrollHeight > text.clientHeight + 1
    if (isCut && button?.className !== 'unfold') text.after(unfoldButton(text, words))
    if (!isCut && button?.className === 'unfold') button.remove()
  }
}

function unfoldButton(text: HTMLElement, words: Words): HTMLButtonElement {
  const button = element('button', 'unfold', words.say('review.more'))
  button.type = 'button'
  button.setAttribute('aria-expanded', 'false')
  button.addEventListener('click', () => {
    const open = text.toggleAttribute('data-open')
    button.setAttribute('aria-expanded', String(open))
    button.textContent = words.say(open ? 'review.less' : 'review.more')
  })
  return button
}
