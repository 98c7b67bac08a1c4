import { reaches } from '../../shared/session.ts'
import { type CountersignClient, CountersignClientError, type KnownComputer, type Session } from '../client/index.ts'
import { byId } from './dom.ts'
import { computerRow, sessionRow, showRows } from './rows.ts'
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
    const sessionRows = sessions.map((session) => {
      const end = () => act('sessions', () => client.revokeSession(session.id))
      return sessionRow(session, words, mayEnd(session) ? end : undefined)
    })
    const computerRows = computers.map((computer) =>
      computerRow(computer, words, () => act('computers', () => client.forgetKnownComputer(computer.id))),
    )
    showRows('sessions', sessionRows)
    showRows('computers', computerRows)
    byId('end-others-button').hidden = !sessions.some(mayEnd)
  }
}

function withoutComputers(thrown: unknown): readonly KnownComputer[] {
  if (thrown instanceof CountersignClientError && thrown.code === 'NOT_ENABLED') return []
  throw thrown
}
