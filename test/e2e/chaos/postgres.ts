import { setTimeout as pause } from 'node:timers/promises'
import { type PostgresOptions, PostgresServer } from '../../support/postgres-server.ts'
import type { SmallDisk } from '../../support/small-disk.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import type { Death } from './judge.ts'
import type { Topology } from './rehearsal.ts'
import { until } from './until.ts'

/** How the old primary is kept from acknowledging anything before the standby takes its place. */
type Fence = (old: PostgresServer) => Promise<void>

/** With these of the server, what is acknowledged can be lost: each connection has to say otherwise. */
const settings = { synchronous_commit: 'off' }

/** Time in milliseconds for which the old primary is frozen: longer than it takes to notice that. */
const frozenMs = 12_000

/** Time in milliseconds that an old primary has beside the new one. */
const besideMs = 3000

/**
 * A primary and a standby that it waits for, behind an address that can lead elsewhere, and what can happen to them.
 * Nothing that is acknowledged can be lost, so no disturbance reports a death that would excuse it.
 */
export class ChaosPostgres implements Topology {
  readonly #proxy: TcpProxy
  #primary: PostgresServer
  #standby: PostgresServer

  private constructor(primary: PostgresServer, standby: PostgresServer, proxy: TcpProxy) {
    this.#primary = primary
    this.#standby = standby
    this.#proxy = proxy
  }

  /** Starts them within a test, at whose end the address goes. */
  static async start(options: PostgresOptions = {}): Promise<ChaosPostgres> {
    const primary = await PostgresServer.start({ ...options, settings: { ...settings, ...options.settings } })
    const standby = await PostgresServer.start({ primary, settings })
    await waitForStandbys(primary, '*')
    return new ChaosPostgres(primary, standby, await startTcpProxy(primary.port))
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.#proxy.port}/postgres`
  }

  /** Resolves once the address leads to a primary that has the answers of its standby. */
  async settled(): Promise<void> {
    await until('the primary waits for its standby', async () => {
      const sql = "SELECT pg_is_in_recovery(), sync_state FROM pg_stat_replication WHERE state = 'streaming'"
      return (await this.#primary.psqlAt(this.url, sql)) === 'f|sync'
    })
  }

  /** Stops the primary in good order, and starts it again. */
  async restart(): Promise<Death[]> {
    await this.#primary.stop()
    await pause(1000)
    await this.#primary.start()
    return []
  }

  /** Ends the primary as a crash does, and starts it again. */
  async crash(): Promise<Death[]> {
    await this.#primary.kill()
    await pause(1000)
    await this.#primary.start()
    return []
  }

  /** Kills one process of the primary, as for want of memory: the others end, too, and it recovers by itself. */
  async killOneProcess(): Promise<Death[]> {
    const pid = await this.#primary.psql(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'countersign' LIMIT 1",
    )
    process.kill(Number(pid), 'SIGKILL')
    return []
  }

  /** Lets nothing that the primary answers arrive for a while, although no connection is closed. */
  async cutSilently(): Promise<Death[]> {
    this.#proxy.answer = () => Buffer.alloc(0)
    await pause(8000)
    this.#proxy.answer = (chunk) => chunk
    return []
  }

  /** Takes the standby away for a while. The primary commits nothing meanwhile. */
  async loseStandby(): Promise<Death[]> {
    await this.#standby.kill()
    await pause(15_000)
    await this.#standby.start()
    return []
  }

  /** Makes files of the log, `min_wal_size` of them, to be written to while the disk is full: without one, it ends. */
  async makeLogFiles(): Promise<void> {
    for (let i = 0; i < 3; i++) {
      const log = "SELECT pg_logical_emit_message(false, 'log', repeat('x', 1000000)) FROM generate_series(1, 25)"
      await this.#primary.psql(log)
      await this.#primary.psql('CHECKPOINT')
    }
  }

