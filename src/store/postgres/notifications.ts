import { createHash } from 'node:crypto'
import { type LinkEvents, type Linked, ReconnectingLink, withinTimeLimit } from '../reconnecting-link.ts'
import { Watchers } from '../watchers.ts'
import { type Access, clientClass, isAnswer, prepareSession, watchingName } from './connection.ts'
import { channel, statements } from './statements.ts'

/** Interval in milliseconds in which the connection that listens is asked whether it is still there. */
const askIntervalMs = 5000

/** Most payloads that wait to be sent. Watchers of others read again at their next heartbeat. */
const mostUnsent = 10_000

/** Most payloads of one statement, so that refusals do not grow with what waits. */
const mostTogether = 100

interface NotificationsEvents extends Required<LinkEvents> {
  /** The server refuses to notify, for the first time or again. */
  onRefused(): void
}

/** Wake-ups of watchers, here and on other instances. */
export class Notifications {
  /** The connection that listens and notifies. */
  readonly link: ReconnectingLink<Listener>
  readonly #events: NotificationsEvents
  readonly #watchers = new Watchers()
  /** Payloads that others are still to be notified of. */
  readonly #unsent = new Set<string>()
  #sending: Promise<void> | undefined
  #isRefused = false

  constructor(access: Access, events: NotificationsEvents) {
    this.#events = events
    this.link = new ReconnectingLink(() => listen(access, (payload) => this.#watchers.wake(payload)), {
      ...events,
      onUp: () => {
        events.onUp()
        // Notifications may have been missed.
        this.#watchers.wakeAll()
        this.#send()
      },
    })
  }

  /** Resolves once notifications are heard; rejects, and watches nothing, if they are not in time. */
  async watch(payload: string, onWake: () => void): Promise<() => void> {
    const unwatch = this.#watchers.add(payload, onWake)
    try {
      await withinTimeLimit(this.link.next)
      return unwatch
    } catch (error) {
      unwatch()
      throw error
    }
  }

  /** Wakes watchers: those here at once, and others by a notification. */
  wake(payload: string): void {
    this.#watchers.wake(payload)
    if (this.#unsent.size < mostUnsent) this.#unsent.add(payload)
    this.#send()
  }

  /** Ends all watches, sends what waits, and closes the connection. */
  async close(): Promise<void> {
    this.#watchers.clear()
    await this.#sending
    this.link.close()
  }

  #send(): void {
    this.#sending ??= this.#sendAll()
  }

  /**
   * Sends what waits until a statement fails; the rest goes with the next change, or once there is a connection. The
   * statements write nothing: PostgreSQL makes commits that write and notify one after another.
   */
  async #sendAll(): Promise<void> {
    // Those of a turn of the event loop go together.
    await new Promise(setImmediate)
    let isSent = true
    while (isSent && this.#unsent.size > 0 && this.link.up !== undefined) isSent = await this.#sendSome(this.link.up)
    this.#sending = undefined
  }

  async #sendSome(listener: Listener): Promise<boolean> {
    const payloads = [...this.#unsent].slice(0, mostTogether)
    for (const payload of payloads) this.#unsent.delete(payload)
    try {
      await listener.run(statements.notify.text, [payloads])
      this.#isRefused = false
      return true
    } catch (error) {
      for (const payload of payloads) this.#unsent.add(payload)
      if (isAnswer(error) && !this.#isRefused) this.#events.onRefused()
      this.#isRefused = isAnswer(error)
      return false
    }
  }
}

/** What is notified of a change: any user of the database may listen, so it tells no key. */
export function payloadOf(name: string): string {
  return createHash('sha256').update(name).digest('base64url')
}

interface Listener extends Linked {
  /** Identity of the server. */
  readonly server: string
  /**
   * Runs a statement, without preparing it: behind a pooler in transaction mode, one that is prepared elsewhere would
   * end the connection before that mode is noticed. If no answer comes in time, the connection is closed.
   */
  run(text: string, values: readonly unknown[]): Promise<void>
}

/** Connects, and listens. `onPayload` is called for each notification of another connection. */
async function listen(access: Access, onPayload: (payload: string) => void): Promise<Listener> {
  const client = new (clientClass(access, watchingName))()
  const { promise: lost, resolve: lose } = Promise.withResolvers<unknown>()
  const close = (): void => {
    // A server that does not answer does not end the connection either.
    lose(new Error('the connection was closed'))
    // With a query in flight this closes the socket at once.
    void client.end().catch(() => undefined)
  }
  /** Resolves once no statement runs: pg takes one at a time. */
  let idle: Promise<unknown> = Promise.resolve()
  const run = async (text: string, values: readonly unknown[]): Promise<void> => {
    const answer = idle.then(() => client.query(text, [...values]))
    idle = answer.catch(() => undefined)
    try {
      await withinTimeLimit(answer)
    } catch (error) {
      if (!isAnswer(error)) close()
      throw error
    }
  }
  client.on('error', lose)
  client.on('end', () => lose(new Error('the connection was closed')))
  try {
    await client.connect()
    const { server, process } = await withinTimeLimit(prepareSession(client))
    client.on('notification', ({ processId, payload = '' }) => {
      if (processId !== process) onPayload(payload)
    })
    await run(`LISTEN ${channel}`, [])
    // A network that breaks closes no connection, and this one may send nothing for long.
    const asking = setInterval(() => run('SELECT 1', []).catch(() => undefined), askIntervalMs).unref()
    void lost.then(() => clearInterval(asking))
    return { lost, server, run, close }
  } catch (error) {
    close()
    throw error
  }
}
