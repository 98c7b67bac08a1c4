import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { hashToken, Keyring, newToken } from '../../../src/base/token.ts'
import { Sessions } from '../../../src/core/users/sessions.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import { openStore } from '../../../src/store/open.ts'
import { memoryStore } from '../../support/memory-store.ts'

const day = 86_400_000
const details = { userId: 'u', adapterId: 'nimiq', publicKeyHex: 'ab', address: 'NQ', ip: '', userAgent: '' }

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 1) }))
afterEach(() => void vi.useRealTimers())

async function make(cachedTokens?: number, secrets = ['first '.repeat(6)], store = openStore('sqlite::memory:')) {
  const opened = await store
  onTestFinished(() => opened.close())
  const settings = { ttlSeconds: 7 * 86_400, absoluteTtlSeconds: 30 * 86_400, cachedTokens }
  return { store: opened, sessions: new Sessions(settings, opened, new Keyring(secrets)) }
}

describe.each([
  ['with the cache of tokens', undefined],
  ['without it', 0],
] as const)('%s', (_name, cachedTokens) => {
  describe('a token', () => {
    test('a token that this server did not sign finds nothing, without a question to the store', async () => {
      const { sessions, store } = await make(cachedTokens)
      const { token } = await sessions.create(details)
      const [secretPart, signature] = token.split('.') as [string, string]
      const get = vi.spyOn(store, 'get')
      for (const wrong of [
        secretPart,
        `${secretPart}.`,
        `.${signature}`,
        `${secretPart}.${signature}.x`,
        `${secretPart}.${signature.slice(0, -1)}`,
        `${newToken('session')}.${signature}`,
        `${secretPart}.${'A'.repeat(43)}`,
        '',
        '.',
      ]) {
        expect(await sessions.find(wrong), wrong).toBeUndefined()
      }
      expect(get).not.toHaveBeenCalled()
      expect(await sessions.find(token)).toMatchObject(details)
    })

    test('is not in the store, nor is any part of it', async () => {
      const { sessions, store } = await make(cachedTokens)
      const create = vi.spyOn(store, 'create')
      const { token } = await sessions.create(details)
      const stored = JSON.stringify(create.mock.calls)
      for (const part of token.slice(4).split('.')) expect(stored).not.toContain(part)
    })

    test('is compared with something that the id of its session, which is public, says nothing about', async () => {
      const { sessions, store } = await make(cachedTokens)
      const create = vi.spyOn(store, 'create')
      const { session } = await sessions.create(details)
      const { tokenHash } = JSON.parse(String(create.mock.calls[0]?.[1]))
      expect(tokenHash).toHaveLength(43)
      expect(tokenHash).not.toContain(session.id)
    })

    test('signed with an older secret stays good while that secret is listed', async () => {
      const store = openStore('sqlite::memory:')
      const { token } = await (await make(cachedTokens, ['old '.repeat(8)], store)).sessions.create(details)
      expect(
        await (await make(cachedTokens, ['new '.repeat(8), 'old '.repeat(8)], store)).sessions.find(token),
      ).toBeDefined()
      expect(await (await make(cachedTokens, ['new '.repeat(8)], store)).sessions.find(token)).toBeUndefined()
    })

    test('a token that was just used is refused once the secret that signed it is taken away', async () => {
      const store = await memoryStore()
      const keyring = new Keyring(['old '.repeat(8)])
      const sessions = new Sessions({ ttlSeconds: 60, absoluteTtlSeconds: 60, cachedTokens }, store, keyring)
      const { token } = await sessions.create(details)
      const replace = async (...secrets: string[]) => (await keyring.prepare(secrets))()
      await replace('new '.repeat(8), 'old '.repeat(8))
      expect(await sessions.find(token)).toBeDefined()
      expect(await sessions.find(token)).toBeDefined()
      await replace('new '.repeat(8))
      expect(await sessions.find(token)).toBeUndefined()
    })

    test('a token that was just used is refused with a text of another length or letter', async () => {
      const { sessions } = await make(cachedTokens)
      const { token } = await sessions.create(details)
      expect(await sessions.find(token)).toBeDefined()
      const changed = token.endsWith('A') ? 'B' : 'A'
      for (const wrong of [`${token}=`, ` ${token}`, token.slice(0, -1), token.slice(0, -1) + changed]) {
        expect(await sessions.find(wrong), wrong).toBeUndefined()
      }
      expect(await sessions.find(token)).toBeDefined()
    })
  })

  describe('a session whose token was just used', () => {
    const keyring = new Keyring(['first '.repeat(6)])

    /** Two instances on one store. The first has used the token. */
    async function makeTwo() {
      const { store, sessions } = await make(cachedTokens)
      const other = new Sessions(
        { ttlSeconds: 7 * 86_400, absoluteTtlSeconds: 30 * 86_400, cachedTokens },
        store,
        keyring,
      )
      const { token, session } = await sessions.create(details)
      expect(await sessions.find(token)).toEqual(session)
      return { store, sessions, other, token, session }
    }

    test('is refused once another instance has ended it', async () => {
      const { sessions, other, token, session } = await makeTwo()
      expect(await other.end('u', session.id)).toBe(true)
      expect(await sessions.find(token)).toBeUndefined()
      expect(await sessions.use(token)).toBeUndefined()
    })

    test('is refused once the store has lost it, and found again once that has it back', async () => {
      const { store, sessions, token, session } = await makeTwo()
      const key = `session:${session.id}`
      const stored = (await store.take(key)) ?? ''
      expect(await sessions.find(token)).toBeUndefined()
      await store.create(key, stored, 'forever')
      expect(await sessions.find(token)).toEqual(session)
    })

    test('is found as another instance has extended it', async () => {
      const { sessions, other, token, session } = await makeTwo()
      vi.setSystemTime(Date.now() + 2 * day)
      const extended = (await other.use(token))?.session
      expect(extended?.expiresAt).toBeGreaterThan(session.expiresAt)
      expect(await sessions.find(token)).toEqual(extended)
    })

    test('ends at its time, even if the store still has it then', async () => {
      const { store, sessions, token, session } = await makeTwo()
      const key = `session:${session.id}`
      await store.create(key, (await store.take(key)) ?? '', 'forever')
      expect(await sessions.find(token)).toEqual(session)
      vi.setSystemTime(session.expiresAt)
      expect(await sessions.find(token)).toBeUndefined()
      expect(await sessions.use(token)).toBeUndefined()
    })

    test('is not found once the record of another session stands in its place', async () => {
      const { store, sessions, token, session } = await makeTwo()
      const { session: foreign } = await sessions.create({ ...details, userId: 'somebody else' })
      const record = await store.take(`session:${foreign.id}`)
      await store.take(`session:${session.id}`)
      await store.create(`session:${session.id}`, record ?? '', 'forever')
      expect(await sessions.find(token)).toBeUndefined()
      expect(await sessions.find(token)).toBeUndefined()
    })

    test('cannot be changed by the code that was given it', async () => {
      const { sessions, token, session } = await makeTwo()
      const found = (await sessions.find(token)) as { userId: string }
      expect(() => {
        found.userId = 'somebody else'
      }).toThrow(TypeError)
      expect(await sessions.find(token)).toEqual(session)
    })
  })

  describe('a life', () => {
    test('is extended by use, once a tenth of it has gone by', async () => {
      const { sessions } = await make(cachedTokens)
      const { token, session } = await sessions.create(details)
      vi.setSystemTime(Date.now() + 0.6 * day)
      expect(await sessions.use(token)).toEqual({ session, extended: false })
      vi.setSystemTime(Date.now() + 0.2 * day)
      expect(await sessions.use(token)).toEqual({
        session: { ...session, expiresAt: Date.now() + 7 * day },
        extended: true,
      })
    })

    test('ends when it is not used, to the millisecond', async () => {
      const { sessions } = await make(cachedTokens)
      const { token, session } = await sessions.create(details)
      vi.setSystemTime(session.expiresAt - 1)
      expect(await sessions.find(token)).toBeDefined()
      vi.setSystemTime(session.expiresAt)
      expect(await sessions.use(token)).toBeUndefined()
      expect(await sessions.list('u')).toEqual([])
    })

    test('ends at the absolute limit however much it is used', async () => {
      const { sessions } = await make(cachedTokens)
      const { token, session } = await sessions.create(details)
      for (let i = 0; i < 29; i++) {
        vi.setSystemTime(Date.now() + day)
        expect(await sessions.use(token)).toBeDefined()
      }
      expect((await sessions.use(token))?.session.expiresAt).toBe(session.createdAt + 30 * day)
      vi.setSystemTime(Date.now() + day)
      expect(await sessions.use(token)).toBeUndefined()
    })

    test('is not brought back by a request in flight when it is ended', async () => {
      const { sessions, store } = await make(cachedTokens)
      const { token, session } = await sessions.create(details)
      vi.setSystemTime(Date.now() + 2 * day)
      // The request has read the session and is about to extend it.
      const compareAndSet = store.compareAndSet.bind(store)
      vi.spyOn(store, 'compareAndSet').mockImplementationOnce(async (...args) => {
        expect(await sessions.end('u', session.id)).toBe(true)
        return await compareAndSet(...args)
      })
      expect(await sessions.use(token)).toBeUndefined()
      expect(await sessions.find(token)).toBeUndefined()
      expect(await sessions.list('u')).toEqual([])
    })
  })
})

