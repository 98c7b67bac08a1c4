import { describe, expect, test } from 'vitest'
import type { NonceStore } from '../../src/core/sign-in/nonce.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { makeComputer, type TestComputer } from '../support/computer.ts'
import { approveOrder } from '../support/flows.ts'
import { keptLog } from '../support/log-lines.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { redisUrl, sharedStores } from '../support/stores.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const wallet = makeWallet()
const secret = 'a secret for tests and for nothing else'
const game = { origin: 'https://game.example' }
const bank = { origin: 'https://bank.example' }

/** What two services on one store have in common. */
interface Pair {
  readonly name: string
  readonly game: CountersignOptions
  readonly bank: CountersignOptions
}

const gameOptions: CountersignOptions = { appName: 'Free Game', trustedOrigins: [game.origin], secret }
const bankOptions: CountersignOptions = { appName: 'Bank', trustedOrigins: [bank.origin], secret }

/** Every service of a pair has an origin of its own, or a name of its own, or a key prefix of its own. */
const pairs: readonly Pair[] = [
  { name: 'one secret', game: gameOptions, bank: bankOptions },
  { name: 'two secrets', game: gameOptions, bank: { ...bankOptions, secret: `${secret}, of the bank` } },
  { name: 'one secret and one name', game: gameOptions, bank: { ...bankOptions, appName: 'Free Game' } },
  {
    name: 'one secret and the same trusted origins',
    game: gameOptions,
    bank: { ...bankOptions, trustedOrigins: [bank.origin, game.origin] },
  },
  {
    name: 'one secret and no check of origins',
    game: gameOptions,
    bank: { ...bankOptions, enforceOrigin: false },
  },
  {
    name: 'everything the same but their key prefixes',
    game: gameOptions,
    bank: { ...gameOptions, keyPrefix: 'bank', trustedOrigins: [game.origin, bank.origin] },
  },
]

/** An order from a computer with a key that the wallet approved, with the wish to let the computer be remembered. */
async function approved(url: string, site: { readonly origin: string }, { key: computerKey }: TestComputer) {
  const { json: started } = await rest(url, '/cross-device/start', { kind: 'login', computerKey }, site)
  const { orderId, desktopToken } = started
  const { returnCode } = await approveOrder(url, started, { wallet, headers: { ...site }, rememberComputer: true })
  return { orderId, desktopToken, returnCode: returnCode as string | undefined }
}

