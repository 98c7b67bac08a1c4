import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { hasPart } from '../support/optional.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { makeWallet } from '../support/wallet.ts'

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Runs a command as a process, and resolves with its exit code and what it printed. */
async function command(store: string, ...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [mainFile, ...args], {
    env: { COUNTERSIGN_STORE: store },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code, stdout, stderr }
}

describe.skipIf(!hasPart('postgresql'))('commands on a store in PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  /** The most connections that Countersign has to the server while something runs. */
  async function mostConnections(during: Promise<unknown>): Promise<number> {
    const client = new Client(server.url())
    await client.connect()
    let [most, over] = [0, false]
    const end = (): void => {
      over = true
    }
    during.then(end, end)
    while (!over) {
      const { rows } = await client.query(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'countersign'",
      )
      most = Math.max(most, Number(rows[0].count))
      await sleep(10)
    }
    await client.end()
    return most
  }

  test('take two connections for calls and one for watches unless the address says more, however far it is', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-commands-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'users')
    const users = Array.from({ length: 500 }, (_, i) => ({
      wallet: `nimiq:${makeWallet().publicKeyHex}`,
      user_id: `${i}`,
    }))
    await writeFile(file, users.map((user) => JSON.stringify(user)).join('\n'))
    expect(await command(server.url(), 'admin', 'import', file)).toMatchObject({ code: 0 })
    const proxy = await startTcpProxy(server.port)
    // A database in another region: two connections have less than the time limit of a call for all that is to be read.
    proxy.answer = (chunk) => sleep(6, chunk)
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`
    for (const [address, connections, limit] of [
      [url, 3, 500],
      [`${url}?connections=5`, 6, 50],
    ] as const) {
      const listed = command(address, 'admin', 'list', '--limit', `${limit}`, '--json')
      expect(await mostConnections(listed)).toBe(connections)
      const { code, stdout, stderr } = await listed
      expect([code, stderr]).toEqual([0, ''])
      expect(JSON.parse(stdout).users).toHaveLength(limit)
    }
  })
})
