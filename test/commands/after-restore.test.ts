import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runCommand } from '../../src/commands/command.ts'
import { openStore } from '../../src/store/open.ts'
import { runHere } from '../support/command.ts'
import { makeComputer } from '../support/computer.ts'
import { hasPart } from '../support/optional.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { freePort, RedisServer } from '../support/redis-server.ts'
import { bearer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import { restJson, signIn, waitingOrder } from './calls.ts'

/** A store, a copy of it, and what brings the copy back as an operator does who knows of nothing else. */
interface Copied {
  readonly store: string
  copy(): Promise<unknown>
  bringBack(): Promise<unknown>
}

const run = (...args: string[]) => runHere(runCommand, args)

async function inFile(): Promise<Copied> {
  const folder = temporaryFolder()
  const [file, copy] = [join(folder, 'store.db'), join(folder, 'copy.db')]
  return {
    store: `sqlite:${file}`,
    copy: () => run('backup', copy, '--store', `sqlite:${file}`),
    async bringBack() {
      for (const end of ['-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
      copyFileSync(copy, file)
    },
  }
}

async function inRedis(): Promise<Copied> {
  const server = await RedisServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  return {
    store: server.url,
    copy: () => server.cli('save'),
    async bringBack() {
      await server.kill()
      await server.start()
    },
  }
}

async function inPostgres(): Promise<Copied> {
  const server = await PostgresServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const columns = 'key, value, version, expires_at'
  const back = `INSERT INTO countersign.entries (${columns}) SELECT ${columns} FROM kept_entries`
  return {
    store: server.url(),
    copy: () => server.psql('CREATE TABLE kept_entries AS TABLE countersign.entries'),
    bringBack: () => server.psql(`DELETE FROM countersign.entries; ${back}`),
  }
}

const stores = [
  { name: 'SQLite', open: inFile, isThere: true },
  { name: 'Redis', open: inRedis, isThere: hasPart('redis-server') },
  { name: 'PostgreSQL', open: inPostgres, isThere: hasPart('postgresql') },
]

/** Keys of what waits to be delivered. */
async function queuedIn(url: string): Promise<string[]> {
  const store = await openStore(url)
  const keys: string[] = []
  for await (const { key } of store.scan?.('webhook:') ?? []) keys.push(key)
  await store.close()
  return keys
}

describe.each(stores)('a copy of the past in $name', ({ open, isThere }) => {
  test.skipIf(!isThere)(
    'after admin after-restore revives no nonce, order, known computer or session; with --keep-sessions only sessions',
    async () => {
      const { store, copy, bringBack } = await open()
      // None listens there, so the events of the copy wait to be delivered.
      const secret = `whsec_${Buffer.from('a secret of the tests, and of no use').toString('base64')}`
      const webhook = { url: `http://127.0.0.1:${await freePort()}/`, secret }
      const options = { store, secret: 'one secret for both of the services', confirmationCode: 'return' } as const
      const { url, service } = await startService({ ...options, webhook })
      const wallet = makeWallet()
      const computer = await makeComputer()
      const finalize = async ({ holder, approval }: Awaited<ReturnType<typeof waitingOrder>>) => {
        const { returnCode } = await restJson(url, '/cross-device/approve', approval)
        const computerProof = await computer.prove(holder)
        return await restJson(url, '/cross-device/finalize', { ...holder, returnCode, computerProof })
      }
      const signedIn = await signIn(url, wallet)
      await finalize(await waitingOrder(url, wallet, { computerKey: computer.key }))
      expect((await restJson(url, '/computers', undefined, bearer(signedIn.token))).computers).toHaveLength(1)
      const nonce = proofOf(wallet, await restJson(url, '/wallet/nonce', {}))
      const order = await waitingOrder(url, wallet, { computerKey: (await makeComputer()).key })
      await copy()
      // After the copy was made.
      await restJson(url, '/wallet/verify', nonce)
      await restJson(url, '/cross-device/reject', order.approval)
      await restJson(url, '/sign-out', {}, bearer(signedIn.token))
      await service.close(0)

      for (const { switches, kept } of [
        { switches: ['--keep-sessions'], kept: 200 },
        { switches: [], kept: 401 },
      ]) {
        await bringBack()
        expect(await queuedIn(store)).not.toEqual([])
        const { code, stdout, stderr } = await run('admin', 'after-restore', '--store', store, '--json', ...switches)
        expect([code, stderr]).toEqual([0, ''])
        expect(JSON.parse(stdout).dropped).toBeGreaterThan(2)
        expect(await queuedIn(store)).toEqual([])
        const { url: restored, service: again } = await startService(options)
        const reused = await rest(restored, '/wallet/verify', nonce)
        expect(reused).toMatchObject({ status: 401, json: { code: 'NONCE_NOT_FOUND' } })
        expect(await rest(restored, '/cross-device/approve', order.approval)).toMatchObject({
          status: 404,
          json: { code: 'ORDER_NOT_FOUND' },
        })
        expect((await rest(restored, '/session', undefined, bearer(signedIn.token))).status).toBe(kept)
        const anew = await signIn(restored, wallet)
        expect(anew.session.userId).toBe(signedIn.session.userId)
        expect((await restJson(restored, '/computers', undefined, bearer(anew.token))).computers).toEqual([])
        await again.close(0)
      }
      // A second time it finds no more but these.
      await run('admin', 'after-restore', '--store', store)
      const once = await run('admin', 'after-restore', '--store', store)
      expect(once.stdout).toMatch(/^dropped 0 records; all sessions have ended\. Block, unlink and delete again /)
    },
  )
})
