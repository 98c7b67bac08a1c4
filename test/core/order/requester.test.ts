import { describe, expect, test } from 'vitest'
import type { RequestContext } from '../../../src/base/request.ts'
import { storedOrders } from '../../../src/core/order/records.ts'
import type { StartOrderOptions } from '../../../src/shared/orders.ts'
import { openStore } from '../../../src/store/open.ts'
import { rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { stores } from '../../support/stores.ts'
import { makeWallet } from '../../support/wallet.ts'
import {
  appOrigin,
  desktop,
  from,
  type Instance,
  issuedBy,
  makeInstance,
  outcomeOf,
  ownOrigin,
  phone,
  reasonOf,
  Signer,
  suiteStore,
  untilWaiting,
} from './support.ts'

const startKey = 'a-start-key-for-tests-and-nothing-else'
const otherKey = 'another-start-key-for-tests-of-orders'

/** What the application's backend sends, from whatever host. */
function backend(authorization?: string, details: Partial<RequestContext> = {}): RequestContext {
  const headers = new Headers(authorization === undefined ? {} : { authorization })
  return from('http://countersign.internal:8080', { originSource: 'Host header', headers, ...details })
}

const withKey = backend(`Bearer ${startKey}`)
const requester = { origin: appOrigin, ip: '203.0.113.7', userAgent: 'Desktop/1.0' }

describe.each(stores)('who starts orders on $name', async ({ open }) => {
  const store = await suiteStore(open)

  const settings = { orderStartKeys: [startKey, otherKey] } as const

  describe('with start keys', () => {
    test('is who has one of them', async () => {
      const { orders } = makeInstance(store, { settings })
      for (const request of [withKey, backend(`Bearer ${otherKey}`), backend(`bearer  ${startKey}`)]) {
        expect(await reasonOf(orders.start({ kind: 'login', requester }, request))).toBeUndefined()
      }
      const wrong = [
        backend(),
        backend('Bearer x'),
        backend('Bearer '),
        backend(`Basic ${startKey}`),
        backend(`Bearer ${startKey.slice(0, -1)}`),
        backend(`Bearer ${startKey}x`),
        backend(`Bearer ${startKey},${otherKey}`),
        from(appOrigin),
        from(ownOrigin),
        from(ownOrigin, { headers: new Headers({ authorization: `Bearer ${startKey}x` }) }),
      ]
      for (const request of wrong) {
        for (const input of [{ kind: 'login' }, { kind: 'login', requester }] as const) {
          expect(await reasonOf(orders.start(input, request))).toBe('START_KEY_REQUIRED')
        }
      }
    })

    test('and the service’s own page, for a sign-in without words and for any adapter', async () => {
      const { orders } = makeInstance(store, { settings: { ...settings, ownPagesStart: true } })
      const started = await orders.start({ kind: 'login', returnTo: '/welcome' }, from(ownOrigin))
      const preview = await orders.preview(started, phone)
      expect(preview).toMatchObject({ origin: ownOrigin, startedWithKey: false })
      for (const more of [
        { displayTitle: 'Claim your prize' },
        { displaySummary: 'Two clicks' },
        { displayTitle: '' },
        { adapterId: 'ed25519' },
        { requester },
        { kind: 'sign' },
        { kind: 'sign', payload: '{}' },
        { inboxUserId: 'user' },
      ] as const) {
        const call = orders.start({ kind: 'login', ...more } as StartOrderOptions, from(ownOrigin))
        expect({ more, reason: await reasonOf(call) }).toEqual({
          more,
          reason: expect.stringMatching(/^(START_KEY_REQUIRED|NOT_ENABLED)$/),
        })
      }
      for (const request of [
        from(appOrigin),
        from('https://evil.example'),
        backend(),
        from(`${ownOrigin}.evil.example`),
      ]) {
        expect(await reasonOf(orders.start({ kind: 'login' }, request))).toBe('START_KEY_REQUIRED')
      }
      // With a right key, it is a backend's call.
      const keyed = from(ownOrigin, { headers: new Headers({ authorization: `Bearer ${startKey}` }) })
      expect(await reasonOf(orders.start({ kind: 'login' }, keyed))).toBe('INVALID_REQUEST')
    })

    test('says for whom', async () => {
      const { orders } = makeInstance(store, { settings })
      expect(await outcomeOf(orders.start({ kind: 'login' }, withKey))).toEqual({
        reason: 'INVALID_REQUEST',
        message: expect.stringContaining('requester'),
      })
    })

    test('names a trusted origin, which is the order’s', async () => {
      const { orders } = makeInstance(store, { settings })
      for (const origin of ['https://evil.example', '', 'app.example', `${appOrigin}/path`, 'null']) {
        const call = orders.start({ kind: 'login', requester: { ...requester, origin } }, withKey)
        const { reason, message } = await outcomeOf(call)
        expect({ origin, reason }).toEqual({ origin, reason: 'ORIGIN_NOT_TRUSTED' })
        expect(message).toContain('requester.origin')
        expect(message).not.toContain('PROXY')
      }
    })

    test('is told to the phone, with what it says of the desktop in place of its own', async () => {
      const instance = makeInstance(store, { settings })
      const started = await instance.orders.start({ kind: 'login', requester }, withKey)
      const { challengeToken } = await instance.orders.claim(started, phone)
      const challenge = await instance.orders.readChallenge({ ...started, challengeToken }, phone)
      expect(challenge.origin).toBe(appOrigin)
      expect(challenge.message).toContain(`Origin: ${appOrigin}`)
      expect(challenge.requester).toEqual({ ...requester, sameNetwork: false, startedWithKey: true })
      const plain = await untilWaiting(makeInstance(store))
      expect((await instance.orders.readChallenge(plain, phone)).requester.startedWithKey).toBe(false)
    })

    test('may leave address and user agent open, which are then unknown', async () => {
      const instance = makeInstance(store, { settings })
      const started = await instance.orders.start({ kind: 'login', requester: { origin: appOrigin } }, withKey)
      const { challengeToken } = await instance.orders.claim(started, phone)
      const challenge = await instance.orders.readChallenge({ ...started, challengeToken }, phone)
      expect(challenge.requester).toEqual({ origin: appOrigin, ip: '', userAgent: '', startedWithKey: true })
    })

    test.each([
      [
        'a user agent that forges nothing by control characters, and is cut',
        { userAgent: `a\u0007\u202eb\n${'x'.repeat(300)}` },
        { userAgent: `ab${'x'.repeat(254)}` },
      ],
      [
        'a user agent that JSON can carry, although the cut falls into a character',
        { userAgent: `${'x'.repeat(255)}😀` },
        { userAgent: `${'x'.repeat(255)}\ufffd` },
      ],
      ['the plain form of an address of an IPv6 socket', { ip: '::ffff:203.0.113.7' }, { ip: '203.0.113.7' }],
    ])('is shown with %s', async (_, said, shown) => {
      const { orders } = makeInstance(store, { settings })
      const { orderId } = await orders.start({ kind: 'login', requester: { ...requester, ...said } }, withKey)
      expect((await storedOrders(store).load(orderId))?.order.requester).toMatchObject(shown)
    })

    test('needs the desktop’s address if networks must be the same', async () => {
      const { orders } = makeInstance(store, { settings: { ...settings, proximity: 'enforce' } })
      const { ip: _, ...unknown } = requester
      for (const described of [unknown, { ...requester, ip: '' }]) {
        expect(await outcomeOf(orders.start({ kind: 'login', requester: described }, withKey))).toEqual({
          reason: 'INVALID_REQUEST',
          message: expect.stringContaining('requester.ip'),
        })
      }
      expect(await reasonOf(orders.start({ kind: 'login', requester }, withKey))).toBeUndefined()
    })

    test('leaves all else to the desktop, from the origin that was named', async () => {
      const instance = makeInstance(store, { settings })
      const { orders } = instance
      const started = await orders.start({ kind: 'login', requester }, withKey)
      const events = orders.watch(started, desktop, new AbortController().signal)
      expect((await events.next()).value).toMatchObject({ status: 'created' })
      const elsewhere = from('https://evil.example')
      expect(await reasonOf(orders.watch(started, elsewhere, new AbortController().signal).next())).toBe(
        'ORIGIN_MISMATCH',
      )
      const { challengeToken } = await orders.claim(started, phone)
      const { message } = await orders.readChallenge({ ...started, challengeToken }, phone)
      await orders.approve({ ...started, challengeToken, proof: new Signer().prove(message) }, phone)
      expect(await reasonOf(orders.finalize(started, elsewhere))).toBe('ORIGIN_MISMATCH')
      const { session } = issuedBy(await orders.finalize(started, desktop))
      expect(session.orderId).toBe(started.orderId)
    })
  })

  test('without start keys no caller describes another requester', async () => {
    const { orders } = makeInstance(store)
    for (const request of [desktop, withKey, from(ownOrigin)]) {
      expect(await outcomeOf(orders.start({ kind: 'login', requester }, request))).toEqual({
        reason: 'INVALID_REQUEST',
        message: expect.stringContaining('requester'),
      })
    }
  })
})

describe.each(stores)('networks of desktop and phone on $name', async ({ open }) => {
  const store = await suiteStore(open)

  const near = from(ownOrigin, { ip: '192.0.2.200' })
  const far = from(ownOrigin, { ip: '198.51.100.1' })
  /** Phones whose network cannot be told, or not be compared with the desktop's. */
  const unknown = {
    'of the other family': from(ownOrigin, { ip: '2001:db8::1' }),
    'without an address': from(ownOrigin, { ip: undefined }),
    'with a private address': from(ownOrigin, { ip: '192.168.0.7' }),
    'behind a proxy that is not trusted': from(ownOrigin, { ip: '192.0.2.200', behindUnknownProxy: true }),
  }

  const make = (proximity: 'show' | 'off' | 'enforce') => makeInstance(store, { settings: { proximity } })

  /** What the phone is told of the network, if the desktop's request was this. */
  async function told(instance: Instance, request: RequestContext, desktopRequest = desktop) {
    const started = await instance.orders.start({ kind: 'login' }, desktopRequest)
    const { challengeToken } = await instance.orders.claim(started, phone)
    return (await instance.orders.readChallenge({ ...started, challengeToken }, request)).requester
  }

  test('are compared for the phone that asks', async () => {
    expect(await told(make('show'), near)).toMatchObject({ sameNetwork: true })
    expect(await told(make('show'), far)).toMatchObject({ sameNetwork: false })
    for (const request of Object.values(unknown)) {
      expect(await told(make('show'), request)).not.toHaveProperty('sameNetwork')
    }
    for (const details of [{ ip: undefined }, { ip: '10.0.0.1' }, { behindUnknownProxy: true }]) {
      expect(await told(make('show'), near, from(appOrigin, details))).not.toHaveProperty('sameNetwork')
    }
  })

  test('are not told if that is off', async () => {
    for (const request of [near, far]) expect(await told(make('off'), request)).not.toHaveProperty('sameNetwork')
  })

  test('that differ stop nothing unless they must be the same', async () => {
    for (const proximity of ['show', 'off'] as const) {
      const { orders } = make(proximity)
      const started = await orders.start({ kind: 'login' }, desktop)
      const { challengeToken } = await orders.claim(started, far)
      const order = { ...started, challengeToken }
      const { message } = await orders.readChallenge(order, far)
      const { ticket } = await orders.handOver(order, far)
      const redeemed = { ...order, ...(await orders.redeem({ ticket }, far)) }
      const approval = { ...redeemed, proof: new Signer().prove(message) }
      expect((await orders.approve(approval, far)).status).toBe('approved')
    }
  })

  describe('if they must be the same', () => {
    const strangers = { 'on another network': far, ...unknown }

    test.each(Object.entries(strangers))('a phone %s neither claims nor redeems nor approves', async (_, request) => {
      const { orders } = make('enforce')
      const started = await orders.start({ kind: 'login' }, desktop)
      expect(await reasonOf(orders.claim(started, request))).toBe('NETWORK_MISMATCH')
      const { challengeToken } = await orders.claim(started, near)
      const order = { ...started, challengeToken }
      const { message } = await orders.readChallenge(order, near)
      const { ticket } = await orders.handOver(order, near)
      expect(await reasonOf(orders.redeem({ ticket }, request))).toBe('NETWORK_MISMATCH')
      const redeemed = { ...order, challengeToken: (await orders.redeem({ ticket }, near)).challengeToken }
      const approval = { ...redeemed, proof: new Signer().prove(message) }
      expect(await reasonOf(orders.approve(approval, request))).toBe('NETWORK_MISMATCH')
      expect((await orders.approve(approval, near)).status).toBe('approved')
      // Whoever left the network since can still say no.
      expect((await orders.reject(approval, request)).status).toBe('rejected')
    })

    test('a desktop whose network is not known has no phone', async () => {
      const { orders } = make('enforce')
      const started = await orders.start({ kind: 'login' }, from(appOrigin, { ip: undefined }))
      expect(await reasonOf(orders.claim(started, near))).toBe('NETWORK_MISMATCH')
    })

    test('who has no token does not learn it', async () => {
      const { orders } = make('enforce')
      const started = await orders.start({ kind: 'login' }, desktop)
      expect(await reasonOf(orders.claim({ ...started, claimToken: 'wrong' }, far))).toBe('ORDER_TOKEN_INVALID')
      expect(await reasonOf(orders.claim(started, from('https://evil.example', { ip: far.ip })))).toBe(
        'ORIGIN_MISMATCH',
      )
    })

    test('the desktop that a backend described counts, and not the backend', async () => {
      const settings = { proximity: 'enforce', orderStartKeys: [startKey] } as const
      const { orders } = makeInstance(store, { settings })
      const started = await orders.start({ kind: 'login', requester }, withKey)
      expect(await reasonOf(orders.claim(started, near))).toBe('NETWORK_MISMATCH')
      const beside = from(ownOrigin, { ip: '203.0.113.8' })
      expect(await reasonOf(orders.claim(started, beside))).toBeUndefined()
    })
  })
})

test('over HTTP, a backend starts the orders of all its users from one address, and their browsers go on', async () => {
  const trustedOrigins = [appOrigin]
  const { url } = await startService({ orderStartKeys: [startKey], trustedOrigins, rateLimit: true })
  const authorization = `Bearer ${startKey}`
  const start = (body: object, headers: Record<string, string>) => rest(url, '/cross-device/start', body, headers)
  const orders = []
  // More than an address may start in a minute without a key.
  for (let n = 0; n < 150; n++) {
    const { status, json } = await start({ kind: 'login', requester }, { authorization })
    expect(status).toBe(200)
    orders.push(json)
  }
  expect((await start({ kind: 'login' }, { origin: appOrigin })).json.code).toBe('START_KEY_REQUIRED')
  // A zone can hold any text, and as much of it as fits.
  for (const ip of ['fe80::1%eth0', `fe80::1%${'x'.repeat(9000)}`, 'localhost', '203.0.113.7, 10.0.0.1']) {
    const refused = await start({ kind: 'login', requester: { ...requester, ip } }, { authorization })
    expect(refused.json.code).toBe('INVALID_REQUEST')
  }
  const [{ orderId, claimToken, desktopToken }] = orders
  const { challengeToken } = (await rest(url, '/cross-device/claim', { orderId, claimToken })).json
  const bearer = { authorization: `Bearer ${challengeToken}` }
  const challenge = (await rest(url, `/cross-device/challenge?orderId=${orderId}`, undefined, bearer)).json
  expect(challenge.requester).toMatchObject({ ...requester, startedWithKey: true })
  const wallet = makeWallet()
  const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(challenge.message) }
  await rest(url, '/cross-device/approve', { orderId, challengeToken, proof })
  const fromPage = { origin: appOrigin }
  const events = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, {
    headers: { ...fromPage, authorization: `Bearer ${desktopToken}` },
  })
  const elsewhere = { origin: 'https://evil.example' }
  const finalization = { orderId, desktopToken }
  expect((await rest(url, '/cross-device/finalize', finalization, elsewhere)).json.code).toBe('ORIGIN_MISMATCH')
  expect((await rest(url, '/cross-device/finalize', finalization, fromPage)).json).toMatchObject({
    status: 'finalized',
    token: expect.stringMatching(/^css_/),
  })
  expect(await events.text()).toContain('"status":"finalized"')
})

