import { CountersignSignIn, type CountersignSignInEvents } from '../client/element/element.ts'
import type { CountersignClient, Session, StartOrderOptions } from '../client/index.ts'
import { byId } from './dom.ts'

/**
 * Replaces the content of `place` with a `<countersign-sign-in>`. One that was there cancels its order. The session is in the
 * cookie only.
 */
export function showOrder(place: HTMLElement, client: CountersignClient, order: StartOrderOptions): CountersignSignIn {
  const element = new CountersignSignIn()
  element.client = client
  element.setAttribute('no-token-storage', '')
  element.setAttribute('kind', order.kind)
  if (order.displayTitle) element.setAttribute('display-title', order.displayTitle)
  if (order.displaySummary) element.setAttribute('display-summary', order.displaySummary)
  if (order.payload) element.setAttribute('payload', order.payload)
  place.replaceChildren(element)
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
export function preparePhoneSignIn(client: CountersignClient, onSession: (session: Session) => void): void {
  const place = byId('phone-sign-in')
  const button = byId('show-code-button')
  button.addEventListener('click', () => {
    button.hidden = true
    byId('phone-title').focus()
    const element = showOrder(place, client, { kind: 'login', displayTitle: 'Sign in to the demo' })
    onEvent(element, 'countersign:signed-in', ({ session }) => {
      place.replaceChildren()
      button.hidden = false
      onSession(session)
    })
  })
}
