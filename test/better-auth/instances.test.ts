import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/better-auth/index.ts'
import { appOrigin, type ContractDriver } from '../contract/driver.ts'
import { restCalls } from '../contract/rest-driver.ts'
import { ok, untilWaiting } from '../contract/support.ts'
import { Signer } from '../order/support.ts'
import { type Answer, approvedOrder, bearerOf, call, countRows, signIn } from './calls.ts'
import { type Instance, makeDatabase, makeGate, startInstances } from './instances.ts'
import { type AuthServerOptions, makeAuth, startAuth } from './support.ts'

describe.each([
  ['with transactions', true],
  ['without transactions', false],
])('instances on an adapter %s', (_name, transactions) => {
  test('of one nonce, one session comes', async () => {
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
    expect(await newsTakes({}, true)).toBeLessThan(1000)
  })

  test('learns of one on another within some two seconds', async () => {
    expect(await newsTakes({})).toBeLessThan(3000)
  })

  test('learns of that at once, too, when the orders are in a store', async () => {
    const store = await openStore('sqlite::memory:')
    onTestFinished(() => store.close())
    expect(await newsTakes({ orders: { store } })).toBeLessThan(1000)
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
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  const auth = await makeAuth({ orders: { store } })
  const { status } = await call(auth, '/cross-device/finalize', await approvedOrder(auth))
  expect(status).toBe(200)
  expect(await countRows(auth, ['crossDeviceOrder'])).toEqual([0])
})