test('over HTTP, the service’s own page starts plain sign-ins, which count as those of any page', async () => {
  const rates = { 'start-order': 3 }
  const { url } = await startService({ orderStartKeys: [startKey], rateLimit: true, limits: { rates } })
  const start = (body: object, headers: Record<string, string> = {}) =>
    rest(url, '/cross-device/start', body, { origin: url, ...headers })
  for (let n = 0; n < 3; n++) expect((await start({ kind: 'login' })).status).toBe(200)
  expect((await start({ kind: 'login' })).json).toMatchObject({
    code: 'RATE_LIMITED',
    metadata: { limit: 'start-order' },
  })
  // What is refused is refused for its own reason, and a backend goes on.
  expect((await start({ kind: 'sign' })).json.code).toBe('START_KEY_REQUIRED')
  const backends = await start({ kind: 'login', requester: { origin: url } }, { authorization: `Bearer ${startKey}` })
  expect(backends.status).toBe(200)
})

test('what a start asks for is checked in full although the caller has a start key', async () => {
  const store = await openStore('sqlite::memory:')
  const { orders } = makeInstance(store, { settings: { orderStartKeys: [startKey] } })
  const inputs: StartOrderOptions[] = [
    { kind: 'login', returnTo: '//evil.example' },
    { kind: 'login', displayTitle: 'a\nCode: 11' },
    { kind: 'login', computerKey: 'x' },
  ]
  for (const input of inputs) {
    expect(await reasonOf(orders.start({ ...input, requester }, withKey))).toBe('INVALID_REQUEST')
  }
  await store.close()
})
