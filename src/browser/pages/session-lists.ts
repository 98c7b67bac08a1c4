import { reaches } from '../../shared/session.ts'
import { type CountersignClient, CountersignClientError, type KnownComputer, type Session } from '../client/index.ts'
import { describeDevice } from './device.ts'
import { byId } from './dom.ts'
import { ask, type Row, showRows } from './rows.ts'
import type { Words } from './words.ts'

/** Options of {@link SessionLists}. */
export interface SessionListsOptions {
  readonly client: CountersignClient
  readonly words: Words
  /** Does what a button of a section is for, and shows all anew. `work` resolves with what there is to say of it. */
  readonly act: (section: string, work: () => Promise<string>) => void
}

/** The content of the lists. */
export interface ListedSessions {
  readonly sessions: readonly Session[]
  readonly computers: readonly KnownComputer[]
}

/** The lists of `sessions.html`: the user's sessions, with a button to end each other one, and known computers. */
export class SessionLists {
  readonly #options: SessionListsOptions
  /** Number of sessions that the user may end. */
  #others = 0

  constructor(options: SessionListsOptions) {
    this.#options = options
    const { client, words, act } = options
    const button = byId('end-others-button')
    button.addEventListener('click', () => {
      const question = words.say('account.end-others.question', { count: String(this.#others) })
      const end = () => act('sessions', async () => this.#ended(await client.revokeOtherSessions()))
      ask(button, { text: words.say('account.end'), act: end, question }, words)
    })
  }

  #ended(count: number): string {
    return this.#options.words.say('account.ended', { count: String(count) })
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
      const since = words.say('account.signed-in', { time: words.day(session.createdAt) })
      const note = session.current ? `${since} · ${words.say('account.this-device')}` : since
      const end = () => act('sessions', () => client.revokeSession(session.id).then(() => this.#ended(1)))
      const action = mayEnd(session) ? { text: words.say('account.end'), act: end } : undefined
      const { userAgent } = session
      return { title: describeDevice(userAgent, words), note, userAgent, action }
    }
    const computerRow = ({ id, userAgent, lastUsedAt, current }: KnownComputer): Row => {
      const used = words.say('account.used', { time: words.day(lastUsedAt) })
      const note = current ? `${used} · ${words.say('account.this-computer')}` : used
      const forget = () =>
        act('computers', () => client.forgetKnownComputer(id).then(() => words.say('account.forgotten')))
      const action = { text: words.say('account.forget'), act: forget }
      return { title: describeDevice(userAgent, words), note, userAgent, action }
    }
    showRows('sessions', sessions.map(sessionRow), words)
    showRows('computers', computers.map(computerRow), words)
    this.#others = sessions.filter(mayEnd).length
    byId('sessions').querySelector('.ask')?.remove()
    byId('end-others-button').hidden = this.#others === 0
  }
}

function withoutComputers(thrown: unknown): readonly KnownComputer[] {
  if (thrown instanceof CountersignClientError && thrown.code === 'NOT_ENABLED') return []
  throw thrown
}
