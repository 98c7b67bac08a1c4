import { isLoopbackHost } from '../../shared/origin.ts'
import type { CountersignClient, Session, StartOrderOptions } from '../client/index.ts'
import { CountersignSignIn, type CountersignSignInEvents } from '../element/element.ts'
import { ClaimNotes, howToReach } from './claim-notes.ts'
import { isSmallTouchScreen } from './device.ts'
import { byId } from './dom.ts'
import type { Page } from './open-page.ts'
import type { Words } from './words.ts'
import { elementTexts } from './words.ts'

/** What a developer starts the demo with, so that a phone can reach it. */
const lanCommand = 'npm start -- --lan'

/** An order to show. */
interface OrderToShow {
  readonly client: CountersignClient
  readonly words: Words
  readonly order: StartOrderOptions
}

/**
 * Replaces the content of `place` with a `<countersign-sign-in>` and notes on its code. One that was there cancels its
 * order. The session is in the cookie only.
 */
export function showOrder(place: HTMLElement, { client, words, order }: OrderToShow): CountersignSignIn {
  const element = new CountersignSignIn()
  // The card of the sign-in says it already.
  const notes = new ClaimNotes(words, order.kind === 'sign' ? lanCommand : undefined)
  element.client = client
  element.startOrder = async ({ signal }) => {
    const started = await client.startOrder({ ...order, signal })
    if (!signal.aborted) notes.show(started.claimUrl)
    return started
  }
  const here = words.say('demo.phone.created.here')
  element.texts = { ...elementTexts(words), ...(isSmallTouchScreen() ? { created: here, localOnly: here } : {}) }
  element.classList.toggle('without-code', isSmallTouchScreen())
  element.classList.toggle('without-clipboard', !('clipboard' in navigator))
  onEvent(element, 'countersign:status', ({ status }) => status !== 'created' && notes.hide())
  onEvent(element, 'countersign:error', () => notes.hide())
  // The link is what a phone's user needs first.
  place.replaceChildren(...(isSmallTouchScreen() ? [notes.root, element] : [element, notes.root]))
  return element
}

/** Calls `listener` with the detail of each event of this name. */
export function onEvent<Name extends keyof CountersignSignInEvents>(
  element: CountersignSignIn,
  name: Name,
  listener: (detail: CountersignSignInEvents[Name]) => void,
): void {
  element.addEventListener(name, (event) => listener((event as CustomEvent<CountersignSignInEvents[Name]>).detail))
}

/** The sign-in with a phone. Its order starts when the user asks for it. */
export class PhoneSignIn {
  readonly #options: PhoneSignInOptions
  readonly #place = byId('phone-sign-in')
  readonly #button = byId('show-code-button')

  constructor(options: PhoneSignInOptions) {
    this.#options = options
    const { words } = options.page
    if (isSmallTouchScreen()) {
      byId('phone-text').textContent = words.say('demo.phone.text.here')
      this.#button.textContent = words.say('demo.phone.button.here')
    } else if (isLoopbackHost(location.hostname)) {
      byId('phone-text').replaceChildren(...howToReach(lanCommand, words))
    }
    this.#button.addEventListener('click', () => {
      this.#button.hidden = true
      byId('phone-title').focus()
      this.#start()
    })
  }

  /** Offers it. A running order is cancelled. */
  close(): void {
    this.#place.replaceChildren()
    this.#button.hidden = false
  }

  #start(): void {
    const { client, page, startsOrders, onSession } = this.#options
    const { words } = page
    // Where a backend starts the orders, a page's own has no words.
    const title = startsOrders ? { displayTitle: words.say('demo.phone.order') } : {}
    const order = { kind: 'login', ...title } as const
    const element = showOrder(this.#place, { client, words, order })
    element.classList.toggle('with-code', !isSmallTouchScreen())
    onEvent(element, 'countersign:signed-in', ({ session }) => {
      this.close()
      onSession(session)
    })
  }
}

/** Options of {@link PhoneSignIn}. */
export interface PhoneSignInOptions {
  readonly client: CountersignClient
  readonly page: Page
  /** Whether pages can start orders of every kind, with words. */
  readonly startsOrders: boolean
  readonly onSession: (session: Session) => void
}
