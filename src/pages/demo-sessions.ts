import type { CountersignClient, Session } from '../client/index.ts'
import { describeDevice } from './device.ts'
import { byId, element, fill } from './dom.ts'

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** Shows the caller's session. */
export function showSession(session: Session): void {
  const root = byId('signed-in')
  const how = session.orderId === undefined ? 'on this device' : 'with a phone'
  fill(root, 'address', session.address)
  fill(root, 'adapter', session.adapterId)
  fill(root, 'user', session.userId)
  fill(root, 'since', `${moment.format(session.createdAt)}, ${how}`)
  fill(root, 'until', `${moment.format(session.expiresAt)}, or later if you keep using it`)
}

/** Lists the user's sessions, with a button to end each of the others. `act` runs a button's action. */
export async function showSessions(
  client: CountersignClient,
  act: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const sessions = await client.listSessions()
  byId('revoke-others-button').hidden = sessions.length < 2
  const end = async (session: Session): Promise<void> => {
    await client.revokeSession(session.id)
    await showSessions(client, act)
    // The focused button is gone.
    byId('sessions-title').focus()
  }
  byId('sessions').replaceChildren(...sessions.map((session) => row(session, () => act(() => end(session)))))
}

function row(session: Session, end: () => Promise<void>): HTMLElement {
  const device = describeDevice(session.userAgent)
  const item = element('li', '')
  const text = element('div', '')
  text.append(
    element('p', 'strong', session.current ? `${device} (this session)` : device),
    element('p', '', `Since ${moment.format(session.createdAt)}, from ${session.ip || 'an unknown address'}`),
  )
  item.append(text)
  if (!session.current) {
    const button = element('button', 'button plain small', 'End')
    button.type = 'button'
    button.setAttribute('aria-label', `End the session of ${device}`)
    button.addEventListener('click', () => void end())
    item.append(button)
  }
  return item
}
