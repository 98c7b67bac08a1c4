import type { CountersignClient, Session, StartOrderOptions } from '../client/index.ts'
import { CountersignSignIn, type CountersignSignInEvents } from '../element/element.ts'
import { ClaimNotes } from './claim-notes.ts'
import { isSmallTouchScreen } from './device.ts'
import { byId } from './dom.ts'
import type { Words } from './words.ts'
import { signInTexts } from './words.ts'

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
  const notes = new ClaimNotes(words)
  element.client = client
  element.startOrder = async ({ signal }) => {
    const started = await client.startOrder({ ...order, signal })
    if (!signal.aborted) notes.show(started.claimUrl)
    return started
  }
  const created = isSmallTouchScreen() ? { created: words.say('demo.phone.created.here') } : {}
  element.texts = { ...signInTexts(words), ...created }
  if (isSmallTouchScreen()) {
    element.classList.add('without-code')
  }
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

/** Prepares the sign-in with a phone. The order starts only when the user asks for it. */
export function preparePhoneSignIn(
  client: CountersignClient,
  words: Words,
  onSession: (session: Session) => void,
): void {
  const place = byId('phone-sign-in')
  const button = byId('show-code-button')
  if (isSmallTouchScreen()) {
    byId('phone-text').textContent = words.say('demo.phone.text.here')
    button.textContent = words.say('demo.phone.button.here')
  }
  button.addEventListener('click', () => {
    button.hidden = true
    byId('phone-title').focus()
    const order = { kind: 'login', displayTitle: words.say('demo.phone.order') } as const
    const element = showOrder(place, { client, words, order })
    onEvent(element, 'countersign:signed-in', ({ session }) => {
      place.replaceChildren()
      button.hidden = false
      onSession(session)
    })
  })
}
