import { setImmediate as nextTurn } from 'node:timers/promises'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SessionService } from '../../../gen/server/countersign/v1/session_service_pb.ts'
import { Keyring, newToken } from '../../../src/base/token.ts'
import { Sessions, sessionIdOf } from '../../../src/core/users/sessions.ts'
import { mapStore } from '../../../src/store/map-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { Signer } from '../order/support.ts'

const minute = 60_000
const ttlSeconds = 3600
const details = { userId: 'u', adapterId: 'nimiq', publicKeyHex: 'ab', address: 'NQ', ip: '', userAgent: '' }

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 1) }))
afterEach(() => void vi.useRealTimers())

function pass(ms: number): void {
  vi.setSystemTime(Date.now() + ms)
}

function make(store: Store): Sessions {
  return new Sessions({ ttlSeconds, absoluteTtlSeconds: 10 * ttlSeconds }, store, new Keyring(['a secret '.repeat(4)]))
}

describe('a session that was extended', () => {
  test('stays in the list beyond its first life, for as long as it lives', async () => {
    const sessions = make(await memoryStore())
    const { token, session } = await sessions.create(details)
    pass(50 * minute)
    const extended = (await sessions.use(token))?.session
    expect(extended?.expiresAt).toBe(Date.now() + 60 * minute)
    pass(20 * minute)
    expect(Date.now()).toBeGreaterThan(session.expiresAt)
    expect(await sessions.list('u')).toEqual([extended])
    pass(39 * minute)
    expect(await sessions.list('u')).toEqual([extended])
    pass(minute)
    expect(await sessions.list('u')).toEqual([])
  })

  test('is over once it has expired and was found to be, however late its extension arrives', async () => {
    const store = await memoryStore()
    const held = Promise.withResolvers<void>()
    const slow = mapStore(store, {
      async around(operation, step) {
        if (operation === 'compareAndSet') await held.promise
        return await step()
      },
    })
    const { token } = await make(store).create(details)
    pass(60 * minute - 1000)
    const using = make(slow).use(token)
    await nextTurn()
    pass(2000)
    expect(await make(store).list('u')).toEqual([])
    held.resolve()
    await using
    expect(await make(store).find(token)).toBeUndefined()
  })

  test('is ended with the others beyond its first life', async () => {
    const { url } = await startService({ sessionTtlSeconds: ttlSeconds })
    const client = createClient(SessionService, createConnectTransport({ baseUrl: url }))
    const signer = new Signer()
    const signIn = async () => {
      const { json } = await rest(url, '/wallet/nonce', {})
      const proof = { nonceId: json.nonceId, ...signer.prove(json.message) }
      const { token } = (await rest(url, '/wallet/verify', proof)).json
      return { headers: { authorization: `Bearer ${token}` } }
    }
    const [own, other] = [await signIn(), await signIn()]
    const statusOf = async ({ headers }: { headers: Record<string, string> }) =>
      (await rest(url, '/session', undefined, headers)).status
    pass(50 * minute)
    expect([await statusOf(own), await statusOf(other)]).toEqual([200, 200])
    pass(50 * minute)
    expect((await client.listSessions({}, own)).sessions).toHaveLength(2)
    expect(await client.revokeOtherSessions({}, own)).toMatchObject({ ok: true, revokedCount: 1 })
    expect([await statusOf(own), await statusOf(other)]).toEqual([200, 401])
    expect((await client.listSessions({}, own)).sessions).toHaveLength(1)
  })
})

test('a session that is extended at the moment in which it is ended is ended', async () => {
  const store = await memoryStore()
  const sessions = make(store)
  const { token, session } = await sessions.create(details)
  pass(50 * minute)
  // The end has read the session and is about to mark it.
  const compareAndSet = store.compareAndSet.bind(store)
  vi.spyOn(store, 'compareAndSet').mockImplementationOnce(async (...args) => {
    expect(await sessions.use(token)).toMatchObject({ extended: true })
    return await compareAndSet(...args)
  })
  expect(await sessions.end('u', session.id)).toBe(true)
  expect(await sessions.find(token)).toBeUndefined()
  expect(await sessions.list('u')).toEqual([])
})

