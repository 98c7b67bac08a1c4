import { randomBytes } from 'node:crypto'
import { createClient, createRouterTransport } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { newId } from '../../src/base/token.ts'
import { KnownComputers } from '../../src/core/order/known-computers.ts'
import type { Host } from '../../src/core/users/host.ts'
import { registerMethods } from '../../src/rpc/connect.ts'
import { Invoker } from '../../src/rpc/invoke.ts'
import { methodsOf } from '../../src/rpc/methods.ts'
import { sessionHandlers } from '../../src/rpc/session-service.ts'
import { CountersignError } from '../../src/shared/errors.ts'
import { desktop, makeInstance, Signer } from '../core/order/support.ts'
import { memoryStore } from '../support/memory-store.ts'
import { reasonOf } from '../support/rpc-answer.ts'
import type { TestHostOptions } from '../support/standalone.ts'

const browser = { ip: '192.0.2.1', userAgent: 'Browser/1.0' }

function newIdentity() {
  const { publicKeyHex } = new Signer()
  return { adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address: 'NQ07 0000' }
}

/** A host on a store of its own, with known computers. */
async function makeParts(settings: Pick<TestHostOptions, 'resolveLogin'> = {}) {
  const store = await memoryStore()
  const { host } = makeInstance(store, { host: settings })
  const computers = new KnownComputers(store)

  /** Signs a wallet in by an order from a computer that the order is about to make known. */
  const signInFrom = async (computerId: string, identity = newIdentity()) => {
    const order = { orderId: newId(), at: store.now() }
    const user = await host.resolveUser(identity)
    const grant = { orderId: order.orderId, seed: randomBytes(32), computerId }
    const { session, token } = await host.createSession(user, identity, desktop, grant)
    const remember = () => computers.remember(identity, computerId, order, browser)
    const isKnown = () => computers.isKnown(identity, computerId)
    return { session, identity, headers: { authorization: `Bearer ${token}` }, remember, isKnown }
  }
  return { host, computers, signInFrom }
}

function clientOf(host: Host, computers?: KnownComputers) {
  const methods = methodsOf(SessionService, sessionHandlers(host, { computers }))
  const invoker = new Invoker(undefined, () => {})
  return createClient(
    SessionService,
    createRouterTransport((router) => registerMethods(router, methods, invoker)),
  )
}

test('a computer that an order is about to make known stays forgotten if the order’s session is revoked before', async () => {
  const { host, computers, signInFrom } = await makeParts()
  const client = clientOf(host, computers)
  const own = await signInFrom('own')
  const other = await signInFrom('other', own.identity)
  const sessionId = other.session.id
  expect(await client.revokeSession({ sessionId }, { headers: own.headers })).toMatchObject({ ok: true })
  await other.remember()
  expect(await other.isKnown()).toBe(false)

  const third = await signInFrom('third', own.identity)
  const revoked = await client.revokeOtherSessions({}, { headers: own.headers })
  expect(revoked.revokedCount).toBe(1)
  await third.remember()
  expect(await third.isKnown()).toBe(false)
})

