import { type CountersignClient, CountersignClientError, type KnownComputer, type Session } from '../client/index.ts'
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

/** Runs the action of a button. */
export type Act = (work: () => Promise<void>) => Promise<void>

/**
 * Lists the user's sessions, with a button to end each of the others, and the known computers, with a button to forget
 * each. `act` runs a button's action.
 */
export async function showSessions(client: CountersignClient, act: Act): Promise<void> {
  const [sessions, computers] = await Promise.all([client.listSessions(), knownComputers(client)])
  byId('revoke-others-button').hidden = sessions.length < 2
  byId('known-computers').hidden = computers.length === 0
  /** What a button does. Afterwards the focused button is gone. */
  const onPress = (work: () => Promise<void>) => () =>
    act(async () => {
      await work()
      await showSessions(client, act)
      byId('sessions-title').focus()
    })
  byId('sessions').replaceChildren(
    ...sessions.map(({ id, userAgent, ip, createdAt, current }) => {
      const device = describeDevice(userAgent)
      const end = { text: 'End', label: `End the session of ${device}`, act: onPress(() => client.revokeSession(id)) }
      const title = current ? `${device} (this session)` : device
      return row(title, `Since ${moment.format(createdAt)}, ${from(ip)}`, current ? undefined : end)
    }),
  )
  byId('computers').replaceChildren(
    ...computers.map(({ id, userAgent, ip, createdAt, lastUsedAt, current }) => {
      const device = describeDevice(userAgent)
      const forget = { text: 'Forget', label: `Forget ${device}`, act: onPress(() => client.forgetKnownComputer(id)) }
      const title = current ? `${device} (this computer)` : device
      const used = `Since ${moment.format(createdAt)}, last used ${moment.format(lastUsedAt)}, ${from(ip)}`
      return row(title, used, forget)
    }),
  )
}

/** The user's known computers; none if the service does not remember any. */
async function knownComputers(client: CountersignClient): Promise<readonly KnownComputer[]> {
  try {
    return await client.listKnownComputers()
  } catch (thrown) {
    if (thrown instanceof CountersignClientError && thrown.code === 'NOT_ENABLED') return []
    throw thrown
  }
}

function from(ip: string): string {
  return `from ${ip || 'an unknown address'}`
}

interface RowButton {
  readonly text: string
  readonly label: string
  readonly act: () => Promise<void>
}

function row(title: string, details: string, action: RowButton | undefined): HTMLElement {
  const item = element('li', '')
  const text = element('div', 'grow')
  text.append(element('p', 'strong', title), element('p', '', details))
  item.append(text)
  if (action !== undefined) {
    const button = element('button', 'button plain small', action.text)
    button.type = 'button'
    button.setAttribute('aria-label', action.label)
    button.addEventListener('click', () => void action.act())
    item.append(button)
  }
  return item
}
