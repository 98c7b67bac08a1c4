import type { OrderChallenge, OrderKind, OrderPreview, OrderRequester } from '../client/index.ts'
import { Countdown, minutesAndSeconds } from '../element/countdown.ts'
import { describeDevice, isProgram } from './device.ts'
import { byId, element, fill } from './dom.ts'
import type { HeldApproval } from './held-claim.ts'
import { countValues, payloadView, readPayload } from './payload-view.ts'
import type { ServiceClock } from './phone-calls.ts'
import { type Who, whoView } from './who.ts'
import type { Words } from './words.ts'

const root = byId('request')
const asks = byId('asks')
const compare = byId('compare')
const start = byId('start')
const rest = byId('review')
const restTitle = byId('review-title')
const payloadPlace = byId('payload')
const bar = byId('choice').parentElement as HTMLElement
const approveButton = byId<HTMLButtonElement>('approve-button')

/** Who asks, as it is shown before the order is claimed and after. */
type ShownRequester = Pick<OrderRequester, 'origin' | 'userAgent' | 'sameNetwork' | 'startedWithKey' | 'startedBy'>

/**
 * The screen on which the user decides: who asks, from which device, what approving gives away, and the digits to
 * compare; once the order is claimed, beneath them all else that is known. So nothing is read twice. The answers are in
 * the bar at the bottom. "Approve" of a payload is live once its end has been in view and what is folded in it was
 * opened: the last of many values may be the one that matters.
 */
export class RequestScreen {
  readonly #words: Words
  readonly #clock: ServiceClock
  #issuedAt = 0
  /** Whether the order began with a code on a computer, where there is another one once this has expired. */
  #hasCode = false
  /** Number of values to sign that the user has not seen; 0 if there are none. */
  #unread = 0

