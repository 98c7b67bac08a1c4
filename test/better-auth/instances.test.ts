import { DatabaseSync } from 'node:sqlite'
import type { BetterAuthOptions } from 'better-auth'
import { describe, expect, test } from 'vitest'
import { appOrigin, type ContractDriver } from '../contract/driver.ts'
import { restCalls } from '../contract/rest-driver.ts'
import { ok, untilWaiting } from '../contract/support.ts'
import { Signer } from '../core/order/support.ts'
import { memoryStore } from '../support/memory-store.ts'
import { redisUrl } from '../support/stores.ts'
import { type Answer, answered, approvedOrder, bearerOf, call, countRows, readOrder, signIn } from './calls.ts'
import { type Instance, type InstanceOptions, makeDatabase, makeGate, startInstances } from './instances.ts'
import { type AuthServerOptions, makeAuth, openForTest, redisKeys, startAuth } from './support.ts'

describe.each([
  ['with transactions', true],
  ['without transactions', false],
])('instances on an adapter %s', (_name, transactions) => {
  test('a nonce makes one session', async () => {
    const { file, auth } = await makeDatabase()
    const instances = await startInstances(file, { transactions }, { transactions })
    const signer = new Signer()
    const { json } = await call(auth, '/wallet/nonce', {})
    const proof = { nonceId: json.nonceId, ...signer.prove(json.message) }
    const answers = await Promise.all(twice(instances).map((instance) => call(instance, '/wallet/verify', proof)))
    // SQLite may tell who comes while another writes to try again: 503.
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status !== 401 && status !== 503)).toHaveLength(1)
    expect(await countRows(auth, ['session'])).toEqual([1])
  })

  test('the first sign-ins of one wallet are one user', async () => {
    const { file, auth } = await makeDatabase()
    const instances = await startInstances(file, { transactions }, { transactions })
    for (let round = 0; round < 5; round++) {
      const signer = new Signer()
      const answers = await Promise.all(twice(instances).map((instance) => signIn(instance, signer)))
      const done = answers.filter(({ status }) => status === 200)
      expect(done.length).toBeGreaterThan(0)
      expect(new Set(done.map(({ json }) => json.session.userId)).size).toBe(1)
      // Who comes while another makes the user may be told to try again; nobody gets another user.
      for (const { json } of answers.filter(({ status }) => status !== 200)) expect(json.code).toBe('STORE_UNAVAILABLE')
    }
    expect(await countRows(auth, ['user', 'account'])).toEqual([5, 5])
  })

  test('finalizes hand out one session', async () => {
    const { file, auth } = await makeDatabase()
    const instances = await startInstances(file, { transactions }, { transactions })
    for (let round = 0; round < 5; round++) {
      const order = await approvedOrder(auth)
      const answers = await Promise.all(
        twice(instances).map((instance) => untilAnswered(() => call(instance, '/cross-device/finalize', order))),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      expect(new Set(answers.map(({ json }) => json.token)).size).toBe(1)
      expect(new Set(answers.map(({ json }) => json.session.id)).size).toBe(1)
    }
    expect(await countRows(auth, ['session'])).toEqual([5])
  })

  test('one that is late with its session does not bring back the one that was ended', async () => {
    const { file, auth } = await makeDatabase()
    const gate = await makeGate()
    const [slow] = (await startInstances(file, { transactions, gate: gate.url })) as [Instance]
    const order = await approvedOrder(auth)
    // It has seen that there is no session yet, and stands still before it makes one.
    const late = call(slow, '/cross-device/finalize', order)
    await gate.arrived
    const first = await call(auth, '/cross-device/finalize', order)
    expect(first.status).toBe(200)
    await auth.api.signOut({ headers: new Headers(bearerOf(first)) })
    gate.open()
    const { status, json, headers } = await late
    expect([status, json.code, headers.getSetCookie()]).toEqual([409, 'ORDER_FINALIZED', []])
    expect(await auth.api.getSession({ headers: new Headers(bearerOf(first)) })).toBeNull()
    expect(await countRows(auth, ['session'])).toEqual([0])
  })
})

/** What sessions are kept in, and how instances are told. */
const sessionStores: [name: string, open: () => Promise<[InstanceOptions, Partial<BetterAuthOptions>]>][] = [
  ['a database with transactions', async () => [{ transactions: true }, {}]],
  ['a database without transactions', async () => [{ transactions: false }, {}]],
  ...(redisUrl === undefined
    ? []
    : ([
        [
          'Redis',
          async () => {
            const redis = await redisKeys()
            return [{ transactions: true, redis }, { secondaryStorage: await openForTest(redis) }]
          },
        ],
      ] as typeof sessionStores)),
]