describe('what others wrote into the store', () => {
  test('under the id of a session does not give its token another session', async () => {
    const store = await memoryStore()
    const sessions = make(store)
    const [mine, other] = [await sessions.create(details), await sessions.create({ ...details, userId: 'other' })]
    const stored = (await store.take(`session:${other.session.id}`)) as string
    await store.take(`session:${mine.session.id}`)
    await store.create(`session:${mine.session.id}`, stored, { ttlMs: minute })
    expect(await sessions.find(mine.token)).toBeUndefined()
    expect(await sessions.use(mine.token)).toBeUndefined()
  })

  test('into a user’s list does not show another user’s session', async () => {
    const store = await memoryStore()
    const sessions = make(store)
    const [mine, other] = [await sessions.create(details), await sessions.create({ ...details, userId: 'other' })]
    const addMember = vi.spyOn(store, 'addMember')
    await sessions.create(details)
    const list = String(addMember.mock.calls[0]?.[0])
    await store.addMember(list, other.session.id, { ttlMs: minute })
    expect((await sessions.list('u')).map(({ userId }) => userId)).toEqual(['u', 'u'])
    expect(await sessions.find(mine.token)).toBeDefined()
  })
})

describe('the mark of an order that was taken back', () => {
  const order = () => {
    const secretPart = newToken('session')
    return { secretPart, id: sessionIdOf(secretPart) }
  }

  test('remembers for ten minutes whether the session was live, and does not make it in that time', async () => {
    const sessions = make(await memoryStore())
    const [made, unmade] = [order(), order()]
    await sessions.create(details, made.secretPart)
    const expectAnswers = async () => {
      expect(await sessions.takeBack('u', made.id)).toBe(true)
      expect(await sessions.takeBack('u', unmade.id)).toBe(false)
    }
    await expectAnswers()
    pass(10 * minute - 1)
    await expectAnswers()
    for (const { secretPart } of [made, unmade]) {
      await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
    }
    expect(await sessions.list('u')).toEqual([])
  })

  test('says of a session that has expired that it was not live', async () => {
    const sessions = make(await memoryStore())
    const { secretPart, id } = order()
    const { session } = await sessions.create(details, secretPart)
    vi.setSystemTime(session.expiresAt)
    expect(await sessions.takeBack('u', id)).toBe(false)
    await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
  })

  test('says of a session that is still stored when it expires that it was not live', async () => {
    const store = await memoryStore()
    const sessions = make(store)
    const { secretPart, id } = order()
    const { session } = await sessions.create(details, secretPart)
    // As when the clock of the store is set back by less than the life that is left.
    vi.spyOn(store, 'now').mockReturnValue(session.expiresAt)
    expect(await sessions.takeBack('u', id)).toBe(false)
    vi.restoreAllMocks()
    await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
  })

  test('takes the place of the mark that the user’s own sign-out left nine minutes ago', async () => {
    const sessions = make(await memoryStore())
    const { secretPart, id } = order()
    await sessions.create(details, secretPart)
    expect(await sessions.end('u', id)).toBe(true)
    pass(9 * minute)
    expect(await sessions.takeBack('u', id)).toBe(false)
    pass(9 * minute)
    await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
    expect(await sessions.takeBack('u', id)).toBe(false)
  })

  test('takes the place of one that an older release left, which says nothing of a live session', async () => {
    const store = await memoryStore()
    const { secretPart, id } = order()
    await store.create(`session:${id}`, '{"v":1,"ended":true}', { ttlMs: minute })
    expect(await make(store).takeBack('u', id)).toBe(false)
    pass(minute)
    await expect(make(store).create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
  })
})

describe('the mark of a session that has ended', () => {
  test('is there for ten minutes, in which the same secret makes no session', async () => {
    const sessions = make(await memoryStore())
    const secretPart = newToken('session')
    const { token, session } = await sessions.create(details, secretPart)
    expect(await sessions.end('u', session.id)).toBe(true)
    pass(10 * minute - 1)
    await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
    expect(await sessions.find(token)).toBeUndefined()
    pass(1)
    expect(await sessions.create(details, secretPart)).toMatchObject({ token })
  })

  test('outlives the session that it ends', async () => {
    const sessions = make(await memoryStore())
    const secretPart = newToken('session')
    const { session } = await sessions.create(details, secretPart)
    pass(60 * minute - 1)
    expect(await sessions.end('u', session.id)).toBe(true)
    pass(5 * minute)
    await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
  })
})
