import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { createCountersign, openStore } from '../../src/index.ts'
import { hasPart } from '../support/optional.ts'
import { RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { type ServiceProcess, spawnService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const older = 'the older secret of these tests and of nothing else'
const newer = 'the newer secret of these tests and of nothing else'

async function newFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-secrets-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'a.db')
}

async function signIn({ url }: ServiceProcess): Promise<string> {
  const { json } = await rest(url, '/wallet/nonce', {})
  return (await rest(url, '/wallet/verify', proofOf(makeWallet(), json))).json.token
}

async function accepts({ url }: ServiceProcess, token: string): Promise<boolean> {
  return (await rest(url, '/session', undefined, { authorization: `Bearer ${token}` })).status === 200
}

test('of the secrets in COUNTERSIGN_SECRET, the first signs and all verify', async () => {
  const file = await newFile()
  const start = (secret: string) => spawnService({ COUNTERSIGN_STORE: `sqlite:${file}`, COUNTERSIGN_SECRET: secret })
  const before = await start(older)
  const signedByOlder = await signIn(before)
  await before.stop()

  const during = await start(`${newer}, ${older}`)
  const signedByNewer = await signIn(during)
  expect([await accepts(during, signedByOlder), await accepts(during, signedByNewer)]).toEqual([true, true])
  await during.stop()

  const after = await start(newer)
  expect([await accepts(after, signedByOlder), await accepts(after, signedByNewer)]).toEqual([false, true])
  await after.stop()

  const rolledBack = await start(older)
  expect([await accepts(rolledBack, signedByOlder), await accepts(rolledBack, signedByNewer)]).toEqual([true, false])
})

test('each store keeps a secret of its own, of 256 random bits', async () => {
  const kept: Buffer[] = []
  for (let i = 0; i < 40; i++) {
    const store = await openStore('sqlite::memory:')
    await (await createCountersign({ store, pages: false, logger: silentLogger })).close(0)
    kept.push(Buffer.from((await store.get('secret'))?.value ?? '', 'base64url'))
    await store.close()
  }
  expect(kept.map(({ length }) => length)).toEqual(Array(40).fill(32))
  for (let bit = 0; bit < 256; bit++) {
    const values = new Set(kept.map((bytes) => ((bytes[bit >> 3] as number) >> (bit & 7)) & 1))
    // A random bit is the same in all of them once in 10^11 runs.
    expect(values.size, `bit ${bit}`).toBe(2)
  }
})

test.skipIf(!hasPart('redis-server'))(
  'with Redis, the command does not start without a secret, nor with a short one',
  async () => {
    await using server = await RedisServer.start()
    const start = (environment: Record<string, string>) =>
      spawnService({ COUNTERSIGN_STORE: server.url, ...environment }).then(
        () => 'started',
        ({ message }: Error) => message,
      )
    expect(await start({})).toMatch(/^countersign: secret \(COUNTERSIGN_SECRET\) must be set [^\n]*\n$/)
    const short = 'x'.repeat(31)
    const message = await start({ COUNTERSIGN_SECRET: `${newer},${short}` })
    expect(message).toMatch(
      /^countersign: secret \(COUNTERSIGN_SECRET\) must be text of 32 characters or more[^\n]*\n$/,
    )
    expect(message).not.toMatch(/xxx|newer/)
    expect(await server.cli('--scan')).not.toContain('secret')
    expect(await start({ COUNTERSIGN_SECRET: newer })).toBe('started')
  },
)