describe.each(sessionStores)('on instances with sessions in %s, a sign-in that is taken back', (_name, open) => {
  /** Takes a sign-in back while another instance makes its session. */
  async function takeBackAt(stop: 'gate' | 'gateAfter', signer: Signer) {
    const [options, storage] = await open()
    const { file, auth } = await makeDatabase(storage)
    const gate = await makeGate()
    const [slow] = (await startInstances(file, { ...options, [stop]: gate.url })) as [Instance]
    const { desktop, phone, challenge } = await readOrder(auth)
    await answered(call(auth, '/cross-device/approve', { ...phone, proof: signer.prove(challenge.message) }))
    const late = call(slow, '/cross-device/finalize', desktop)
    await gate.arrived
    const { json: takenBack } = await call(auth, '/cross-device/reject', phone)
    gate.open()
    const { status, json, headers } = await late
    expect([status, json.code, headers.getSetCookie()]).toEqual([409, 'ORDER_REJECTED', []])
    expect((await call(auth, '/cross-device/finalize', desktop)).json.code).toBe('ORDER_REJECTED')
    const direct = await signIn(auth, signer)
    expect(await auth.api.listSessions({ headers: new Headers(bearerOf(direct)) })).toHaveLength(1)
    return { takenBack, again: (await call(auth, '/cross-device/reject', phone)).json }
  }

  test('before its session is stored has none', async () => {
    const { takenBack, again } = await takeBackAt('gate', new Signer())
    expect(takenBack).toMatchObject({ status: 'finalized', sessionEnded: false })
    expect(again).toEqual(takenBack)
  })

  test('once its session is stored, before the desktop knows, loses it', async () => {
    const { takenBack, again } = await takeBackAt('gateAfter', new Signer())
    expect(takenBack).toMatchObject({ status: 'finalized', sessionEnded: true })
    expect(again).toEqual(takenBack)
  })
})

/** Calls again for as long as the answer is that it should. */
async function untilAnswered(attempt: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 0; ; tries++) {
    const answer = await attempt()
    if (answer.status !== 503 || tries === 20) return answer
  }
}

function twice<T>(items: readonly T[]): T[] {
  return [...items, ...items]
}

describe('a watcher', () => {
  const trust = { auth: { trustedOrigins: [appOrigin] } }

  /** Watches on one instance while the phone rejects on another; how long the news took, milliseconds. */
  async function newsTakes(options: AuthServerOptions, onTheSame = false): Promise<number> {
    const { auth } = await makeDatabase()
    const { options: shared } = await auth.$context
    const storage = async () => ({ database: shared.database as DatabaseSync })
    const driverOf = async () => restCalls((await startAuth({ ...options, ...trust, storage })).url) as ContractDriver
    const one = await driverOf()
    const other = onTheSame ? one : await driverOf()
    const order = await untilWaiting(one)
    const events = other.watch(order.desktop, AbortSignal.timeout(10_000))[Symbol.asyncIterator]()
    expect((await events.next()).value).toMatchObject({ status: 'waiting_user' })
    const startedAt = performance.now()
    const next = events.next()
    await ok(one.call('rejectOrder', order.phone))
    expect((await next).value).toMatchObject({ sequence: 4, status: 'rejected' })
    expect((await events.next()).done).toBe(true)
    return performance.now() - startedAt
  }

  test('learns of a change on its own instance at once', async () => {
    // Before it would look by itself, every two seconds.
    expect(await newsTakes({}, true)).toBeLessThan(1900)
  })

  test('learns of one on another within some two seconds', async () => {
    // Before any heartbeat.
    expect(await newsTakes({})).toBeLessThan(7000)
  })

  test('learns of that at once, too, when the orders are in a store', async () => {
    const store = await memoryStore()
    expect(await newsTakes({ orders: { store } })).toBeLessThan(1900)
  })
})

test('orders are in the model of the given name, and no token is among them', async () => {
  const database = new DatabaseSync(':memory:')
  const auth = await makeAuth({ storage: async () => ({ database }), orders: { orderModelName: 'approvals' } })
  const order = await approvedOrder(auth)
  const [row] = database.prepare('select * from approvals').all()
  expect(row).toMatchObject({ orderId: order.orderId, kind: 'login', status: 'approved', version: 4 })
  expect(JSON.stringify(row)).not.toContain(order.desktopToken)
})

test('orders in a store are in no table', async () => {
  const store = await memoryStore()
  const auth = await makeAuth({ orders: { store } })
  const { status } = await call(auth, '/cross-device/finalize', await approvedOrder(auth))
  expect(status).toBe(200)
  expect(await countRows(auth, ['crossDeviceOrder'])).toEqual([0])
})
