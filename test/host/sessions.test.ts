import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Sessions } from '../../src/host/sessions.ts'
import { openStore } from '../../src/store/open.ts'
import { Keyring, newToken } from '../../src/token.ts'

const day = 86_400_000
const details = { userId: 'u', adapterId: 'nimiq', publicKeyHex: 'ab', address: 'NQ', ip: '', userAgent: '' }

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 1) }))
afterEach(() => void vi.useRealTimers())

async function make(secrets = ['first '.repeat(6)], store = openStore('sqlite::memory:')) {
  const opened = await store
  onTestFinished(() => opened.close())
  const settings = { ttlSeconds: 7 * 86_400, absoluteTtlSeconds: 30 * 86_400 }
  return { store: opened, sessions: new Sessions(settings, opened, new Keyring(secrets)) }
}

describe('a token', () => {
  test('that this server did not sign finds nothing, without a question to the store', async () => {
    const { sessions, store } = await make()
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
    const { sessions, store } = await make()
    const create = vi.spyOn(store, 'create')
    const { token } = await sessions.create(details)
    const stored = JSON.stringify(create.mock.calls)
    for (const part of token.slice(4).split('.')) expect(stored).not.toContain(part)
  })

  test('is compared with something that the id of its session, which is public, says nothing about', async () => {
    const { sessions, store } = await make()
    const create = vi.spyOn(store, 'create')
    const { session } = await sessions.create(details)
    const { tokenHash } = JSON.parse(String(create.mock.calls[0]?.[1]))
    expect(tokenHash).toHaveLength(43)
    expect(tokenHash).not.toContain(session.id)
  })

  test('signed with an older secret stays good while that secret is listed', async () => {
    const store = openStore('sqlite::memory:')
    const { token } = await (await make(['old '.repeat(8)], store)).sessions.create(details)
    expect(await (await make(['new '.repeat(8), 'old '.repeat(8)], store)).sessions.find(token)).toBeDefined()
    expect(await (await make(['new '.repeat(8)], store)).sessions.find(token)).toBeUndefined()
  })
})

describe('a life', () => {
  test('is extended by use, once a tenth of it has gone by', async () => {
    const { sessions } = await make()
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
    const { sessions } = await make()
    const { token, session } = await sessions.create(details)
    vi.setSystemTime(session.expiresAt - 1)
    expect(await sessions.find(token)).toBeDefined()
    vi.setSystemTime(session.expiresAt)
    expect(await sessions.use(token)).toBeUndefined()
    expect(await sessions.list('u')).toEqual([])
  })

  test('ends at the absolute limit however much it is used', async () => {
    const { sessions } = await make()
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
    const { sessions, store } = await make()
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

describe('ending', () => {
  test('takes one session and leaves the others', async () => {
    const { sessions } = await make()
    const one = await sessions.create(details)
    vi.setSystemTime(Date.now() + 1)
    const two = await sessions.create(details)
    expect((await sessions.list('u')).map(({ id }) => id)).toEqual([two.session.id, one.session.id])
    expect(await sessions.end('u', one.session.id)).toBe(true)
    expect(await sessions.end('u', one.session.id)).toBe(false)
    expect(await sessions.find(one.token)).toBeUndefined()
    expect((await sessions.list('u')).map(({ id }) => id)).toEqual([two.session.id])
  })

  test("does not reach another user's session", async () => {
    const { sessions } = await make()
    const { token, session } = await sessions.create(details)
    expect(await sessions.end('someone else', session.id)).toBe(false)
    expect(await sessions.find(token)).toBeDefined()
  })
})

describe('the same secret part', () => {
  test('makes one session, however often and at once', async () => {
    const { sessions } = await make()
    const secretPart = newToken('session')
    const made = await Promise.all(Array.from({ length: 20 }, () => sessions.create(details, secretPart)))
    expect(new Set(made.map(({ token }) => token)).size).toBe(1)
    expect(await sessions.list('u')).toHaveLength(1)
  })

  test('makes none once that session was ended', async () => {
    const { sessions } = await make()
    const secretPart = newToken('session')
    const { token, session } = await sessions.create(details, secretPart)
    await sessions.end('u', session.id)
    await expect(sessions.create(details, secretPart)).rejects.toMatchObject({ reason: 'ORDER_FINALIZED' })
    expect(await sessions.find(token)).toBeUndefined()
  })
})

test('a user has a hundred sessions at most: a further one ends the oldest', async () => {
  const { sessions } = await make()
  const first = await sessions.create(details)
  for (let i = 0; i < 100; i++) {
    vi.setSystemTime(Date.now() + 1)
    await sessions.create(details)
  }
  expect(await sessions.list('u')).toHaveLength(100)
  expect(await sessions.find(first.token)).toBeUndefined()
})
