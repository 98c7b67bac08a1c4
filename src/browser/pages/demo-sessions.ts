import { builtInAdapters, isBuiltIn } from '../../shared/adapters.ts'
import { type CountersignClient, CountersignClientError, type KnownComputer, type Session } from '../client/index.ts'
import { byId, fill } from './dom.ts'
import { computerRow, rowElement, sessionRow } from './rows.ts'
import type { Words } from './words.ts'

/** Shows the caller's session. */
export function showSession(session: Session, words: Words): void {
  const root = byId('signed-in')
  const { adapterId } = session
  const since = { time: words.moment(session.createdAt) }
  fill(root, 'address', session.address)
  fill(root, 'adapter', isBuiltIn(adapterId) ? builtInAdapters[adapterId].name : adapterId)
  fill(root, 'user', session.userId)
  fill(root, 'since', words.say(session.orderId === undefined ? 'demo.session.device' : 'demo.session.phone', since))
  fill(root, 'until', words.say('demo.session.while-used', { time: words.moment(session.expiresAt) }))
}

/** Runs the action of a button. */
export type Act = (work: () => Promise<void>) => Promise<void>

/** What {@link showSessions} shows with. */
export interface SessionLists {
  readonly client: CountersignClient
  readonly words: Words
  /** Runs a button's action. */
  readonly act: Act
}

/**
 * Lists the user's sessions, with a button to end each of the others, and the known computers, with a button to forget
 * each.
 */
export async function showSessions({ client, words, act }: SessionLists): Promise<void> {
  const [sessions, computers] = await Promise.all([client.listSessions(), knownComputers(client)])
  byId('revoke-others-button').hidden = sessions.length < 2
  byId('known-computers').hidden = computers.length === 0
  /** What a button does. Afterwards the focused button is gone. */
  const onPress = (work: () => Promise<void>) => () => {
    void act(async () => {
      await work()
      await showSessions({ client, words, act })
      byId('sessions-title').focus()
    })
  }
  byId('sessions').replaceChildren(
    ...sessions.map((session) => {
      const end = onPress(() => client.revokeSession(session.id))
      return rowElement(sessionRow(session, words, session.current ? undefined : end))
    }),
  )
  byId('computers').replaceChildren(
    ...computers.map((computer) => {
      const forget = onPress(() => client.forgetKnownComputer(computer.id))
      return rowElement(computerRow(computer, words, forget))
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
