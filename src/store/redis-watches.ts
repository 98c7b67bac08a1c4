import { type Connection, Link, pauseAfter, TimeLimitError, withinTimeLimit } from './redis-connection.ts'
import type { Servers } from './redis-servers.ts'
import { Watchers } from './watchers.ts'

interface Channel {
  readonly name: string
  /** The connection on which the subscription is in force. */
  connection?: Connection
  /** A subscription ended by itself, and wake-ups may have been missed since. */
  interrupted: boolean
  settling?: Promise<void>
}

/**
 * The subscriptions of one process: a connection to each server, however many watchers there are, and on it a sharded
 * subscription for each key that somebody watches.
 *
 * A subscription that ended is made anew, wherever its server is by then, and its watchers are woken once it is in force.
 */
export class RedisWatches {
  readonly #servers: Servers
  readonly #watchers = new Watchers()
  readonly #channels = new Map<string, Channel>()
  readonly #feeds = new Map<string, Link>()
  readonly #closing = new AbortController()
  #repairing = false

  constructor(servers: Servers) {
    this.#servers = servers
  }

  /** Watches a channel. Resolves when the subscription is in force; rejects, and watches nothing, if it cannot be. */
  async watch(name: string, onWake: () => void): Promise<() => void> {
    const channel = this.#channels.get(name) ?? { name, interrupted: false }
    this.#channels.set(name, channel)
    const remove = this.#watchers.add(name, onWake)
    const unwatch = () => {
      remove()
      // By now it can be another one of the same name.
      const current = this.#channels.get(name)
      if (current) this.#settle(current).catch(() => this.#repair())
    }
    const givenUp = new AbortController()
    try {
      await withinTimeLimit(this.#settlePatiently(channel, givenUp.signal))
      return unwatch
    } catch (error) {
      givenUp.abort()
      unwatch()
      throw error
    }
  }

  /** Makes the subscriptions on a server anew, for the connection may be broken without a sign. */
  renew(server: string): void {
    this.#feeds.get(server)?.drop()
  }

  close(): void {
    this.#closing.abort(new Error('the store is closed'))
    this.#watchers.clear()
    for (const feed of this.#feeds.values()) feed.close()
  }

  /** Brings a channel's subscription in line with whether anyone watches it; one change at a time, the last wish wins. */
  #settle(channel: Channel): Promise<void> {
    channel.settling ??= this.#settleNow(channel)
    return channel.settling
  }

  /** Tries again after a failure: a connection that was lost is usually back in a moment, and a watcher has that moment. */
  async #settlePatiently(channel: Channel, givenUp: AbortSignal): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        await this.#settle(channel)
        return
      } catch (error) {
        if (givenUp.aborted || this.#closing.signal.aborted) throw error
        await pauseAfter(failures, givenUp)
      }
    }
  }

  async #settleNow(channel: Channel): Promise<void> {
    const { name } = channel
    // Lets the caller note that this is under way. It is over, without a gap, once nothing is left to do.
    await undefined
    try {
      while (this.#watchers.has(name) !== (channel.connection !== undefined)) {
        if (channel.connection) await this.#unsubscribe(channel, channel.connection)
        else await this.#subscribe(channel)
      }
      if (!channel.connection) this.#channels.delete(name)
    } finally {
      delete channel.settling
    }
  }

  async #subscribe(channel: Channel): Promise<void> {
    const { name, interrupted } = channel
    channel.interrupted = false
    try {
      this.#closing.signal.throwIfAborted()
      const connection = await this.#feedFrom(this.#servers.locate(name)).connection
      await this.#subscribeOn(connection, name)
      if (channel.interrupted || !connection.client.isReady) throw new Error('the subscription ended at once')
      channel.connection = connection
    } catch (error) {
      channel.interrupted ||= interrupted
      this.#servers.redirect(name, error)
      throw error
    }
    if (interrupted) this.#watchers.wake(name)
  }

  async #subscribeOn({ client }: Connection, name: string): Promise<void> {
    try {
      await withinTimeLimit(client.sSubscribe(name, this.#onMessage))
    } catch (error) {
      if (error instanceof TimeLimitError) client.destroy()
      throw error
    }
  }

  async #unsubscribe(channel: Channel, connection: Connection): Promise<void> {
    // Fails only with its connection, and then the subscription is gone as well.
    await connection.client.sUnsubscribe(channel.name, this.#onMessage).catch(() => undefined)
    delete channel.connection
  }

  readonly #onMessage = (_message: string, name: string): void => this.#watchers.wake(name)

  #feedFrom(server: string): Link {
    const known = this.#feeds.get(server)
    if (known) return known
    const feed = new Link(() => this.#dial(server), {
      // Without waiting for the end of a pause between repairs.
      onUp: () => this.#settleAll(),
      onDown: () => this.#onFeedDown(server, feed),
    })
    this.#feeds.set(server, feed)
    return feed
  }

  async #dial(server: string): Promise<Connection> {
    const connection = await this.#servers.dial(server)
    // A server ends subscriptions by itself when another one takes over their slot.
    connection.client.on('sharded-channel-moved', (name: string) => this.#interrupt(this.#channels.get(name)))
    void connection.lost.then(() => {
      for (const channel of this.#channels.values()) {
        if (channel.connection === connection) this.#interrupt(channel)
      }
    })
    return connection
  }

  #onFeedDown(server: string, feed: Link): void {
    if (this.#servers.serves(server)) return
    feed.close()
    this.#feeds.delete(server)
  }

  #interrupt(channel: Channel | undefined): void {
    if (!channel) return
    delete channel.connection
    channel.interrupted = true
    this.#repair()
  }

  #repair(): void {
    if (this.#repairing) return
    this.#repairing = true
    void this.#repairUntilWhole().finally(() => {
      this.#repairing = false
    })
  }

  async #repairUntilWhole(): Promise<void> {
    const { signal } = this.#closing
    for (let failures = 0; this.#unsettled().length > 0; failures++) {
      await pauseAfter(failures, signal)
      if (signal.aborted) return
      await this.#settleAll()
    }
  }

  async #settleAll(): Promise<void> {
    await Promise.allSettled(this.#unsettled().map((channel) => this.#settle(channel)))
  }

  #unsettled(): Channel[] {
    return [...this.#channels.values()].filter(({ name, connection }) => !connection || !this.#watchers.has(name))
  }
}