describe('the hundredth session of a user and what is beyond it', () => {
  test('a further one ends the one that expires soonest, and reads no list', async () => {
    const { sessions, store } = await make()
    const made: Awaited<ReturnType<Sessions['create']>>[] = []
    for (let i = 0; i < 100; i++) {
      vi.setSystemTime(Date.now() + 60_000)
      made.push(await sessions.create(details))
    }
    // The first three were used since, so they expire last; the fourth expires soonest.
    vi.setSystemTime(Date.now() + day)
    for (const { token } of made.slice(0, 3)) expect(await sessions.use(token)).toMatchObject({ extended: true })
    const members = vi.spyOn(store, 'members')
    const further = [await sessions.create(details), await sessions.create(details)]
    expect(members).not.toHaveBeenCalled()
    const ended = made.slice(3, 5)
    for (const { token } of ended) expect(await sessions.find(token)).toBeUndefined()
    const live = [...made.filter((one) => !ended.includes(one)), ...further].map(({ session }) => session.id)
    expect((await sessions.list('u')).map(({ id }) => id).sort()).toEqual(live.sort())
    expect(live).toHaveLength(100)
  })

  test('one that expires before all others is not ended by its own sign-in', async () => {
    const { sessions, store } = await make()
    for (let i = 0; i < 100; i++) await sessions.create(details)
    const brief = new Sessions({ ttlSeconds: 60, absoluteTtlSeconds: 60 }, store, new Keyring(['first '.repeat(6)]))
    const { token } = await brief.create(details)
    expect(await sessions.find(token)).toBeDefined()
    expect(await sessions.list('u')).toHaveLength(100)
  })

  test('one that is beyond it before it arrives in the store does not arrive outside the list', async () => {
    const { sessions, store } = await make()
    for (let i = 0; i < 100; i++) await sessions.create(details)
    const brief = new Sessions({ ttlSeconds: 60, absoluteTtlSeconds: 60 }, store, new Keyring(['first '.repeat(6)]))
    // As in a cluster, whose servers answer in any order: its place in the list is there, and another sign-in comes
    // first.
    const create = store.create.bind(store)
    vi.spyOn(store, 'create').mockImplementationOnce(async (...args) => {
      await new Promise((resolve) => setImmediate(resolve))
      await sessions.create(details)
      return await create(...args)
    })
    const { token, session } = await brief.create(details)
    expect(await sessions.find(token)).toEqual(session)
    expect((await sessions.list('u')).map(({ id }) => id)).toContain(session.id)
  })

  test('300 at once leave no session in force that is not in the list, and the next ones end what is too much', async () => {
    const { sessions } = await make()
    const made = await Promise.all(Array.from({ length: 300 }, () => sessions.create(details)))
    const listed = new Set((await sessions.list('u')).map(({ id }) => id))
    expect(listed.size).toBeLessThanOrEqual(200)
    const inForce = await Promise.all(made.map(({ token }) => sessions.find(token)))
    expect(inForce.filter((session) => session !== undefined && !listed.has(session.id))).toEqual([])
    for (let i = 0; i < 12; i++) await sessions.create(details)
    expect(await sessions.list('u')).toHaveLength(100)
  })
})

