import { expect, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { createCountersign, openStore } from '../../src/index.ts'
import { hasPart } from '../support/optional.ts'
import { RedisServer } from '../support/redis-server.ts'
import { spawnService } from '../support/service.ts'

const newer = 'the newer secret of these tests and of nothing else'

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