test('no step of revoking that fails leaves a session ended and its computer known', async () => {
  const { host, computers, signInFrom } = await makeParts()
  const own = await signInFrom('own')
  const other = await signInFrom('other', own.identity)
  await other.remember()
  const outage = async () => {
    throw new CountersignError('STORE_UNAVAILABLE', 'The store does not answer')
  }
  const failing = new Proxy(host, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (name === 'revokeSession') return outage
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const revoke = (on: Host) =>
    clientOf(on, computers).revokeSession({ sessionId: other.session.id }, { headers: own.headers })
  expect(await reasonOf(revoke(failing))).toBe('STORE_UNAVAILABLE')
  expect(await other.isKnown()).toBe(false)
  expect(await reasonOf(revoke(host))).toBeUndefined()

  const again = await signInFrom('again', own.identity)
  await again.remember()
  const revokeOthers = clientOf(failing, computers).revokeOtherSessions({}, { headers: own.headers })
  expect(await reasonOf(revokeOthers)).toBe('STORE_UNAVAILABLE')
  expect(await again.isKnown()).toBe(false)
})

test('a user of several wallets forgets with a session the computer of that session’s wallet', async () => {
  const { host, computers, signInFrom } = await makeParts({ resolveLogin: () => ({ id: 'one user' }) })
  const client = clientOf(host, computers)
  const [own, second, third] = [await signInFrom('a'), await signInFrom('b'), await signInFrom('c')]
  for (const { remember } of [own, second, third]) await remember()
  // The same id at another wallet: ids say nothing across wallets.
  await computers.remember(own.identity, 'b', { orderId: newId(), at: Date.now() }, browser)

  // Listed and forgotten by their ids are those of the wallet that signed in.
  const { computers: listed } = await client.listKnownComputers({}, { headers: own.headers })
  expect(listed.map(({ id, current }) => [id, current])).toEqual(
    expect.arrayContaining([
      ['a', true],
      ['b', false],
    ]),
  )
  expect(listed).toHaveLength(2)
  expect(await reasonOf(client.forgetKnownComputer({ id: 'c' }, { headers: own.headers }))).toBe('COMPUTER_NOT_FOUND')

  await client.revokeSession({ sessionId: second.session.id }, { headers: own.headers })
  expect(await second.isKnown()).toBe(false)
  expect(await computers.isKnown(own.identity, 'b')).toBe(true)
  await client.revokeOtherSessions({}, { headers: own.headers })
  expect(await third.isKnown()).toBe(false)
  expect(await computers.isKnown(own.identity, 'b')).toBe(false)
  expect(await own.isKnown()).toBe(true)
})

describe('a session that an order made', () => {
  async function makeSessions() {
    const { host, computers, signInFrom } = await makeParts()
    const order = await signInFrom('relayed')
    const other = await signInFrom('phone', order.identity)
    const user = await host.resolveUser(order.identity)
    const direct = await host.createSession(user, order.identity, desktop)
    const headers = { authorization: `Bearer ${direct.token}` }
    const live = async () => (await host.listSessions(user.id)).map(({ id }) => id).sort()
    const ids = (...sessions: { id: string }[]) => sessions.map(({ id }) => id).sort()
    return { client: clientOf(host, computers), order, other, direct: { ...direct, headers }, live, ids }
  }

  test('ends no session that a direct sign-in made', async () => {
    const { client, order, other, direct, live, ids } = await makeSessions()
    await order.remember()
    const revoke = (sessionId: string) => client.revokeSession({ sessionId }, { headers: order.headers })
    expect(await reasonOf(revoke(direct.session.id))).toBe('SESSION_NOT_FRESH')
    expect(await reasonOf(revoke('unknown'))).toBe('SESSION_NOT_FOUND')
    expect(await live()).toEqual(ids(order.session, other.session, direct.session))

    const { revokedCount } = await client.revokeOtherSessions({}, { headers: order.headers })
    expect(revokedCount).toBe(1)
    expect(await live()).toEqual(ids(order.session, direct.session))
  })

  test('ends those that orders made, its own included, and forgets computers', async () => {
    const { client, order, other, direct, live, ids } = await makeSessions()
    for (const { remember } of [order, other]) await remember()
    const { headers } = order
    await client.revokeSession({ sessionId: other.session.id }, { headers })
    expect(await other.isKnown()).toBe(false)
    await client.forgetKnownComputer({ id: 'relayed' }, { headers })
    expect(await order.isKnown()).toBe(false)
    await client.revokeSession({ sessionId: order.session.id }, { headers })
    expect(await live()).toEqual(ids(direct.session))
  })

  test('is ended by one that a direct sign-in made', async () => {
    const { client, order, other, direct, live, ids } = await makeSessions()
    await client.revokeSession({ sessionId: order.session.id }, { headers: direct.headers })
    expect(await live()).toEqual(ids(other.session, direct.session))
    expect((await client.revokeOtherSessions({}, { headers: direct.headers })).revokedCount).toBe(1)
    expect(await live()).toEqual(ids(direct.session))
  })
})

test('another user’s session cannot be revoked, and its computer stays known', async () => {
  const { host, computers, signInFrom } = await makeParts()
  const [own, stranger] = [await signInFrom('own'), await signInFrom('theirs')]
  await stranger.remember()
  const call = clientOf(host, computers).revokeSession({ sessionId: stranger.session.id }, { headers: own.headers })
  expect(await reasonOf(call)).toBe('SESSION_NOT_FOUND')
  expect(await stranger.isKnown()).toBe(true)
})

test('where computers cannot be kept, they are NOT_ENABLED, and sessions are revoked all the same', async () => {
  const { host, signInFrom } = await makeParts()
  const client = clientOf(host)
  const own = await signInFrom('own')
  const [second, third] = [await signInFrom('b', own.identity), await signInFrom('c', own.identity)]
  const { headers } = own
  expect(await reasonOf(client.listKnownComputers({}, { headers }))).toBe('NOT_ENABLED')
  expect(await reasonOf(client.forgetKnownComputer({ id: 'own' }, { headers }))).toBe('NOT_ENABLED')
  await client.revokeSession({ sessionId: second.session.id }, { headers })
  expect((await client.revokeOtherSessions({}, { headers })).revokedCount).toBe(1)
  expect((await host.listSessions(own.session.userId)).map(({ id }) => id)).toEqual([own.session.id])
  expect(third.session.computerId).toBe('c')
})