  constructor(words: Words, clock: ServiceClock) {
    this.#words = words
    this.#clock = clock
    addEventListener('resize', () => foldLongTexts(rest, words))
    // The order of the listeners: folded texts change what is in view.
    for (const event of ['resize', 'scroll', 'click']) addEventListener(event, () => this.#look())
  }

  /** Fills in what the service says of an order that is not claimed. Returns the headline. */
  fillPreview(preview: OrderPreview): string {
    return this.#fillTop(preview.kind, preview, preview.confirmationCode)
  }

  /** Leaves the button alone: the service did not say who asks. */
  fillNothing(): void {
    for (const place of [asks, compare]) place.hidden = true
  }

  /** Fills in a challenge; `fromInbox` if it is of the user's inbox. Returns the headline. */
  fill(challenge: OrderChallenge, fromInbox: boolean): string {
    const { kind, requester, confirmationCode, issuedAt, sessionAccount: address } = challenge
    const { origin, startedBy = '' } = requester
    const host = siteName(origin)
    let title = this.#fillTop(kind, requester, confirmationCode)
    if (fromInbox) {
      this.#hasCode = false
      // Who asks stands above the title.
      const { startedBy: _, ...others } = requester
      fillRequester(others, this.#words)
      title = this.#words.say('review.inbox.title')
      fill(root, 'title', title)
      fill(root, 'asker', startedBy === '' ? host : this.#words.join(startedBy, host), startedBy, host)
      fill(root, 'gives', this.#words.say('review.inbox.gives', { host }), host)
    }
    if (kind === 'link') {
      fill(root, 'gives', this.#words.say('review.link.gives'))
      byId('account').replaceChildren(...(address === undefined ? [] : [whoView({ address }, this.#words)]))
    }
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
    this.#look()
  }

  /** Leaves what depends on how far the request has been read. */
  leave(): void {
    this.#unread = 0
    rest.hidden = true
    this.#look()
  }

  /** Looks how far the request has been read. */
  #look(): void {
    // Not `innerHeight`, which is smaller while the user zooms in.
    const edge = Math.min(document.documentElement.clientHeight, bar.getBoundingClientRect().top) + 1
    document.body.toggleAttribute('data-more', !rest.hidden && rest.getBoundingClientRect().bottom > edge)
    const isFolded = payloadPlace.querySelector('.folding:not([data-opened]) + .unfold') !== null
    if (!rest.hidden && !isFolded && payloadPlace.getBoundingClientRect().bottom <= edge) this.#unread = 0
    approveButton.disabled = this.#unread > 0
    const count = String(this.#unread)
    fill(bar, 'unread', this.#unread > 0 ? this.#words.say('payload.unread', { count }) : '')
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
    const ends = this.#hasCode ? 'review.expires.code' : 'review.expires'
    const text = isWalletAwaited ? 'review.expires.signing' : ends
    byId('countdown').textContent = secondsLeft ? words.say(text, { time: timeLeft(secondsLeft, words) }) : ''
  }

  #fillTop(kind: OrderKind, requester: ShownRequester, confirmationCode: string | undefined): string {
    const words = this.#words
    this.#hasCode = kind !== 'link'
    const site = siteName(requester.origin)
    const title = words.say(`review.${kind}.title`, { site })
    fill(root, 'title', title, site)
    fill(root, 'asker', '')
    // Whose account a wallet is added to, only the challenge says.
    fill(root, 'gives', words.say(kind === 'link' ? 'start.text' : `review.${kind}.gives`))
    fill(root, 'startHint', words.say(kind === 'link' ? 'start.hint.link' : 'start.hint'))
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
    payloadPlace.hidden = payload === undefined
    const { shown, nonce } = payloadAsWritten === undefined ? {} : readPayload(payloadAsWritten)
    fill(rest, 'nonce', nonce)
    if (shown === undefined) return
    this.#unread = countValues(shown)
    rest.querySelector('[data-slot="payload"]')?.replaceChildren(payloadView(shown, this.#words))
  }
}

/** Fills the card of who asks. */
function fillRequester(requester: ShownRequester, words: Words): void {
  const { origin, userAgent, sameNetwork, startedWithKey, startedBy } = requester
  // What a backend asks for by itself has no device.
  const devices = startedWithKey && userAgent === '' ? [] : [describeDevice(userAgent, words)]
  const names = startedBy === undefined ? [] : [words.say('review.asked-by', { name: startedBy })]
  fill(root, 'device', words.join(...names, ...devices))
  // People sign in from browsers: a program in place of one is rare.
  byId('asks-with').toggleAttribute('data-rare', !startedWithKey && isProgram(userAgent))
  const network = sameNetwork === undefined ? '' : words.say(sameNetwork ? 'network.same' : 'network.other')
  fill(root, 'network', network).dataset.same = String(sameNetwork)
  const site = siteName(origin)
  fill(root, 'unverified', startedWithKey ? '' : words.say('review.unverified', { host: site }), site)
  asks.hidden = startedWithKey && devices.length + names.length === 0 && sameNetwork === undefined
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
  /** Whose wallet signed. */
  readonly who?: Who | undefined
  /** What stands before that. */
  readonly with?: string
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
    const stop = words.say(fromInbox ? 'outcome.inbox.not-me' : 'outcome.approved.not-me')
    return this.#show({ stage: 'approved', title, text, stop, origin: approved?.origin, who: approved?.who })
  }

  /** Shows that the computer has finished. Returns the headline. */
  showFinalized(approved: HeldApproval): string {
    const words = this.#words
    const { kind, origin, fromInbox, who } = approved
    const name = fromInbox ? 'inbox' : kind
    const title = words.say(`outcome.${name}.title`)
    const stop = kind === 'sign' ? '' : words.say(`outcome.${kind}.not-me`)
    const by = kind === 'login' && who !== undefined ? words.say('outcome.login.with') : ''
    const text = words.say(`outcome.${name}.text`)
    return this.#show({ stage: 'finalized', title, text, stop, origin, who, with: by })
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

  #show({ stage, title, text, stop, origin, exact = '', who, with: by = '' }: Shown): string {
    if (stage !== 'code') this.leave()
    this.#stage = stage
    outcomeRoot.dataset.stage = stage
    outcomeRoot.dataset.seal = stage === 'moved' ? 'go' : 'yes'
    fill(outcomeRoot, 'outcome', title, exact)
    const about = origin && this.#words.join(siteName(origin), this.#words.time(this.#clock.now()))
    fill(outcomeRoot, 'outcomeAbout', about, origin === undefined ? '' : siteName(origin))
    fill(outcomeRoot, 'outcomeWith', by)
    byId('outcome-who').replaceChildren(...(who === undefined ? [] : [whoView(who, this.#words)]))
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
    text.toggleAttribute('data-opened', true)
    button.setAttribute('aria-expanded', String(open))
    button.textContent = words.say(open ? 'review.less' : 'review.more')
  })
  return button
}
