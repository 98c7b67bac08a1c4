import { reaches } from '../../shared/session.ts'
import { type CountersignClient, CountersignClientError, type KnownComputer, type Session } from '../client/index.ts'
import { describeDevice } from './device.ts'
import { byId } from './dom.ts'
import { type Row, showRows } from './rows.ts'
import type { Words } from './words.ts'

/** Options of {@link SessionLists}. */
export interface SessionListsOptions {
  readonly client: CountersignClient
  readonly words: Words
  /** Does what a button of a section is for, and shows all anew. */
  readonly act: (section: string, work: () => Promise<unknown>) => void
}

/** The content of the lists. */
export interface ListedSessions {
  readonly sessions: readonly Session[]
  readonly computers: readonly KnownComputer[]
}

/** The lists of `sessions.html`: the user's sessions, with a button to end each other one, and known computers. */
export class SessionLists {
  readonly #options: SessionListsOptions

  constructor(options: SessionListsOptions) {
    this.#options = options
    const { client, act } = options
    byId('end-others-button').addEventListener('click', () => act('sessions', () => client.revokeOtherSessions()))
  }

  /** Loads both. There are no computers if the service does not remember any. */
  async load(): Promise<ListedSessions> {
    const { client } = this.#options
    const [sessions, computers] = await Promise.all([
      client.listSessions(),
      client.listKnownComputers().catch(withoutComputers),
    ])
    return { sessions, computers }
  }

  /** Shows what the user of a session may see and end. */
  show(own: Session, { sessions, computers }: ListedSessions): void {
    const { client, words, act } = this.#options
    const mayEnd = (other: Session): boolean => !other.current && reaches(own, other)
    const sessionRow = (session: Session): Row => {
      const since = words.say('account.since', { time: words.moment(session.createdAt) })
      const note = session.current ? `${since} · ${words.say('account.this-device')}` : since
      const end = () => act('sessions', () => client.revokeSession(session.id))
      const action = mayEnd(session) ? { text: words.say('account.end'), act: end } : undefined
      return { title: describeDevice(session.userAgent, words), note, action }
    }
    const computerRow = ({ id, userAgent, lastUsedAt, current }: KnownComputer): Row => {
      const used = words.say('account.used', { time: words.moment(lastUsedAt) })
      const note = current ? `${used} · ${words.say('account.this-computer')}` : used
      const forget = () => act('computers', () => client.forgetKnownComputer(id))
      const action = { text: words.say('account.forget'), act: forget }
      return { title: describeDevice(userAgent, words), note, action }
    }
    showRows('sessions', sessions.map(sessionRow))
    showRows('computers', computers.map(computerRow))
    byId('end-others-button').hidden = !sessions.some(mayEnd)
  }
}

function withoutComputers(thrown: unknown): readonly KnownComputer[] {
  if (thrown instanceof CountersignClientError && thrown.code === 'NOT_ENABLED') return []
  throw thrown
}