describe('the list', () => {
  const list = `sessions:${hashToken('u')}`
  const down = () => Promise.reject(new CountersignError('STORE_UNAVAILABLE', 'The store does not answer'))

  test('has no member left of 300 orders that were finalized, signed out and finalized again', async () => {
    const { sessions, store } = await make()
    for (let i = 0; i < 300; i++) {
      const secretPart = newToken('session')
      const { session } = await sessions.create(details, secretPart)
      expect(await sessions.end('u', session.id)).toBe(true)
      await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
    }
    expect(await store.members(list)).toEqual([])
  })

  test('has an extended session for its new life', async () => {
    const { sessions } = await make()
    const { token, session } = await sessions.create(details)
    vi.setSystemTime(Date.now() + day)
    await sessions.use(token)
    vi.setSystemTime(session.expiresAt + day / 2)
    expect(await sessions.list('u')).toMatchObject([{ id: session.id }])
    expect(await sessions.end('u', session.id)).toBe(true)
    expect(await sessions.find(token)).toBeUndefined()
  })

  test('loses a session that is over as soon as it is read', async () => {
    const { sessions, store } = await make()
    const { session } = await sessions.create(details)
    await store.addMember(list, 'never-stored', { ttlMs: 60_000 })
    const gone = await sessions.create(details)
    await store.take(`session:${gone.session.id}`)
    expect(await sessions.list('u')).toEqual([session])
    expect(await store.members(list)).toEqual([session.id])
  })

  test('keeps a session that arrives while it is read', async () => {
    const { sessions, store } = await make()
    const { token, session } = await sessions.create(details)
    vi.spyOn(store, 'get').mockResolvedValueOnce(undefined)
    expect(await sessions.list('u')).toEqual([])
    expect(await sessions.find(token)).toEqual(session)
    expect(await sessions.list('u')).toEqual([session])
  })

  test('is read although what is over cannot be taken off it', async () => {
    const { sessions, store } = await make()
    const { session } = await sessions.create(details)
    await store.addMember(list, 'over', { ttlMs: 60_000 })
    vi.spyOn(store, 'create').mockImplementationOnce(down)
    expect(await sessions.list('u')).toEqual([session])
    expect(await store.members(list)).toHaveLength(2)
  })

  test('loses a session that is gone when it is ended', async () => {
    const { sessions, store } = await make()
    const { session } = await sessions.create(details)
    await store.take(`session:${session.id}`)
    expect(await sessions.end('u', session.id)).toBe(false)
    expect(await store.members(list)).toEqual([])
  })

  test('does not get back a session that is ended while a request extends it', async () => {
    const { sessions, store } = await make()
    const { token, session } = await sessions.create(details)
    vi.setSystemTime(Date.now() + 2 * day)
    const addMember = store.addMember.bind(store)
    vi.spyOn(store, 'addMember').mockImplementationOnce(async (...args) => {
      expect(await sessions.end('u', session.id)).toBe(true)
      return await addMember(...args)
    })
    expect(await sessions.use(token)).toBeUndefined()
    expect(await store.members(list)).toEqual([])
  })

  test.each(['create', 'removeMember'] as const)('is bounded although every %s fails', async (step) => {
    const { sessions, store } = await make()
    const failing = vi.spyOn(store, step)
    for (let i = 0; i < 300; i++) {
      vi.setSystemTime(Date.now() + 1)
      failing.mockImplementation(down)
      const made = await sessions.create(details).catch(() => undefined)
      if (made !== undefined) await sessions.end('u', made.session.id).catch(() => undefined)
      failing.mockReset()
      expect((await store.members(list)).length).toBeLessThanOrEqual(200)
    }
    expect(await sessions.list('u')).toEqual([])
    expect(await store.members(list)).toEqual([])
  })

  test('never misses a session that arrives in the store after its place in the list', async () => {
    const { sessions, store } = await make()
    // As in a cluster, whose servers answer in any order: the list is read, and found to name a session that is not
    // there.
    const create = store.create.bind(store)
    const late = async (...args: Parameters<typeof create>) => {
      await new Promise((resolve) => setImmediate(resolve))
      expect(await sessions.list('u')).toEqual([])
      return await create(...args)
    }
    vi.spyOn(store, 'create').mockImplementationOnce(late)
    const { token, session } = await sessions.create(details)
    expect(await sessions.find(token)).toEqual(session)
    expect(await sessions.list('u')).toEqual([session])

    vi.spyOn(store, 'create').mockImplementationOnce(async (...args) => {
      await sessions.end('u', session.id)
      return await late(...args)
    })
    const secretPart = newToken('session')
    await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
    expect(await store.members(list)).toEqual([])
  })
})