describe.each(sharedStores)('two services on %s', (_name, open) => {
  test.each(pairs)('with $name do not accept signatures for each other', async ({ game: ofGame, bank: ofBank }) => {
    const store = await open()
    const { url: gameUrl } = await startService({ ...ofGame, store })
    const { url: bankUrl } = await startService({ ...ofBank, store })
    const { json: challenge } = await rest(gameUrl, '/wallet/nonce', {}, game)
    const proof = proofOf(wallet, challenge)
    const unknown = await rest(bankUrl, '/wallet/verify', { ...proof, nonceId: 'unknown' }, game)
    expect([unknown.status, unknown.json.code]).toEqual([401, 'NONCE_NOT_FOUND'])
    for (const headers of [game, bank, {}]) {
      const { status, json } = await rest(bankUrl, '/wallet/verify', proof, headers)
      expect([status, json]).toEqual([401, unknown.json])
    }
    expect((await rest(gameUrl, '/wallet/verify', proof, game)).status).toBe(200)
  })

  test.each(pairs)('with $name do not find orders of each other', async ({ game: ofGame, bank: ofBank }) => {
    const store = await open()
    const { url: gameUrl } = await startService({ ...ofGame, store })
    const { url: bankUrl } = await startService({ ...ofBank, store })
    /** Makes every call about an order at the bank; each has to answer as if there were no such order. */
    const expectUnknown = async (calls: readonly Call[]) => {
      for (const [path, body, token] of calls) {
        for (const headers of [game, bank, {}]) {
          const authorized = { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) }
          const answer = await rest(bankUrl, path, body, authorized)
          const none = await rest(
            bankUrl,
            path.replace(orderId, 'none'),
            body && { ...body, orderId: 'none' },
            authorized,
          )
          expect([answer.status, none.json.code], path).toEqual([404, 'ORDER_NOT_FOUND'])
          expect(answer.json).toEqual(none.json)
        }
      }
    }
    const { json: started } = await rest(gameUrl, '/cross-device/start', { kind: 'login' }, game)
    const { orderId, claimToken, desktopToken } = started
    const events: Call = [`/cross-device/events?orderId=${orderId}`, undefined, desktopToken]
    await expectUnknown([['/cross-device/claim', { orderId, claimToken }], events])

    const { challengeToken } = (await rest(gameUrl, '/cross-device/claim', { orderId, claimToken }, game)).json
    const read: Call = [`/cross-device/challenge?orderId=${orderId}`, undefined, challengeToken]
    await expectUnknown([read])
    const { message } = (
      await rest(gameUrl, read[0], undefined, { ...game, authorization: `Bearer ${challengeToken}` })
    ).json
    const { nonceId: _, ...proof } = proofOf(wallet, { nonceId: '', message })
    await expectUnknown([
      ['/cross-device/approve', { orderId, challengeToken, proof }],
      ['/cross-device/reject', { orderId, challengeToken }],
      ['/cross-device/cancel', { orderId, desktopToken }],
    ])

    const approved = await rest(gameUrl, '/cross-device/approve', { orderId, challengeToken, proof }, game)
    expect(approved.json.status).toBe('approved')
    const finalize: Call = ['/cross-device/finalize', { orderId, desktopToken }]
    await expectUnknown([finalize, events])
    expect((await rest(gameUrl, '/cross-device/finalize', { orderId, desktopToken }, game)).status).toBe(200)
    await expectUnknown([finalize, events])
  })

  test.each(pairs)('with $name do not know computers of each other', async ({ game: ofGame, bank: ofBank }) => {
    const store = await open()
    const computer = await makeComputer()
    const { url: gameUrl } = await startService({ ...ofGame, store, confirmationCode: 'return' })
    const { url: bankUrl } = await startService({ ...ofBank, store, confirmationCode: 'return' })
    const own = ofBank.trustedOrigins?.includes(game.origin) || ofBank.enforceOrigin === false ? game : bank
    const atGame = await approved(gameUrl, game, computer)
    const { orderId, desktopToken, returnCode } = atGame
    const proof = { orderId, desktopToken, returnCode, computerProof: await computer.prove(atGame) }
    expect((await rest(gameUrl, '/cross-device/finalize', proof, game)).status).toBe(200)
    expect((await approved(gameUrl, game, computer)).returnCode).toBeUndefined()
    for (const origin of [own, bank]) {
      expect((await approved(bankUrl, origin, computer)).returnCode).toMatch(/^[0-9]{6}$/)
    }
  })

  test('with the same settings are instances of one', async () => {
    const store = await open()
    const options = { ...gameOptions, keyPrefix: 'game', store }
    const [{ url: one }, { url: two }] = await Promise.all([startService(options), startService(options)])
    const { json: challenge } = await rest(one, '/wallet/nonce', {}, game)
    const { status, json } = await rest(two, '/wallet/verify', proofOf(wallet, challenge), game)
    expect(status).toBe(200)
    const { json: current } = await rest(one, '/session', undefined, { authorization: `Bearer ${json.token}` })
    expect(current.session.id).toBe(json.session.id)
  })

  test('with key prefixes of their own have users and sessions of their own', async () => {
    const store = await open()
    const { url: one, service } = await startService({ ...gameOptions, store })
    const { service: other } = await startService({ ...gameOptions, keyPrefix: 'other', store })
    const { json: challenge } = await rest(one, '/wallet/nonce', {}, game)
    const { json } = await rest(one, '/wallet/verify', proofOf(wallet, challenge), game)
    expect(await service.introspect(json.token)).toBeDefined()
    expect(await service.findUser(json.session.userId)).toBeDefined()
    expect(await other.introspect(json.token)).toBeUndefined()
    expect(await other.findUser(json.session.userId)).toBeUndefined()
  })
})

/** Path, body, bearer token. */
type Call = readonly [path: string, body?: Record<string, unknown> | undefined, token?: string]

