import { hash } from 'node:crypto'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { Keyring } from '../../src/base/token.ts'
import { Nonces } from '../../src/core/sign-in/nonce.ts'
import { Sessions } from '../../src/core/users/sessions.ts'
import { createCountersign } from '../../src/index.ts'
import { createSignInChallenge } from '../../src/integrations/core/sign-in.ts'
import { openStore } from '../../src/store/open.ts'
import { rest } from '../support/rest.ts'

/** What must be random, and the bits that each has. */
const bitsOf: Readonly<Record<string, number>> = {
  'the nonce of a sign-in': 256,
  'the nonce of an order': 256,
  'the nonce of countersign/core': 256,
  'a claim token': 256,
  'a desktop token': 256,
  'a challenge token': 256,
  'a session token': 256,
  'the id of a nonce': 128,
  'the id of an order': 128,
  'the id of a challenge': 128,
}

const sampleCount = 200

/**
 * Samples of each, in base64url without a prefix, and for each everything else that its caller was told along with it.
 */
const samples = new Map<string, { readonly text: string; readonly visible: readonly string[] }[]>()

function sample(name: string, text: string, answer: Record<string, unknown>): void {
  const visible = Object.values(answer).filter((value) => value !== text)
  const all = samples.get(name) ?? []
  samples.set(name, all)
  all.push({ text: text.replace(/^cs[cdps]_/, ''), visible: visible.map(String) })
}

const secret = 'a secret for tests and for nothing else'

beforeAll(async () => {
  // All samples are of one moment, on one store, with one secret: nothing but chance tells them apart.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 1) })
  const store = await openStore('sqlite::memory:')
  const service = await createCountersign({ store, port: 0, secret, rateLimit: false, logger: silentLogger })
  try {
    const url = `http://localhost:${await service.listen()}`
    const sessions = new Sessions({ ttlSeconds: 60, absoluteTtlSeconds: 60 }, store, new Keyring([secret]))
    const details = { userId: 'u', adapterId: 'nimiq', publicKeyHex: 'ab', address: 'NQ', ip: '', userAgent: '' }
    for (let i = 0; i < sampleCount; i++) {
      const { json: nonce } = await rest(url, '/wallet/nonce', {})
      const { nonceId, ...others } = nonce
      sample('the nonce of a sign-in', nonce.nonce, nonce)
      const own = createSignInChallenge({ appName: 'App', origin: url })
      sample('the nonce of countersign/core', own.nonce, { ...own })
      // What follows says what the nonce is for.
      sample('the id of a nonce', nonceId.slice(0, 22), others)
      const { json: order } = await rest(url, '/cross-device/start', { kind: 'sign' })
      sample('the id of an order', order.orderId, order)
      sample('a claim token', order.claimToken, order)
      sample('a desktop token', order.desktopToken, order)
      const { orderId, claimToken } = order
      const { json: claimed } = await rest(url, '/cross-device/claim', { orderId, claimToken })
      sample('a challenge token', claimed.challengeToken, { ...order, ...claimed })
      const authorization = `Bearer ${claimed.challengeToken}`
      const path = `/cross-device/challenge?orderId=${orderId}`
      const { json: challenge } = await rest(url, path, undefined, { authorization })
      sample('the nonce of an order', challenge.nonce, { ...order, ...claimed, ...challenge })
      sample('the id of a challenge', challenge.challengeId, { ...order, ...claimed, ...challenge })
      const { token, session } = await sessions.create({ ...details, userId: `u${i}` })
      sample('a session token', token.split('.')[0] as string, { ...session })
    }
  } finally {
    await service.close(0)
    await store.close()
    vi.useRealTimers()
  }
})

const hashes = ['sha1', 'sha256', 'sha512', 'md5', 'sha3-256', 'blake2s256']

/** What somebody would try who takes a value for a hash of another. */
function guesses(visible: readonly string[], bytes: number): Set<string> {
  const inputs = [...visible, ...visible.map((text) => text.replace(/^cs[cdps]_/, '')), '', secret]
  const all = new Set<string>()
  for (const input of inputs) {
    const forms = [Buffer.from(input), Buffer.from(input, 'base64url'), Buffer.from(secret + input)]
    for (const form of forms) {
      all.add(form.subarray(0, bytes).toString('base64url'))
      for (const name of hashes) all.add(hash(name, form, 'buffer').subarray(0, bytes).toString('base64url'))
    }
  }
  return all
}

describe.each(Object.entries(bitsOf))('%s', (name, bits) => {
  test(`has ${bits} bits`, () => {
    const lengths = (samples.get(name) ?? []).map(({ text }) => {
      expect(text).toMatch(/^[A-Za-z0-9_-]+$/)
      return Buffer.from(text, 'base64url').length
    })
    expect(lengths).toEqual(Array(sampleCount).fill(bits / 8))
  })

  test('is another one each time, and each of its bits is 0 about as often as 1', () => {
    const all = (samples.get(name) ?? []).map(({ text }) => Buffer.from(text, 'base64url'))
    expect(new Set(all.map((bytes) => bytes.toString('hex'))).size).toBe(sampleCount)
    for (let bit = 0; bit < bits; bit++) {
      const ones = all.filter((bytes) => ((bytes[bit >> 3] as number) >> (bit & 7)) & 1).length
      // Nine standard deviations to either side: a random bit is outside once in 10^18 runs.
      expect(Math.abs(ones - sampleCount / 2), `bit ${bit}`).toBeLessThan(9 * Math.sqrt(sampleCount / 4))
    }
  })

  test('is not a part or a hash of anything that is told along with it', () => {
    for (const { text, visible } of (samples.get(name) ?? []).slice(0, 20)) {
      expect(guesses(visible, bits / 8).has(text), text).toBe(false)
    }
  })
})

test('nonces that are issued at once are different', async () => {
  const store = await openStore('sqlite::memory:')
  try {
    const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store })
    const issued = await Promise.all(Array.from({ length: 200 }, () => nonces.issue('https://app.example')))
    expect(new Set(issued.map(({ nonce }) => nonce)).size).toBe(200)
    expect(new Set(issued.map(({ nonceId }) => nonceId)).size).toBe(200)
  } finally {
    await store.close()
  }
})

test('each digit of a confirmation code is any digit', async () => {
  const store = await openStore('sqlite::memory:')
  const options = { store, port: 0, secret, rateLimit: false, pages: false, logger: silentLogger }
  const service = await createCountersign(options)
  const url = `http://localhost:${await service.listen()}`
  const codes: string[] = []
  for (let i = 0; i < 200; i++) {
    codes.push((await rest(url, '/cross-device/start', { kind: 'sign' })).json.confirmationCode)
  }
  await service.close(0)
  await store.close()
  expect(codes.filter((code) => !/^\d{2}$/.test(code))).toEqual([])
  for (const place of [0, 1]) {
    // All ten are missed by chance once in 10^8 runs.
    expect(new Set(codes.map((code) => code[place])).size, `place ${place}`).toBe(10)
  }
})
