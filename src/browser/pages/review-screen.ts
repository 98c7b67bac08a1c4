import type { OrderChallenge } from '../client/index.ts'
import { minutesAndSeconds } from '../element/countdown.ts'
import { byId, fill } from './dom.ts'
import { foldLongTexts } from './folding.ts'
import { payloadView } from './payload-view.ts'
import { fillRequester } from './requester-card.ts'
import type { ServiceClock } from './service-clock.ts'
import type { Words } from './words.ts'

const root = byId('review')

/** The screen on which the user decides: who asks, for what, and what approving gives away. */
export class ReviewScreen {
  readonly #words: Words
  readonly #clock: ServiceClock
  #issuedAt = 0

  constructor(words: Words, clock: ServiceClock) {
    this.#words = words
    this.#clock = clock
    addEventListener('resize', () => foldLongTexts(root, words))
  }

  /** Fills in a challenge. Returns the headline. */
  fill(challenge: OrderChallenge): string {
    const words = this.#words
    const { kind, requester, confirmationCode } = challenge
    const title = words.say(`review.${kind}.title`)
    fill(root, 'title', title)
    fill(root, 'gives', words.say(`review.${kind}.gives`))
    this.#fillRequester(challenge)
    this.#fillSayings(challenge)
    byId('compare').hidden = confirmationCode === undefined
    fill(root, 'code', confirmationCode)
    const codeLater = confirmationCode === undefined
    fill(root, 'codeBefore', codeLater ? words.say('code.before', { origin: requester.origin }) : '')
    byId('remember').hidden = !challenge.canRememberComputer
    this.#fillPayload(challenge)
    fill(root, 'expected', challenge.expectedAddress ?? challenge.expectedPublicKeyHex)
    fill(root, 'ip', requester.ip)
    fill(root, 'userAgent', requester.userAgent)
    fill(root, 'payloadHash', challenge.payloadHash)
    this.fillText(challenge)
    return title
  }

  /** Fills in the exact text, which depends on the account that signs it. */
  fillText({ message }: OrderChallenge): void {
    fill(root, 'message', message)
  }

  /**
   * Looks after what depends on the layout and on the time, once the screen is visible and each second from then on.
   */
  refresh(secondsLeft: number | undefined, isWalletAwaited: boolean): void {
    const words = this.#words
    fill(root, 'ago', words.ago(Math.max(0, this.#clock.now() - this.#issuedAt)))
    const text = isWalletAwaited ? 'review.expires.signing' : 'review.expires'
    byId('countdown').textContent = secondsLeft ? words.say(text, { time: minutesAndSeconds(secondsLeft) }) : ''
  }

  /** Gives long texts their buttons. Needs the screen to be visible. */
  fold(): void {
    foldLongTexts(root, this.#words)
  }

  #fillRequester({ requester, issuedAt }: OrderChallenge): void {
    fillRequester(root, requester, this.#words)
    this.#issuedAt = issuedAt
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
    fill(root, 'says', says)
    fill(root, 'displayTitle', title)
    fill(root, 'displaySummary', summary)
  }

  #fillPayload({ payload, payloadAsWritten = payload }: OrderChallenge): void {
    byId('payload').hidden = payload === undefined
    if (payloadAsWritten === undefined) return
    root.querySelector('[data-slot="payload"]')?.replaceChildren(payloadView(payloadAsWritten, this.#words))
  }
}

/**
 * A text of the requester, whose white space the service has collapsed; `undefined` if there is nothing to be seen in
 * it.
 */
function visibleText(text = ''): string | undefined {
  const visible = /[^\s\p{Default_Ignorable_Code_Point}\u2800]/u
  return visible.test(text) ? text : undefined
}
