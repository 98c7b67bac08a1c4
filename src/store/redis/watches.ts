import { pauseAfter, ReconnectingLink, TimeLimitError, withinTimeLimit } from '../reconnecting-link.ts'
import { Watchers } from '../watchers.ts'
import type { Connection, Servers } from './connection.ts'

/** A key that is watched, or was until a moment ago, and its subscription. */
interface Channel {
  readonly name: string
  /** The connection on which the subscription is in force. */
  connection: Connection | undefined
  /** Whether a subscription has ended by itself, so that wake-ups may have been missed since. */
  interrupted: boolean
  /** A change of the subscription, while it is in progress. */
  settling: Promise<void> | undefined
}

/**
 * The subscriptions of one process: one connection to each server, however many watchers there are, and on it one
 * sharded subscription for each key that is watched.
 *
 * A subscription that ended by itself is made again, wherever its server is by then. Its watchers are called once it is
 * in force, because wake-ups may have been missed.
 */
export class RedisWatches {
  readonly #servers: Servers
  readonly #watchers = new Watchers()
  readonly #channels = new Map<string, Channel>()
  /** The connection for subscriptions to each server. */
  readonly #feeds = new Map<string, ReconnectingLink<Connection>>()
  readonly #closing = new AbortController()
  #repairing = false

  constructor(servers: Servers) {
    this.#servers = servers
  }

  /** Watches a channel. Resolves once the subscription is in force; rejects, and watches nothing, if that fails. */
  async watch(name: string, onWake: () => void): Promise<() => void> {
    const unsubscribed: Channel = { name, connection: undefined, interrupted: false, settling: undefined }
    const channel = this.#channels.get(name) ?? unsubscribed
    this.#channels.set(name, channel)
    const remove = this.#watchers.add(name, onWake)
    const unwatch = () => {
      remove()
      // By now it can be another one of the same name.
      const current = this.#channels.get(name)
      if (current !== undefined) this.#settle(current).catch(() => this.#repair())
    }
    const givenUp = new AbortController()
    let failure: unknown
    const onFailure = (error: unknown): void => {
      failure = error
    }
    try {
      await withinTimeLimit(this.#settlePatiently(channel, givenUp.signal, onFailure))
      return unwatch
    } catch (error) {
      givenUp.abort()
      unwatch()
      // What went wrong each time says more than that the time is over.
      throw (error instanceof TimeLimitError && failure) || error
    }
  }

  /** Makes the subscriptions on a server again, because its connection may be broken unnoticed. */
  renew(server: string): void {
    this.#feeds.get(server)?.drop()
  }

  /** Ends all watches and connections. */
  close(): void {
    this.#closing.abort(new Error('the store is closed'))
    this.#watchers.clear()
    for (const feed of this.#feeds.values()) feed.close()
  }

  /** Subscribes or unsubscribes a channel until that fits whether anyone watches it; one change at a time. */
  #settle(channel: Channel): Promise<void> {
    channel.settling ??= this.#settleNow(channel)
    return channel.settling
  }

  /** Settles a channel, trying again after failures, because a lost connection is usually back in a moment. */
  async #settlePatiently(channel: Channel, givenUp: AbortSignal, onFailure: (error: unknown) => void): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        await this.#settle(channel)
        return
      } catch (error) {
        if (givenUp.aborted || this.#closing.signal.aborted) throw error
        onFailure(error)
        await pauseAfter(failures, givenUp)
      }
    }
  }

  async #settleNow(channel: Channel): Promise<void> {
    const { name } = channel
    // Lets #settle store this promise first. Below, nothing may be awaited between the last check and the end.
    await undefined
    try {
      while (this.#watchers.has(name) !== (channel.connection !== undefined)) {
        if (channel.connection === undefined) await this.#subscribe(channel)
        else await this.#unsubscribe(channel, channel.connection)
      }
      if (channel.connection === undefined) this.#channels.delete(name)
    } finally {
      channel.settling = undefined
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
    // Fails only together with its connection, and then the subscription has ended as well.
    await connection.client.sUnsubscribe(channel.name, this.#onMessage).catch(() => undefined)
    channel.connection = undefined
  }

  readonly #onMessage = (_message: string, name: string): void => this.#watchers.wake(name)

  #feedFrom(server: string): ReconnectingLink<Connection> {
    const known = this.#feeds.get(server)
    if (known !== undefined) return known
    const feed = new ReconnectingLink(() => this.#dial(server), {
      // Does not wait for the end of a pause between repairs.
      onUp: () => this.#settleAll(),
      onDown: () => this.#onFeedDown(server, feed),
    })
    this.#feeds.set(server, feed)
    return feed
  }

  async #dial(server: string): Promise<Connection> {
    const connection = await this.#servers.dial(server)
    // A server ends subscriptions by itself if another one takes over their slot.
    connection.client.on('sharded-channel-moved', (name: string) => this.#interrupt(this.#channels.get(name)))
    void connection.lost.then(() => {
      for (const channel of this.#channels.values()) {
        if (channel.connection === connection) this.#interrupt(channel)
      }
    })
    return connection
  }

  #onFeedDown(server: string, feed: ReconnectingLink<Connection>): void {
    if (this.#servers.serves(server)) return
    feed.close()
    this.#feeds.delete(server)
  }

  #interrupt(channel: Channel | undefined): void {
    if (channel === undefined) return
    channel.connection = undefined
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
    return [...this.#channels.values()].filter(
      ({ name, connection }) => connection === undefined || !this.#watchers.has(name),
    )
  }
}
