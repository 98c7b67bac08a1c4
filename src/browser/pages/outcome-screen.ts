import { Countdown, minutesAndSeconds } from '../element/countdown.ts'
import { byId, fill } from './dom.ts'
import type { HeldApproval } from './held-claim.ts'
import { siteName } from './requester-card.ts'
import type { ServiceClock } from './service-clock.ts'
import type { Words } from './words.ts'

const root = byId('outcome')

/** Where an order is after the user's part in it. */
export type Stage = 'code' | 'approved' | 'finalized' | 'moved'

/** What the screen shows of a stage. */
interface Shown {
  readonly stage: Stage
  readonly title: string
  readonly text: string
  /** What the button that takes it back says; none if it is empty. */
  readonly stop: string
  /** The approval whose site and time are shown. */
  readonly of?: HeldApproval | undefined
}

/** What comes of an approval: the code to type on the computer, what the computer did, and the way to take it back. */
export class OutcomeScreen {
  readonly #words: Words
  readonly #clock: ServiceClock
  readonly #countdown: Countdown
  #stage: Stage | undefined

  /** `onLate` is called when the time to type the code is over. */
  constructor(words: Words, clock: ServiceClock, onLate: () => void) {
    this.#words = words
    this.#clock = clock
    this.#countdown = new Countdown((seconds) => {
      fill(root, 'goodFor', seconds ? words.say('code.good-for', { time: minutesAndSeconds(seconds) }) : '')
    }, onLate)
    for (const change of ['online', 'offline']) addEventListener(change, () => this.#fillStatus())
  }

  /** Shows the code for the computer. Returns the headline. */
  showCode({ origin, until }: HeldApproval, returnCode: string): string {
    const words = this.#words
    const title = words.say('code.title', { origin })
    if (this.#stage === 'code') return title
    fillCode(returnCode)
    this.#countdown.start(until - this.#clock.now())
    return this.#show({ stage: 'code', title, text: words.say('code.hint'), stop: words.say('code.stop') })
  }

  /** Shows that the order is approved and the computer continues by itself. Returns the headline. */
  showApproved(approved: HeldApproval | undefined): string {
    const words = this.#words
    const title = words.say('outcome.approved.title')
    if (this.#stage === 'approved') return title
    const text = words.say('outcome.approved.text')
    return this.#show({ stage: 'approved', title, text, stop: words.say('outcome.approved.not-me'), of: approved })
  }

  /** Shows that the computer has finished. Returns the headline. */
  showFinalized(approved: HeldApproval): string {
    const words = this.#words
    const { kind } = approved
    const title = words.say(`outcome.${kind}.title`)
    const stop = kind === 'login' ? words.say('outcome.login.not-me') : ''
    return this.#show({ stage: 'finalized', title, text: words.say(`outcome.${kind}.text`), stop, of: approved })
  }

  /** Shows that another browser, perhaps a wallet's, has taken the order over. Returns the headline. */
  showMoved(to: 'browser' | 'wallet'): string {
    const words = this.#words
    return this.#show({
      stage: 'moved',
      title: words.say(to === 'wallet' ? 'outcome.moved.wallet' : 'outcome.moved.title'),
      text: words.say('outcome.moved.text'),
      stop: words.say('code.stop'),
    })
  }

  /** Stops what the screen does by itself. */
  leave(): void {
    this.#stage = undefined
    this.#countdown.stop()
    fillCode('')
  }

  #show({ stage, title, text, stop, of }: Shown): string {
    if (stage !== 'code') this.leave()
    this.#stage = stage
    root.dataset.stage = stage
    root.dataset.seal = stage === 'moved' ? 'go' : 'yes'
    fill(root, 'outcome', title)
    const about = of && this.#words.join(siteName(of.origin), this.#words.time(this.#clock.now()))
    fill(root, 'outcomeAbout', about)
    fill(root, 'outcomeText', text)
    fill(root, 'stop', stop)
    this.#fillStatus()
    return title
  }

  #fillStatus(): void {
    const waits = this.#stage === 'code' || this.#stage === 'approved'
    const status = navigator.onLine ? 'outcome.waiting' : 'outcome.offline'
    fill(root, 'outcomeStatus', waits ? this.#words.say(status) : '')
  }
}

/** Writes the code in two groups to read, and once more digit by digit for screen readers. */
function fillCode(digits: string): void {
  const shown = document.createElement('span')
  shown.ariaHidden = 'true'
  const groups = [digits.slice(0, 3), digits.slice(3)]
  shown.append(
    ...groups.map((group) => {
      const part = document.createElement('span')
      part.textContent = group
      return part
    }),
  )
  const spoken = document.createElement('span')
  spoken.className = 'spoken'
  spoken.textContent = [...digits].join(' ')
  byId('return-code').replaceChildren(shown, spoken)
}