test('the log says why an order or a nonce in the store is not found', async () => {
  const [, openFile] = sharedStores[0] as (typeof sharedStores)[number]
  const store = await openFile()
  const { logger, lines } = keptLog()
  const { url: gameUrl } = await startService({ ...gameOptions, store })
  const { url: bankUrl } = await startService({ ...bankOptions, store, logger })
  const { url: renamedUrl } = await startService({ ...bankOptions, appName: 'Free Game', store, logger })
  const { json: challenge } = await rest(gameUrl, '/wallet/nonce', {}, game)
  const { json: order } = await rest(gameUrl, '/cross-device/start', { kind: 'login' }, game)
  await rest(bankUrl, '/wallet/verify', proofOf(wallet, challenge), bank)
  await rest(renamedUrl, '/cross-device/claim', { orderId: order.orderId, claimToken: order.claimToken }, bank)
  const causes = lines.map(({ fields }) => [fields.reason, fields.cause])
  expect(causes).toEqual([
    ['NONCE_NOT_FOUND', 'it is of another application than "Bank", which shares the store'],
    ['ORDER_NOT_FOUND', 'its origin, https://game.example, is not trusted here'],
  ])
})

describe('a nonce store of the application’s own', () => {
  /** A map that several services share, with or without an atomic `take`. */
  function mapStore(take: boolean): NonceStore & { readonly keys: () => string[] } {
    const map = new Map<string, string>()
    const nonces: NonceStore = {
      get: async (key) => map.get(key),
      set: async (key, value) => map.set(key, value),
      delete: async (key) => map.delete(key),
    }
    const atomic = { take: async (key: string) => (map.has(key) ? [map.get(key), map.delete(key)][0] : undefined) }
    return { ...nonces, ...(take ? (atomic as Pick<NonceStore, 'take'>) : {}), keys: () => [...map.keys()] }
  }

  /** Starts a service on a store in memory, and returns the warnings of its start. */
  async function start(nonceStore: NonceStore, options: CountersignOptions = {}) {
    const { logger, lines } = keptLog()
    const { url } = await startService({ ...gameOptions, nonceStore, logger, ...options })
    return { url, warnings: lines.filter(({ level }) => level === 'warn').map(({ text }) => text) }
  }

  test('keeps nonces under the key prefix, and under their own keys by default', async () => {
    for (const take of [true, false]) {
      for (const [keyPrefix, beginning] of [
        ['countersign', ''],
        ['staging', 'staging:'],
      ] as const) {
        const nonceStore = mapStore(take)
        const { url } = await start(nonceStore, { keyPrefix })
        const { json: challenge } = await rest(url, '/wallet/nonce', {}, game)
        expect(nonceStore.keys()).toEqual([`${beginning}nonce:${challenge.nonceId}`])
        expect((await rest(url, '/wallet/verify', proofOf(wallet, challenge), game)).status).toBe(200)
        expect(nonceStore.keys()).toEqual([])
      }
    }
  })

  test('does not let services with other names use each other’s nonces', async () => {
    const nonceStore = mapStore(false)
    const [one, other] = [await start(nonceStore), await start(nonceStore, { appName: 'Bank' })]
    const { json: challenge } = await rest(one.url, '/wallet/nonce', {}, game)
    const proof = proofOf(wallet, challenge)
    expect((await rest(other.url, '/wallet/verify', proof, game)).json.code).toBe('NONCE_NOT_FOUND')
    expect((await rest(one.url, '/wallet/verify', proof, game)).status).toBe(200)
  })

  test('without take, beside a store that is not shared, starts with a line that says when it is unsafe', async () => {
    const nonceStore = mapStore(false)
    const [one, two] = [await start(nonceStore), await start(nonceStore)]
    const warning =
      /^nonceStore has no take, and .* is not shared: with more than one instance, .* give nonceStore an atomic take/
    expect(one.warnings).toEqual([expect.stringMatching(warning)])
    // It is as the line says: both have read the nonce before either deletes it, and each marks it in a store of its
    // own.
    const { json: challenge } = await rest(one.url, '/wallet/nonce', {}, game)
    const proof = proofOf(wallet, challenge)
    const bothHaveRead = Promise.withResolvers<void>()
    const { get, delete: remove } = nonceStore
    let reads = 0
    nonceStore.get = (key) => {
      if (++reads === 2) bothHaveRead.resolve()
      return get(key)
    }
    nonceStore.delete = async (key) => {
      await bothHaveRead.promise
      await remove(key)
    }
    const answers = await Promise.all([one, two].map(({ url }) => rest(url, '/wallet/verify', proof, game)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
  })

  test('with take, or beside a shared store, starts without that line', async () => {
    expect((await start(mapStore(true))).warnings).toEqual([])
    if (redisUrl !== undefined) expect((await start(mapStore(false), { store: await redisUrl() })).warnings).toEqual([])
  })
})