  /** Leaves the primary no room on its disk for a while, so that it takes nothing new. */
  async fillDisk(disk: SmallDisk): Promise<Death[]> {
    await disk.fill()
    await pause(6000)
    await disk.free()
    return []
  }

  /** Leaves it none for its log either, so that it ends. An operator makes room and starts it. */
  async fillDiskUntilItEnds(disk: SmallDisk): Promise<Death[]> {
    await disk.fill()
    const log = "SELECT pg_logical_emit_message(false, 'full', repeat('x', 1000000)) FROM generate_series(1, 1000)"
    await this.#primary.psql(log).catch(() => undefined)
    await until('the primary has ended', () => !this.#primary.isRunning)
    await pause(1000)
    await disk.free()
    await this.#primary.start()
    return []
  }

  /** Keeps the primary from acknowledging more, puts the standby into its place, and gives it a standby. */
  async failOver(fence: Fence): Promise<Death[]> {
    const old = this.#primary
    await fence(old)
    await this.#promote()
    this.#proxy.targetPort = this.#primary.port
    await this.#replace(old)
    return []
  }

  /** Fails over while the old primary is frozen, which goes on when the new one has its address. */
  async freezeAndFailOver(): Promise<Death[]> {
    const old = this.#primary
    const thawing = pause(frozenMs)
    old.freeze()
    await this.#promote()
    this.#proxy.targetPort = this.#primary.port
    await thawing
    old.thaw()
    await pause(besideMs)
    await this.#replace(old)
    return []
  }

  /** Fails over while the old primary goes on, with reads only, until no service has a connection to it. */
  async failOverFromReadOnly(): Promise<Death[]> {
    const old = this.#primary
    await old.psql('ALTER SYSTEM SET default_transaction_read_only = on')
    await old.psql('SELECT pg_reload_conf()')
    this.#proxy.targetPort = this.#standby.port
    await until('the old primary has no connection', async () => (await connectionsTo(old)) === 0)
    await this.#promote()
    await pause(besideMs)
    await this.#replace(old)
    return []
  }

  /** Lets the two change places in good order. The address leads to the standby for a while. */
  async switchOver(): Promise<Death[]> {
    const old = this.#primary
    await old.stop()
    await this.#promote()
    await old.startAsStandbyOf(this.#primary)
    await pause(besideMs)
    this.#proxy.targetPort = this.#primary.port
    await waitForStandbys(this.#primary, '*')
    return []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#primary[Symbol.asyncDispose]()
    await this.#standby[Symbol.asyncDispose]()
  }

  async #promote(): Promise<void> {
    const promoted = this.#standby
    await promoted.psql('SELECT pg_promote()')
    // It has no standby yet.
    await waitForStandbys(promoted, '')
    ;[this.#primary, this.#standby] = [promoted, this.#primary]
  }

  /** Ends the old primary, and makes another standby. */
  async #replace(old: PostgresServer): Promise<void> {
    await old[Symbol.asyncDispose]()
    this.#standby = await PostgresServer.start({ primary: this.#primary, settings })
    await waitForStandbys(this.#primary, '*')
  }
}

/**
 * A fence: a crash, before which the log of the primary does not reach the standby for a moment. What it acknowledged
 * then would be lost.
 */
export async function crashAfterLag(old: PostgresServer): Promise<void> {
  const sender = Number(await old.psql('SELECT pid FROM pg_stat_replication'))
  process.kill(sender, 'SIGSTOP')
  await pause(1000)
  const killed = old.kill()
  process.kill(sender, 'SIGKILL')
  await killed
}

/** How many connections services have to a server. */
export async function connectionsTo(server: PostgresServer): Promise<number> {
  return Number(await server.psql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'countersign%'"))
}

/** Names the standbys that a server waits for. */
export async function waitForStandbys(server: PostgresServer, names: string): Promise<void> {
  await server.psql(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
  await server.psql('SELECT pg_reload_conf()')
}
