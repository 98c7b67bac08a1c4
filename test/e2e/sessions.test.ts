import { ConnectError, createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { GetCurrentSessionResponseSchema, SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { ErrorInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import { restFromOutput } from '../../src/http/rest/json.ts'
import type { ProvenIdentity } from '../../src/index.ts'
import { memoryStore } from '../support/memory-store.ts'
import { inMemory } from '../support/ordinary-store.ts'
import { bearer, type RestAnswer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

async function signIn(url: string, wallet = makeWallet(), headers: Record<string, string> = {}): Promise<RestAnswer> {
  const { json } = await rest(url, '/wallet/nonce', {}, headers)
  return await rest(url, '/wallet/verify', proofOf(wallet, json), headers)
}

describe('sessions', () => {
  test('a user sees all sessions of the wallet, revokes one, then the others', async () => {
    const { url } = await startService()
    const client = createClient(SessionService, createConnectTransport({ baseUrl: url }))
    const wallet = makeWallet()
    const tokens: string[] = []
    for (const agent of ['phone', 'laptop', 'tablet']) {
      tokens.push((await signIn(url, wallet, { 'user-agent': agent })).json.token)
    }
    const [phone, laptop, tablet] = tokens as [string, string, string]
    const list = async (token: string) => (await client.listSessions({}, { headers: bearer(token) })).sessions

    const sessions = await list(laptop)
    expect(new Set(sessions.map(({ userAgent }) => userAgent))).toEqual(new Set(['tablet', 'laptop', 'phone']))
    expect(sessions.filter(({ current }) => current).map(({ userAgent }) => userAgent)).toEqual(['laptop'])

    const phoneId = sessions.find(({ userAgent }) => userAgent === 'phone')!.id
    expect(await client.revokeSession({ sessionId: phoneId }, { headers: bearer(laptop) })).toMatchObject({ ok: true })
    expect((await rest(url, '/session', undefined, bearer(phone))).json.code).toBe('SESSION_INVALID')

    const revoked = await client.revokeOtherSessions({}, { headers: bearer(laptop) })
    expect(revoked).toMatchObject({ ok: true, revokedCount: 1 })
    expect((await rest(url, '/session', undefined, bearer(tablet))).json.code).toBe('SESSION_INVALID')
    expect(await list(laptop)).toHaveLength(1)
  })

  test('over REST too, a user revokes a session, then the others', async () => {
    const { url } = await startService()
    const wallet = makeWallet()
    const [own, second, third] = [await signIn(url, wallet), await signIn(url, wallet), await signIn(url, wallet)]
    const revoke = (path: string, body: object) => rest(url, `/sessions/${path}`, body, bearer(own.json.token))
    const { id: sessionId } = second.json.session
    expect(await revoke('revoke', { sessionId })).toMatchObject({ status: 200, json: { ok: true } })
    expect(await revoke('revoke', { sessionId })).toMatchObject({ status: 404, json: { code: 'SESSION_NOT_FOUND' } })
    expect(await revoke('revoke-others', {})).toMatchObject({ status: 200, json: { ok: true, revokedCount: 1 } })
    const statusOf = async ({ json }: RestAnswer) => (await rest(url, '/session', undefined, bearer(json.token))).status
    expect([await statusOf(own), await statusOf(second), await statusOf(third)]).toEqual([200, 401, 401])
  })

  test('a page that allows for it gets no error without a live session, and one that does not gets one', async () => {
    const { url } = await startService()
    const { json } = await signIn(url)
    await rest(url, '/sign-out', {}, bearer(json.token))
    for (const headers of [{}, bearer(json.token), bearer('cst_wrong')]) {
      expect(await rest(url, '/session?allowSignedOut=true', undefined, headers)).toMatchObject({
        status: 200,
        json: {},
      })
      expect((await rest(url, '/session', undefined, headers)).status).toBe(401)
    }
  })

  test('each of two users gets the own session, however often and over every protocol', async () => {
    const { url } = await startService()
    const transports = [
      createConnectTransport({ baseUrl: url }),
      createConnectTransport({ baseUrl: url, useBinaryFormat: true }),
      createGrpcWebTransport({ baseUrl: url }),
      createGrpcTransport({ baseUrl: url }),
    ]
    const clients = transports.map((transport) => createClient(SessionService, transport))
    const tokens = [(await signIn(url)).json.token, (await signIn(url)).json.token]
    const told = async (token: string): Promise<unknown[]> => {
      const messages = clients.map((client) => client.getCurrentSession({}, { headers: bearer(token) }))
      const answers = (await Promise.all(messages)).map((message) =>
        restFromOutput(GetCurrentSessionResponseSchema, message),
      )
      return [...answers, (await rest(url, '/session', undefined, bearer(token))).json]
    }
    const first = await Promise.all(tokens.map(told))
    for (const answers of first) {
      for (const answer of answers) expect(answer).toEqual(answers[0])
    }
    expect(first[0]?.[0]).not.toEqual(first[1]?.[0])
    for (let time = 0; time < 2; time++) expect(await Promise.all(tokens.map(told))).toEqual(first)
  })

  test('a backend learns of a token whether it is good, and nothing changes', async () => {
    const store = await memoryStore()
    const { url, service } = await startService({ store })
    const client = createClient(SessionService, createConnectTransport({ baseUrl: url }))
    const { token, session } = (await signIn(url)).json
    const stored = () => store.get(`session:${session.id}`)
    const before = await stored()
    expect(before?.value).toContain(session.id)
    expect(await client.introspectSession({ token })).toMatchObject({
      active: true,
      session: { id: session.id, userId: session.userId, current: false },
    })
    expect(await service.introspect(token)).toMatchObject({ id: session.id })
    expect(await stored()).toEqual(before)
    await rest(url, '/sign-out', {}, bearer(token))
    expect(await client.introspectSession({ token })).toEqual(
      expect.not.objectContaining({ session: expect.anything() }),
    )
    expect(await client.introspectSession({ token: 'nonsense' })).toMatchObject({ active: false })
  })
})

test('a backend that asks about a session does not extend it, as its user does', async () => {
  const { url, service } = await startService({ ...inMemory, sessionTtlSeconds: 1000 })
  const { token, session } = (await signIn(url)).json
  vi.useFakeTimers({ toFake: ['Date'], now: session.createdAt + 500_000 })
  onTestFinished(() => void vi.useRealTimers())
  for (let i = 0; i < 2; i++) expect((await service.introspect(token))?.expiresAt).toBe(session.expiresAt)
  const used = (await rest(url, '/session', undefined, bearer(token))).json.session
  expect(used.expiresAt).toBeGreaterThan(session.expiresAt)
  expect((await service.introspect(token))?.expiresAt).toBe(used.expiresAt)
})

describe('the cookie', () => {
  test('signs in a browser, and is cleared when it signs out', async () => {
    const { url } = await startService()
    const signedIn = await signIn(url)
    const [cookie] = signedIn.headers.getSetCookie()[0]!.split(';') as [string]
    expect((await rest(url, '/session', undefined, { cookie })).json.session.id).toBe(signedIn.json.session.id)
    const out = await rest(url, '/sign-out', {}, { cookie })
    expect(out.headers.getSetCookie()).toEqual(['countersign_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax'])
    expect((await rest(url, '/session', undefined, { cookie })).json.code).toBe('SESSION_INVALID')
  })

  test('is Secure and bound to its host where people come by https', async () => {
    const { url } = await startService({ publicUrl: 'https://auth.example', trustProxy: true })
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'auth.example' }
    const signedIn = await signIn(url, makeWallet(), proxied)
    const [cookie] = signedIn.headers.getSetCookie() as [string]
    expect(cookie).toMatch(
      /^__Host-countersign_session=css_[^;]+; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
    const sent = { ...proxied, cookie: cookie.split(';')[0]! }
    expect((await rest(url, '/session', undefined, sent)).status).toBe(200)
    // The name without the prefix could have been planted by a neighbouring host.
    const planted = { ...proxied, cookie: cookie.split(';')[0]!.replace('__Host-', '') }
    expect((await rest(url, '/session', undefined, planted)).json.code).toBe('SESSION_REQUIRED')
  })

  test('is no bearer token, nor is a token its value, over every protocol', async () => {
    const { url, service } = await startService()
    const signedIn = await signIn(url)
    const { token } = signedIn.json
    const [name, value] = signedIn.headers.getSetCookie()[0]!.split(';')[0]!.split('=') as [string, string]
    // One random part under two signatures.
    expect([value.split('.')[0], value]).toEqual([token.split('.')[0], expect.not.stringContaining(token)])
    const transports = [
      createConnectTransport({ baseUrl: url }),
      createGrpcWebTransport({ baseUrl: url }),
      createGrpcTransport({ baseUrl: url }),
    ]
    const clients = transports.map((transport) => createClient(SessionService, transport))
    const told = async (headers: Record<string, string>): Promise<unknown[]> => [
      (await rest(url, '/session', undefined, headers)).json.code,
      ...(await Promise.all(
        clients.map((client) =>
          client.getCurrentSession({}, { headers }).then(
            () => undefined,
            (thrown) => ConnectError.from(thrown).findDetails(ErrorInfoSchema)[0]?.reason,
          ),
        ),
      )),
    ]
    const each = (code: string | undefined): unknown[] => Array(4).fill(code)
    const [client] = clients as [(typeof clients)[number]]
    // Twice, because what was found good is remembered.
    for (let time = 0; time < 2; time++) {
      expect(await told(bearer(token))).toEqual(each(undefined))
      expect(await told({ cookie: `${name}=${value}` })).toEqual(each(undefined))
      expect(await told(bearer(value))).toEqual(each('SESSION_INVALID'))
      expect(await told({ cookie: `${name}=${token}` })).toEqual(each('SESSION_INVALID'))
      expect((await client.introspectSession({ cookie: value })).session?.id).toBe(signedIn.json.session.id)
      expect(await client.introspectSession({ cookie: token })).toMatchObject({ active: false })
      expect(await client.introspectSession({ token: value })).toMatchObject({ active: false })
      expect((await service.introspect(value, 'cookie'))?.id).toBe(signedIn.json.session.id)
      expect(await service.introspect(value)).toBeUndefined()
      expect(await service.introspect(token, 'cookie')).toBeUndefined()
    }
    for (const request of [{}, { token, cookie: value }]) {
      await expect(client.introspectSession(request)).rejects.toThrow(/token, cookie/)
    }
    // Signing out by the token clears the cookie of the same session.
    const out = await rest(url, '/sign-out', {}, { cookie: `${name}=${value}`, ...bearer(token) })
    expect(out.headers.getSetCookie()).toEqual([expect.stringMatching(/^countersign_session=; Max-Age=0;/)])
  })

  test('from a page that is not trusted is refused, also to sign out', async () => {
    const { url } = await startService()
    const { headers } = await signIn(url)
    const cookie = headers.getSetCookie()[0]!.split(';')[0]!
    const evil = { cookie, origin: 'https://evil.example' }
    expect((await rest(url, '/sign-out', {}, evil)).json.code).toBe('ORIGIN_NOT_TRUSTED')
    expect((await rest(url, '/session', undefined, { cookie })).status).toBe(200)
  })

  test('loses against a bearer token, whose session is the one that is meant', async () => {
    const { url } = await startService()
    const [a, b] = [await signIn(url), await signIn(url)]
    const both = { cookie: a.headers.getSetCookie()[0]!.split(';')[0]!, ...bearer(b.json.token) }
    expect((await rest(url, '/session', undefined, both)).json.session.id).toBe(b.json.session.id)
    const out = await rest(url, '/sign-out', {}, both)
    expect(out.headers.getSetCookie()).toEqual([])
    expect((await rest(url, '/session', undefined, bearer(a.json.token))).status).toBe(200)
  })

  test('is cleared by a sign-out that names the same session by its bearer token', async () => {
    const { url } = await startService()
    const { headers, json } = await signIn(url)
    const cookie = headers.getSetCookie()[0]!.split(';')[0]!
    const out = await rest(url, '/sign-out', {}, { cookie, ...bearer(json.token) })
    expect(out.headers.getSetCookie()).toEqual([expect.stringContaining('Max-Age=0')])
    expect((await rest(url, '/session', undefined, { cookie })).json.code).toBe('SESSION_INVALID')
  })

  test('lasts as long as a session can from the start, and is not set again', async () => {
    const { url } = await startService({ ...inMemory, sessionTtlSeconds: 1000, sessionAbsoluteTtlSeconds: 5000 })
    const { headers, json } = await signIn(url)
    const [set = ''] = headers.getSetCookie()
    const [cookie = ''] = set.split(';')
    expect(set).toBe(`${cookie}; Max-Age=5000; Path=/; HttpOnly; SameSite=Lax`)
    vi.useFakeTimers({ toFake: ['Date'], now: json.session.createdAt + 500_000 })
    try {
      const later = await rest(url, '/session', undefined, { cookie })
      expect(later.json.session.expiresAt).toBe(json.session.createdAt + 1_500_000)
      expect(later.headers.getSetCookie()).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('users', () => {
  test('carry address and key only where the settings say so', async () => {
    const wallet = makeWallet()
    const bare = await startService()
    const bareUser = (await signIn(bare.url, wallet)).json.session.userId
    expect(await bare.service.findUser(bareUser)).toEqual({ id: bareUser, createdAt: expect.any(Number) })
    expect(await bare.service.findUser('usr_nobody')).toBeUndefined()
    expect((await rest(bare.url, '/sign-out', {})).json).toEqual({ ok: true })
    const full = await startService({ syncAddressToUser: true, syncPublicKeyToUser: true })
    const fullUser = (await signIn(full.url, wallet)).json.session.userId
    expect(await full.service.findUser(fullUser)).toMatchObject({
      address: wallet.address,
      publicKeyHex: wallet.publicKeyHex,
    })
  })

  test('get them at their next sign-in, and nothing else changes, once the settings say so', async () => {
    const store = await memoryStore()
    const wallet = makeWallet()
    const bare = await startService({ store })
    const { userId } = (await signIn(bare.url, wallet)).json.session
    const before = await bare.service.findUser(userId)
    const full = await startService({ store, syncAddressToUser: true, syncPublicKeyToUser: true })
    const again = await Promise.all(Array.from({ length: 10 }, () => signIn(full.url, wallet)))
    expect(new Set(again.map(({ json }) => json.session?.userId))).toEqual(new Set([userId]))
    const { address, publicKeyHex } = wallet
    expect(await full.service.findUser(userId)).toEqual({ ...before, address, publicKeyHex })
    const stored = await store.get(`user:${userId}`)
    await signIn(full.url, wallet)
    expect(await store.get(`user:${userId}`)).toEqual(stored)
  })

  test('are whom the application says they are', async () => {
    const wallet = makeWallet()
    const asked: ProvenIdentity[] = []
    const { url } = await startService({
      resolveLogin: (identity) => {
        asked.push(identity)
        return identity.publicKeyHex === wallet.publicKeyHex ? { id: 'alice@example.com' } : null
      },
    })
    expect((await signIn(url, wallet)).json.session.userId).toBe('alice@example.com')
    const { publicKeyHex, address } = wallet
    expect(asked).toEqual([{ adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address }])
    const stranger = await signIn(url)
    expect([stranger.status, stranger.json.code]).toEqual([403, 'LOGIN_REFUSED'])
    expect(stranger.headers.getSetCookie()).toEqual([])
  })
})
