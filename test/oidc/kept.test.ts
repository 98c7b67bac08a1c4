import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import * as client from 'openid-client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { adminCommand } from '../../src/commands/admin/admin.ts'
import { AdminActions } from '../../src/commands/admin/admin-actions.ts'
import { backupCommand, restoreCommand } from '../../src/commands/backup.ts'
import { run } from '../support/command.ts'
import { memoryStore } from '../support/memory-store.ts'
import { hasPart } from '../support/optional.ts'
import { RedisServer } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { connect, contentOf, discover, refusalOf, request, shop, startIssuer } from './support.ts'

function folder(): string {
  const path = temporaryFolder()
  return path
}

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const streams = { stdin: process.stdin, stdout: new PassThrough(), stderr: process.stderr }
const offline = { scope: 'openid profile offline_access', prompt: 'consent' }

/** The ids of the keys that clients verify with. */
const kidsOf = async (url: string): Promise<readonly string[]> =>
  (await (await fetch(`${url}/.well-known/jwks.json`)).json()).keys.map(({ kid }: { kid: string }) => kid)

/** A store, a copy of it, and what puts the copy in its place. */
interface Copied {
  readonly store: string
  copy(): Promise<unknown>
  restore(): Promise<unknown>
}

const inFile = (...switches: string[]): Copied => {
  const at = folder()
  const [store, file] = [`sqlite:${join(at, 'store.db')}`, join(at, 'copy.db')]
  return {
    store,
    copy: () => backupCommand([file, '--store', store], streams),
    async restore() {
      await restoreCommand([file, '--store', store, ...switches], streams)
      expect(readFileSync(join(at, 'store.db')).includes('clients-of:')).toBe(switches.includes('--keep-sessions'))
    },
  }
}

/** A file that comes back by other means than `countersign restore`. */
const inCopiedFile = (): Copied => {
  const { store, copy } = inFile()
  const file = store.slice('sqlite:'.length)
  return {
    store,
    copy,
    async restore() {
      for (const end of ['-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
      copyFileSync(join(dirname(file), 'copy.db'), file)
      expect(await adminCommand(['after-restore', '--store', store], streams)).toBe(0)
    },
  }
}

/** The commands of docs/operations.md that this test runs. */
const [rotateKey = '', afterRestore = ''] = [
  ...readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8').matchAll(
    /<!-- executed by test\/oidc -->\n```sh\n([\s\S]*?)```/g,
  ),
].map(([, code]) => code)

const runDocumented = (code: string, store: string) =>
  run('sh', ['-euc', `countersign() { "$NODE" "$MAIN" "$@"; }\n${code}`], {
    env: { PATH: process.env.PATH, NODE: process.execPath, MAIN: main, COUNTERSIGN_STORE: store },
  })

async function inRedis(): Promise<Copied> {
  const server = await RedisServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const kindsLeft = async () => (await server.cli('--scan')).match(/(?<=^countersign:)(oidc:)?[a-z-]+/gm) ?? []
  return {
    store: server.url,
    async copy() {
      await server.cli('save')
    },
    async restore() {
      await server.kill()
      await server.start()
      await runDocumented(afterRestore, server.url)
      // Lists have the ids of what is gone.
      expect(new Set(await kindsLeft())).toEqual(
        new Set(['app', 'apps-of', 'oidc:signing-keys', 'user', 'wallet', 'sessions']),
      )
    },
  }
}

interface Way {
  readonly name: string
  readonly open: () => Copied | Promise<Copied>
  /** What the machine needs for it. */
  readonly part?: string
}

const ways: readonly Way[] = [
  { name: 'of SQLite', open: () => inFile() },
  { name: 'of SQLite with its sessions', open: () => inFile('--keep-sessions') },
  { name: 'of SQLite by other means', open: inCopiedFile },
  { name: 'of Redis, by the commands of docs/operations.md,', open: inRedis, part: 'redis-server' },
]

describe.each(ways)('a copy $name', ({ open, part }) => {
  test.skipIf(part !== undefined && !hasPart(part))(
    'brings back no code and no token, and keeps what users have allowed and the keys',
    async () => {
      const secret = 'one secret for both of the instances'
      const { store, copy, restore } = await open()
      const first = await startIssuer([shop], { store, secret })
      const kids = await kidsOf(first.url)
      const { browser, config, tokens, wallet } = await connect(first.url, offline)
      const asked = await request(config, { scope: 'openid profile' })
      const unused = (await browser.open(asked.address)).address
      await copy()
      // After the copy was made.
      const redeemed = await asked.redeem(unused)
      await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
      await first.service.close(0)
      await restore()

      const port = Number(new URL(first.url).port)
      const second = await startIssuer([shop], { store, secret, port })
      expect(second.url).toBe(first.url)
      expect(await refusalOf(asked.redeem(unused))).toBe('invalid_grant')
      for (const { refresh_token, access_token } of [tokens, redeemed]) {
        expect(await refusalOf(client.refreshTokenGrant(config, refresh_token ?? ''))).toBe('invalid_grant')
        expect(await client.tokenIntrospection(config, access_token)).toEqual({ active: false })
      }
      expect(await kidsOf(second.url)).toEqual(kids)
      await browser.signIn(wallet)
      const again = await request(config, { scope: 'openid profile' })
      const answer = await browser.open(again.address)
      expect(contentOf(answer.text)).toEqual({})
      expect((await again.redeem(answer.address)).id_token).toBeDefined()
    },
  )
})

test('a new secret alone, as after a leak, ends sessions and tokens, and needs the command of docs/operations.md', async () => {
  const { store } = inFile()
  const first = await startIssuer([shop], { store, secret: 'the secret that everyone knows by now' })
  const kids = await kidsOf(first.url)
  const { browser, config, tokens, wallet } = await connect(first.url, offline)
  await first.service.close(0)
  const options = { store, secret: 'the secret that no one knows by now', port: Number(new URL(first.url).port) }
  await expect(startIssuer([shop], options)).rejects.toThrow(/countersign admin oidc rotate-key/)
  await runDocumented(rotateKey, store)
  const { url } = await startIssuer([shop], options)
  const after = await kidsOf(url)
  expect([after.length, after.filter((kid) => kids.includes(kid))]).toEqual([kids.length, []])
  expect(await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? ''))).toBe('invalid_grant')
  expect((await browser.fetch('/api/auth/session')).status).toBe(401)
  // What users have allowed stays.
  await browser.signIn(wallet)
  const again = await request(await discover(url), { scope: 'openid profile' })
  const { address } = await browser.open(again.address)
  expect((await again.redeem(address)).id_token).toBeDefined()
})

test('the export of a user has applications and offline access, and nothing that opens anything', async () => {
  const store = await memoryStore()
  const { url } = await startIssuer([shop], { store, secret: 'one secret for both of the instances' })
  const { session, tokens } = await connect(url, offline)
  const { apps, offlineAccess } = await new AdminActions(store).export(session.userId)
  expect(apps).toMatchObject([{ clientId: 'shop', scopes: ['openid', 'profile', 'offline_access'] }])
  const { id, userId, adapterId, publicKeyHex, address, createdAt } = session
  const wallet = { adapterId, subject: publicKeyHex, publicKeyHex, address }
  expect(offlineAccess).toEqual([{ id, userId, ...wallet, createdAt }])
  const text = JSON.stringify({ apps, offlineAccess })
  for (const secret of [tokens.access_token, tokens.refresh_token ?? '']) expect(text).not.toContain(secret)
})
