import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Keyring, newToken } from '../../../src/base/token.ts'
import { Sessions, sessionIdOf } from '../../../src/core/users/sessions.ts'
import { mapStore } from '../../../src/store/map-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { memoryStore } from '../../support/memory-store.ts'

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

test('a session is over once it has expired and was found to be, however late its extension arrives', async () => {
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

test('a session that others wrote into a user’s list is not shown there', async () => {
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
