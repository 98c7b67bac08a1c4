import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { describe, expect, onTestFinished, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { silentLogger } from '../../src/base/log.ts'
import { hashToken } from '../../src/base/token.ts'
import { AdminActions } from '../../src/commands/admin/admin-actions.ts'
import { isUnreachable, postToPublic } from '../../src/oidc/outgoing.ts'
import { SessionClients } from '../../src/oidc/session-ends.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { listening } from '../support/listening.ts'
import { memoryStore } from '../support/memory-store.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { Browser, bearer, connect, decide, discover, fileWith, request, shop } from './support.ts'

/** Where clients are told of logouts. `status` is what they answer. */
async function startReceiver() {
  const receiver = { status: 200, tokens: [] as string[], url: '' }
  const answer = async (message: IncomingMessage): Promise<number> => {
    receiver.tokens.push(new URLSearchParams(await text(message)).get('logout_token') ?? '')
    return receiver.status
  }
  const server = createServer((message, response) => {
    void answer(message).then((status) => response.writeHead(status).end())
  })
  receiver.url = `${await listening(server)}/logout`
  return receiver
}

const told = (url: string, client = shop) => ({
  ...client,
  private_network: true,
  metadata: { ...client.metadata, backchannel_logout_uri: url, backchannel_logout_session_required: true },
})

const other = { metadata: { ...shop.metadata, client_id: 'other' } }

async function start(clients: readonly object[], options: CountersignOptions = {}) {
  return await startService({ oidc: { clients: fileWith({ clients }) }, ...options })
}

const patience = { timeout: 15_000, interval: 100 }

test('a session whose user has left the people file has not ended, and no client is told that', async () => {
  const receiver = await startReceiver()
  const store = await memoryStore()
  const wallet = makeWallet()
  const listed = { [`nimiq:${wallet.address}`]: {} }
  const people = fileWith(listed)
  const { url, service } = await start([told(receiver.url)], {
    store,
    secret: 'a secret of this test '.repeat(2),
    people,
  })
  const { session, token } = await connect(url)
  const strict = await start([told(receiver.url)], {
    store,
    secret: 'a secret of this test '.repeat(2),
    people,
    admit: 'people',
  })
  await service.close(0)
  expect((await rest(strict.url, '/session', undefined, bearer(token))).status).toBe(401)
  // As if the session were about to end.
  await new SessionClients(store).noteEnd({ id: session.id, userId: session.userId })
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  expect(receiver.tokens).toEqual([])
  await rest(strict.url, '/sign-out', {}, bearer(token))
  await expect.poll(() => receiver.tokens.length, patience).toBe(1)
})

test('each client of a session that ends is told once, in a token that says whose session it was', async () => {
  const receiver = await startReceiver()
  const third = { metadata: { ...shop.metadata, client_id: 'third' } }
  const { url } = await start([told(receiver.url), told(receiver.url, other), third])
  const { browser, token, session, tokens } = await connect(url)
  const config = await discover(url, other.metadata)
  const second = await request(config)
  const page = await browser.open(second.address)
  await decide(browser, page)
  await rest(url, '/sign-out', {}, bearer(token))
  await expect.poll(() => receiver.tokens.length, patience).toBe(2)
  const keys = createRemoteJWKSet(new URL(`${url}/.well-known/jwks.json`))
  const read = receiver.tokens.map((each) => jwtVerify(each, keys, { issuer: url, typ: 'logout+jwt' }))
  const payloads = (await Promise.all(read)).map(({ payload }) => payload)
  expect(payloads.map(({ aud }) => aud).sort()).toEqual(['other', 'shop'])
  for (const payload of payloads) {
    expect(payload).toMatchObject({
      sub: session.userId,
      sid: expect.any(String),
      jti: expect.any(String),
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    })
    expect(payload.nonce).toBeUndefined()
  }
  expect(payloads.find(({ aud }) => aud === 'shop')?.sid).toBe(tokens.claims()?.sid)
  expect(payloads[0]?.sid).not.toBe(payloads[1]?.sid)
})

describe('a client is told when a session', () => {
  const sessions = (url: string) => createClient(SessionService, createConnectTransport({ baseUrl: url }))
  /** `again` is the token of another session of the same user. */
  type End = (ended: { url: string; token: string; sessionId: string; again: string }) => Promise<unknown>
  test.each<[string, End]>([
    ['is signed out', ({ url, token }) => sessions(url).signOut({}, { headers: bearer(token) })],
    [
      'is revoked from another one',
      ({ url, sessionId, again }) => sessions(url).revokeSession({ sessionId }, { headers: bearer(again) }),
    ],
    [
      'is revoked with all others',
      ({ url, again }) => sessions(url).revokeOtherSessions({}, { headers: bearer(again) }),
    ],
  ])('%s', async (_name, end) => {
    const receiver = await startReceiver()
    const { url } = await start([told(receiver.url)])
    const { token, session, wallet } = await connect(url)
    const { token: again } = await new Browser(url).signIn(wallet)
    await end({ url, token, sessionId: session.id, again })
    await expect.poll(() => receiver.tokens.length, patience).toBe(1)
  })
})

test('a client is told when its user disconnects it, from whichever session, and no other client is', async () => {
  const receiver = await startReceiver()
  const { url } = await start([told(receiver.url), told(receiver.url, other)])
  const { browser, session, wallet, tokens } = await connect(url)
  const second = await request(await discover(url, other.metadata))
  const page = await browser.open(second.address)
  await decide(browser, page)
  const elsewhere = await new Browser(url).signIn(wallet)
  const { status } = await rest(url, '/apps/disconnect', { clientId: 'shop' }, bearer(elsewhere.token))
  expect(status).toBe(200)
  await expect.poll(() => receiver.tokens.length, patience).toBe(1)
  const [{ aud, sub, sid }] = receiver.tokens.map((each) => decodeJwt(each)) as [Record<string, unknown>]
  expect({ aud, sub, sid }).toEqual({ aud: 'shop', sub: session.userId, sid: tokens.claims()?.sid })
  // The session goes on, and with it the other client.
  await rest(url, '/sign-out', {}, bearer(elsewhere.token))
  expect((await rest(url, '/apps', undefined, { cookie: browser.cookie('/') })).json.apps).toMatchObject([
    { clientId: 'other' },
  ])
})

test('what an instance left is told by the next one, and a client that refuses is told again by a new token', async () => {
  const receiver = await startReceiver()
  receiver.status = 500
  const store = await memoryStore()
  const options = { store, secret: 'a secret that both of the instances have' }
  const first = await start([told(receiver.url)], options)
  const signedIn = await new Browser(first.url).signIn(makeWallet())
  // As at a code: tokens were issued in the session.
  await new SessionClients(store).change(signedIn.session.id, 60_000, async () => new Map([['shop', 'a grant']]))
  await first.service.close()
  // An operator's command, which has no secret.
  await new AdminActions(store).users.endSession(signedIn.session.userId, signedIn.session.id)
  await start([told(receiver.url)], options)
  await expect.poll(() => receiver.tokens.length, patience).toBe(1)
  receiver.status = 200
  await expect.poll(() => receiver.tokens.length, patience).toBe(2)
  expect(receiver.tokens[0]).not.toBe(receiver.tokens[1])
  await expect.poll(() => store.members(`logouts:${hashToken('shop')}`), patience).toEqual([])
  expect(await new SessionClients(store).of(signedIn.session.id)).toEqual(new Map())
})

test('a client that accepts and never answers takes nothing from another, and is left alone for a while', async () => {
  const receiver = await startReceiver()
  const silent = createTcpServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
  const sockets: Socket[] = []
  await new Promise((resolve) => silent.once('listening', resolve))
  onTestFinished(() => {
    silent.close()
    for (const socket of sockets) socket.destroy()
  })
  const silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`
  const store = await memoryStore()
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (text: string) => void lines.push(text) }
  await start([told(silentUrl), told(receiver.url, other)], { store, logger })
  const end = async (clientId: string, sessionId: string) => {
    await new SessionClients(store).change(sessionId, 60_000, async () => new Map([[clientId, 'a grant']]))
    await store.addMember('ended-sessions', JSON.stringify([sessionId, 'usr_1']), { ttlMs: 60_000 })
  }
  for (let session = 0; session < 60; session++) await end('shop', `session ${session}`)
  await expect.poll(() => sockets.length, patience).toBeGreaterThan(0)
  await end('other', 'the last session')
  await expect.poll(() => receiver.tokens.length, patience).toBe(1)
  expect(sockets.length).toBeLessThanOrEqual(4)
  await expect.poll(() => lines, patience).toEqual(['a client does not answer; its logouts are kept, and sent later'])
  await end('other', 'one more session')
  await expect.poll(() => receiver.tokens.length, patience).toBe(2)
  expect(sockets.length).toBeLessThanOrEqual(5)
})

test('a session that lives on after its end was noted, as after a crash, is told of only once it is over', async () => {
  const receiver = await startReceiver()
  const store = await memoryStore()
  const { url } = await start([told(receiver.url)], { store })
  const { token, session } = await connect(url)
  await store.addMember('ended-sessions', JSON.stringify([session.id, session.userId]), { ttlMs: 60_000 })
  // Two looks of the issuer.
  await new Promise((resolve) => setTimeout(resolve, 2_500))
  expect(receiver.tokens).toEqual([])
  await rest(url, '/sign-out', {}, bearer(token))
  await expect.poll(() => receiver.tokens.length, patience).toBe(1)
})

describe('a logout address', () => {
  test.each([['http://shop.example/logout'], ['https://shop.example:8443/logout']])(
    '%s stops the start, unless the client is in the service’s own network',
    async (address) => {
      const client = { metadata: { ...shop.metadata, backchannel_logout_uri: address } }
      await expect(start([client])).rejects.toThrow(/backchannel_logout_uri must be https on port 443/)
      await start([{ ...client, private_network: true }])
    },
  )

  test.each([
    ...['127.0.0.1', '10.1.2.3', '172.31.255.255', '192.168.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'],
    ...['224.0.0.1', '255.255.255.255', '::1', '::', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '64:ff9b::7f00:1'],
    ...['fc00::1', 'fd12::1', 'fe80::1', 'ff02::1', '2001:db8::1', '2002:7f00:1::'],
  ])('%s is inside a network', (address) => expect(isUnreachable(address)).toBe(true))

  test.each(['8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450::1'])('%s is public', (address) =>
    expect(isUnreachable(address)).toBe(false),
  )

  test.each(['https://localhost/', 'https://127.0.0.1/', 'https://[::1]/', 'https://2130706433/', 'https://0x7f.1/'])(
    '%s is not connected to',
    async (address) => {
      const sent = { url: new URL(address), headers: {}, body: '' }
      await expect(postToPublic(sent)).rejects.toThrow(/inside this network/)
    },
  )
})
