import { CountersignSignIn, type CountersignSignInEvents } from '../client/element.ts'
import type { CountersignClient, Session, StartOrderOptions } from '../client/index.ts'
import { byId } from './dom.ts'

/**
 * Puts `<countersign-sign-in>` into a place of the page, in the place of what is there: a former one then takes its order
 * back. The session it makes is in the cookie alone.
 */
export function showOrder(place: HTMLElement, client: CountersignClient, order: StartOrderOptions): CountersignSignIn {
  const element = new CountersignSignIn()
  element.client = client
  element.setAttribute('no-token-storage', '')
  element.setAttribute('kind', order.kind)
  if (order.displayTitle) element.setAttribute('display-title', order.displayTitle)
  if (order.displaySummary) element.setAttribute('display-summary', order.displaySummary)
  if (order.payloadHash) element.setAttribute('payload-hash', order.payloadHash)
  place.replaceChildren(element)
  return element
}

/** Calls `listener` with the detail of an element's event. */
export function onEvent<Name extends keyof CountersignSignInEvents>(
  element: CountersignSignIn,
  name: Name,
  listener: (detail: CountersignSignInEvents[Name]) => void,
): void {
  element.addEventListener(name, (event) => listener((event as CustomEvent<CountersignSignInEvents[Name]>).detail))
}

/** Lets people sign in with a phone. No order is made before they ask for it. */
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
