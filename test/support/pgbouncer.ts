import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { type PostgresServer, spawnAsServerUser } from './postgres-server.ts'
import { freePort } from './redis-server.ts'

/** When a session of the server goes back to the pool. */
type PoolMode = 'session' | 'transaction'

/** A PgBouncer before a server. */
export interface PgBouncer {
  /** The URL of the database. */
  readonly url: string
  /** Changes the mode, as an operator does by a RELOAD. */
  setMode(mode: PoolMode): Promise<void>
}

/** Starts PgBouncer before a database of a server; it ends with the test. */
export async function startPgBouncer(server: PostgresServer, mode: PoolMode, database: string): Promise<PgBouncer> {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'countersign-pgbouncer-'))
  const config = join(folder, 'pgbouncer.ini')
  const configure = (mode: PoolMode): Promise<void> =>
    writeFile(
      config,
      `[databases]
${database} = host=127.0.0.1 port=${server.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
admin_users = postgres
pool_mode = ${mode}
`,
      { mode: 0o644 },
    )
  await configure(mode)
  const child = await spawnAsServerUser('pgbouncer', [config], folder)
  // What it writes is read, so that it can go on.
  child.stderr?.resume()
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  })
  const address = `postgres://postgres@127.0.0.1:${port}`
  const url = `${address}/${database}`
  const answers = () => server.psqlAt(url, 'SELECT 1').catch(() => undefined)
  await expect.poll(answers, { timeout: 10_000 }).toBe('1')
  return {
    url,
    async setMode(mode) {
      await configure(mode)
      await server.psqlAt(`${address}/pgbouncer`, 'RELOAD')
    },
  }
}
