import { describe, expect, onTestFinished, test } from 'vitest'
import { signIn } from '../support/flows.ts'
import { RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { spawnService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { temporaryStore } from '../support/temporary-folder.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const secret = 'a secret for tests and for nothing else'
const trusted = { COUNTERSIGN_TRUSTED_ORIGINS: 'https://app.example' }
const origin = { origin: 'https://app.example' }

const tokenOf = async (url: string): Promise<string> => (await signIn(url, makeWallet(), origin)).token

test('sessions on a SQLite file survive a restart, a crash included', async () => {
  const environment = { ...trusted, COUNTERSIGN_STORE: temporaryStore() }
  const first = await spawnService(environment)
  const token = await tokenOf(first.url)
  await first.stop('SIGKILL')
  const second = await spawnService(environment)
  const { status, json } = await rest(second.url, '/session', undefined, { authorization: `Bearer ${token}` })
  expect([status, json.session?.current]).toEqual([200, true])
})

test('the log is JSON and holds no token, nonce or signature', async () => {
  const service = await spawnService({ ...trusted, COUNTERSIGN_STORE: 'sqlite::memory:', LOG_LEVEL: 'debug' })
  const wallet = makeWallet()
  const { json: challenge } = await rest(service.url, '/wallet/nonce', {}, origin)
  const proof = proofOf(wallet, challenge)
  const { token } = (await rest(service.url, '/wallet/verify', proof, origin)).json
  await rest(service.url, '/wallet/verify', proof, origin)
  await rest(service.url, `/session?token=${token}`, undefined, { authorization: `Bearer ${token}x` })
  await rest(service.url, `/cross-device/challenge?orderId=x&challengeToken=${token}`)
  await rest(service.url, '/wallet/verify', { ...proof, nonceId: `${token}!` }, origin)
  await rest(service.url, '/wallet/nonce', {}, { origin: 'https://evil.example' })
  expect(await service.stop()).toBe(0)
  const lines = service.log().trim().split('\n')
  for (const line of lines)
    expect(JSON.parse(line)).toMatchObject({ level: expect.any(String), text: expect.any(String) })
  expect(service.log()).toContain('https://evil.example')
  for (const secretText of [token, token.split('.')[0], proof.signatureHex, challenge.nonce, challenge.nonceId]) {
    expect(service.log()).not.toContain(secretText)
  }
})

describe.skipIf(redisUrl === undefined)('on Redis', () => {
  test('an outage under load is 503 with advice, and heals without a restart', async () => {
    const redis = await RedisServer.start()
    onTestFinished(() => redis[Symbol.asyncDispose]())
    const service = await spawnService({ ...trusted, COUNTERSIGN_STORE: redis.url, COUNTERSIGN_SECRET: secret })
    const token = await tokenOf(service.url)
    const seen = { before: 0, outage: 0, after: 0, other: [] as unknown[] }
    let phase: 'before' | 'outage' | 'after' = 'before'
    let running = true
    const load = Array.from({ length: 8 }, async () => {
      while (running) {
        const answer = await rest(service.url, '/wallet/nonce', {}, origin)
        if (answer.status === 200) {
          if (phase !== 'outage') seen[phase]++
        } else if (answer.status === 503) {
          seen.outage++
          expect(answer.json.code).toBe('STORE_UNAVAILABLE')
          expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
        } else seen.other.push(answer)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    })
    const until = async (done: () => boolean | Promise<boolean>) => {
      while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await until(() => seen.before > 50)
    await redis.kill()
    phase = 'outage'
    await until(() => seen.outage > 50)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(503)
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
    // A good token is not called wrong because nobody can look.
    const session = await rest(service.url, '/session', undefined, { authorization: `Bearer ${token}` })
    expect(session.json.code).toBe('STORE_UNAVAILABLE')
    await redis.start()
    await until(async () => (await fetch(`${service.url}/readyz`)).status === 200)
    phase = 'after'
    await until(() => seen.after > 50)
    running = false
    await Promise.all(load)
    expect(seen.other).toEqual([])
    await signIn(service.url, makeWallet(), origin)
    expect(await service.stop()).toBe(0)
  })
})
