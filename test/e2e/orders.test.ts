import { createHash, createPublicKey, verify } from 'node:crypto'
import { PublicKey, Signature } from '@nimiq/core'
import { expect, test } from 'vitest'
import { type OrderClient, orderClients, type Transition } from '../support/orders.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'

const lifetime = [
  { sequence: 1, status: 'created' },
  { sequence: 2, status: 'claimed' },
  { sequence: 3, status: 'waiting_user' },
  { sequence: 4, status: 'approved' },
  { sequence: 5, status: 'finalized' },
]

async function collect(events: AsyncIterable<Transition>): Promise<Transition[]> {
  const seen: Transition[] = []
  for await (const event of events) seen.push(event)
  return seen
}

/** What the phone does, from the claim URL on. */
async function approve(phone: OrderClient, claimUrl: string, wallet: TestWallet) {
  const { pathname, hash } = new URL(claimUrl)
  const orderId = pathname.split('/').at(-1) as string
  const claimToken = new URLSearchParams(hash.slice(1)).get('token') as string
  const { challengeToken } = await phone.claim({ orderId, claimToken })
  const challenge = await phone.challenge({ orderId, challengeToken })
  const proof = {
    publicKeyHex: wallet.publicKeyHex,
    signatureHex: wallet.sign(challenge.message),
    address: wallet.address,
  }
  await phone.approve({ orderId, challengeToken, proof })
  return challenge
}

/** Both kinds of order, from start to end. */
async function bothFlows(desktop: OrderClient, phone: OrderClient, sessionUrl: string): Promise<void> {
  const wallet = makeWallet()
  const login = await desktop.start('login', { returnTo: '/welcome?x=1', displayTitle: 'Grüezi' })
  const events = collect(desktop.watch(login, 0))
  const challenge = await approve(phone, login.claimUrl, wallet)
  expect(challenge.confirmationCode).toBe(login.confirmationCode)
  const { token, redirectTo, session } = await desktop.finalize(login)
  expect(redirectTo).toBe('/welcome?x=1')
  expect(session).toMatchObject({ orderId: login.orderId, address: wallet.address })
  const current = await rest(sessionUrl, '/session', undefined, { authorization: `Bearer ${token}` })
  expect(current.json.session).toMatchObject({ orderId: login.orderId, publicKeyHex: wallet.publicKeyHex })
  expect(await events).toEqual(lifetime)
  // A retry by the same desktop, as after a lost response.
  expect((await desktop.finalize(login)).token).toBe(token)
  // Whoever comes back with the last sequence hears nothing twice.
  expect(await collect(desktop.watch(login, 3))).toEqual(lifetime.slice(3))
  expect(await collect(desktop.watch(login, 5))).toEqual([])

  const sign = await desktop.start('sign', { displaySummary: '3 tulips', payloadHash: 'c2hhMjU2' })
  await approve(phone, sign.claimUrl, wallet)
  const { proofArtifact, token: none } = await desktop.finalize(sign)
  expect(none).toBeUndefined()
  expect(proofArtifact).toMatchObject({ address: wallet.address, payloadHash: 'c2hhMjU2', adapterId: 'nimiq' })
  expectOfflineProof(proofArtifact)
}

/** Checks an artifact from its own fields alone, with Nimiq's library and with node:crypto. */
function expectOfflineProof(artifact: {
  publicKeyHex: string
  signatureHex: string
  message: string
  address: string
}): void {
  const body = Buffer.from(artifact.message)
  const digest = createHash('sha256').update(`\x16Nimiq Signed Message:\n${body.length}`).update(body).digest()
  const publicKey = PublicKey.fromHex(artifact.publicKeyHex)
  expect(publicKey.verify(Signature.fromHex(artifact.signatureHex), digest)).toBe(true)
  expect(publicKey.toAddress().toUserFriendlyAddress()).toBe(artifact.address)
  const x = Buffer.from(artifact.publicKeyHex, 'hex').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  expect(verify(null, digest, key, Buffer.from(artifact.signatureHex, 'hex'))).toBe(true)
}

test.each(Object.entries(orderClients))('login and sign orders over %s', async (_name, makeClient) => {
  const { url } = await startService()
  await bothFlows(makeClient(url), makeClient(url), url)
})

test('a desktop token in an address is not taken', async () => {
  const { url } = await startService()
  const { orderId, desktopToken } = await orderClients.REST!(url).start('login')
  const { status, json } = await rest(url, `/cross-device/events?orderId=${orderId}&desktopToken=${desktopToken}`)
  expect([status, json.code]).toEqual([401, 'ORDER_TOKEN_INVALID'])
})

test('a backend that knows the service by another name goes on with its order', async () => {
  const { url } = await startService({ trustedOrigins: ['https://app.example'] })
  const { json } = await rest(url, '/cross-device/start', { kind: 'login' }, { origin: 'https://app.example' })
  const holder = { orderId: json.orderId, desktopToken: json.desktopToken }
  const elsewhere = { origin: 'https://evil.example' }
  expect((await rest(url, '/cross-device/cancel', holder, elsewhere)).json.code).toBe('ORIGIN_MISMATCH')
  const inside = url.replace('localhost', '127.0.0.1')
  expect((await rest(inside, '/cross-device/cancel', holder)).json).toMatchObject({ ok: true, status: 'cancelled' })
})

test('an EventSource that comes back after the end is told to stop', async () => {
  const { url } = await startService()
  const desktop = orderClients.REST!(url)
  const order = await desktop.start('login')
  await rest(url, '/cross-device/cancel', { orderId: order.orderId, desktopToken: order.desktopToken })
  const headers = { authorization: `Bearer ${order.desktopToken}`, 'last-event-id': '2' }
  const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${order.orderId}`, { headers })
  expect(response.status).toBe(204)
})

test('opening the claim URL changes nothing', async () => {
  const { url } = await startService()
  const desktop = orderClients.REST!(url)
  const order = await desktop.start('login')
  for (let i = 0; i < 10; i++) await (await fetch(order.claimUrl)).arrayBuffer()
  await fetch(order.claimUrl, { method: 'HEAD' })
  const { challengeToken } = await desktop.claim(order)
  expect(challengeToken).toMatch(/^csp_/)
})
