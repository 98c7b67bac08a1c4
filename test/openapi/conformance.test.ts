import { describe, expect, test } from 'vitest'
import { readEventStream } from '../../src/browser/client/event-stream.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { type ErrorReason, reasons } from '../../src/shared/errors.ts'
import { OpenApiContract, packagedDocument } from '../support/openapi.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'
import {
  approved,
  type Call,
  checkedCalls,
  claimed,
  goodRequests,
  type Sending,
  settings,
  settingsOf,
  signed,
  signedIn,
  signOrder,
  started,
} from './requests.ts'

const contract = new OpenApiContract(packagedDocument())
const names = contract.operations.map(({ operationId }) => operationId)

async function startChecked(options: CountersignOptions = {}) {
  const { url, service } = await startService({ ...settings, ...options })
  return { call: checkedCalls(contract, url), url, service }
}

test('there is a request for every operation', () =>
  expect(Object.keys(goodRequests).sort()).toEqual([...names].sort()))

test.each(names)('%s takes what the document says, and answers so', async (operationId) => {
  const { call } = await startChecked(settingsOf(operationId))
  const { status } = await call(operationId, await goodRequests[operationId]!(call))
  expect(status).toBe(200)
})

/** The operations with a body. */
const withBody = contract.operations.filter(({ requestBody }) => requestBody !== undefined)

/** A field in a body, or in an object of it. */
interface Place {
  readonly name: string
  readonly schema: {
    readonly type?: string
    readonly minLength?: number
    readonly maxLength?: number
    readonly pattern?: string
  }
  readonly required: boolean
  /** The body with another value there; without the field, if that is `undefined`. */
  with(body: object, value: unknown): Sending['body']
}

function placesOf(operation: (typeof withBody)[number]): Place[] {
  const top = contract.resolve(operation.requestBody!.content['application/json']!.schema)
  return Object.entries(top.properties ?? {}).flatMap(([name, schema]): Place[] => {
    const required = top.required?.includes(name) === true
    const inner = contract.resolve(schema)
    const place: Place = { name, schema: inner, required, with: (body, value) => ({ ...body, [name]: value }) }
    const within = Object.entries(inner.properties ?? {}).map(
      ([part, partSchema]): Place => ({
        name: `${name}.${part}`,
        schema: partSchema,
        required: required && inner.required?.includes(part) === true,
        with: (body, value) => ({ ...body, [name]: { ...(body as Record<string, object>)[name], [part]: value } }),
      }),
    )
    return [place, ...within]
  })
}

describe('what the document requires and bounds, the service does too', () => {
  test.each(withBody)('$operationId', async (operation) => {
    const { operationId } = operation
    const { call } = await startChecked(settingsOf(operationId))
    const isRefused = async (place: Place, value: unknown, reasons: RegExp): Promise<void> => {
      const good = await goodRequests[operationId]!(call)
      const body = place.with(good.body!, value)
      const shown = `${place.name}: ${JSON.stringify(value)?.slice(0, 40)}`
      const sent = { query: '', headers: new Headers(good.headers), body: JSON.parse(JSON.stringify(body)) }
      expect(contract.problemsOfRequest(operation, sent), shown).not.toEqual([])
      const { status, body: answer } = await call(operationId, { ...good, body: sent.body })
      expect(status, shown).toBeGreaterThanOrEqual(400)
      expect((answer as { code: string }).code, shown).toMatch(reasons)
    }
    for (const place of placesOf(operation)) {
      const { schema } = place
      if (place.required) await isRefused(place, undefined, /^(INVALID_REQUEST|(ORDER_TOKEN|HANDOVER)_INVALID)$/)
      await isRefused(place, 7, /^INVALID_REQUEST$/)
      if (schema.minLength !== undefined) await isRefused(place, '', /^INVALID_REQUEST$/)
      if (schema.maxLength !== undefined) {
        await isRefused(place, 'ab'.repeat(schema.maxLength / 2 + 1), /^INVALID_REQUEST$/)
      }
      if (schema.pattern !== undefined) await isRefused(place, 'ä b', /^INVALID_REQUEST$/)
    }
  })

  test('a text of the longest length is taken', async () => {
    const { call } = await startChecked()
    const displayTitle = '😀'.repeat(120)
    expect((await call('startOrder', { body: { ...signOrder, displayTitle } })).status).toBe(200)
    expect((await call('startOrder', { body: { ...signOrder, displayTitle: `${displayTitle}x` } })).status).toBe(400)
  })
})

describe('orders, to their end', () => {
  test('a sign order yields its proof, and a login order is taken back', async () => {
    const { call } = await startChecked()
    const toSign = await approved(call, signOrder)
    const { challengeToken: _, ...finalizing } = toSign
    const sign = await call('finalizeOrder', { body: finalizing })
    expect(sign.body).toMatchObject({
      kind: 'sign',
      redirectTo: '/orders/7?paid=no',
      proofArtifact: { adapterId: 'nimiq' },
    })
    const { challengeToken, ...login } = await approved(call)
    expect((await call('finalizeOrder', { body: login })).headers.get('set-auth-token')).toMatch(/^css_/)
    const takenBack = await call('rejectOrder', { body: { orderId: login.orderId, challengeToken } })
    expect(takenBack.body).toMatchObject({ status: 'finalized', sessionEnded: true })
  })

  test('with codes to compare, and a start key', async () => {
    const key = 'a-start-key-for-tests-and-for-nothing-else'
    const requester = { origin: 'https://app.example', ip: '2001:db8::1', userAgent: 'Test/1.0' }
    const { call, url } = await startChecked({
      confirmationCode: 'compare',
      orderStartKeys: [key],
      trustedOrigins: ['https://app.example'],
      publicUrl: 'https://sign.example',
    })
    const origin = 'https://app.example'
    const headers = { authorization: `Bearer ${key}` }
    const body = { kind: 'login', requester }
    expect((await call('startOrder', { body, headers })).body.confirmationCode).toMatch(/^\d{2}$/)
    expect(await call('startOrder', { body })).toMatchObject({ status: 401, body: { code: 'START_KEY_REQUIRED' } })
    for (const [ip, status] of [
      ['192.0.2.7', 200],
      ['fe80::1%eth0', 400],
      ['somewhere', 400],
    ] as const) {
      expect((await call('startOrder', { body: { ...body, requester: { ...requester, ip } }, headers })).status).toBe(
        status,
      )
    }
    const asApp: Call = (name, sending = {}) =>
      call(name, { ...sending, headers: { origin, ...headers, ...sending.headers } })
    const { approval } = await signed((name, sending = {}) =>
      asApp(name, name === 'startOrder' ? { ...sending, body: { ...sending.body, requester } } : sending),
    )
    expect((await asApp('approveOrder', { body: approval })).status).toBe(200)
    expect(url).not.toBe(origin)
  })

  test('the data of every server-sent event is an event, and the end is 204', async () => {
    const { call, url } = await startChecked()
    const { orderId, desktopToken } = await started(call)
    const operation = contract.operations.find(({ operationId }) => operationId === 'watchOrder')!
    const headers = { authorization: `Bearer ${desktopToken}` }
    const response = await fetch(`${url}${operation.path}?orderId=${orderId}`, { headers })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    await call('cancelOrder', { body: { orderId, desktopToken } })
    const events: unknown[] = []
    for await (const { data } of readEventStream(response.body!)) events.push(JSON.parse(data))
    const poll = { status: 200, headers: new Headers({ 'content-type': 'application/json' }), body: { events } }
    expect(contract.problemsOfAnswer(operation, poll)).toEqual([])
    expect(events.at(-1)).toMatchObject({ status: 'cancelled' })
    const again = await call('watchOrder', { query: { orderId }, headers: { ...headers, 'last-event-id': '2' } })
    expect(again).toMatchObject({ status: 204, body: undefined })
  })
})

/** A call that is refused. */
interface Refusal {
  readonly code: ErrorReason
  readonly options?: CountersignOptions
  act(call: Call): ReturnType<Call>
}

const unknownOrder = { orderId: 'x'.repeat(22), desktopToken: 'x' }

const refusals: readonly Refusal[] = [
  {
    code: 'ADAPTER_UNKNOWN',
    act: (call) => call('issueNonce', { body: { adapterId: 'ethereum', address: 'x', chainId: '1' } }),
  },
  {
    code: 'APP_NAME_MISMATCH',
    act: (call) => call('issueNonce', { body: { appName: 'Another' } }),
  },
  {
    code: 'NONCE_NOT_FOUND',
    async act(call) {
      const body = proofOf(makeWallet(), (await call('issueNonce', { body: {} })).body)
      await call('verifySignIn', { body })
      return await call('verifySignIn', { body })
    },
  },
  {
    code: 'SIGNATURE_INVALID',
    async act(call) {
      const { nonceId } = (await call('issueNonce', { body: {} })).body
      return await call('verifySignIn', { body: proofOf(makeWallet(), { nonceId, message: 'another text' }) })
    },
  },
  { code: 'SESSION_REQUIRED', act: (call) => call('getCurrentSession') },
  {
    code: 'SESSION_INVALID',
    act: (call) => call('listSessions', { headers: { authorization: 'Bearer x' } }),
  },
  {
    code: 'ORIGIN_NOT_TRUSTED',
    act: (call) => call('startOrder', { body: signOrder, headers: { origin: 'https://evil.example' } }),
  },
  {
    code: 'SESSION_NOT_FRESH',
    async act(call) {
      const { orderId, desktopToken, returnCode } = await approved(call)
      const { token } = (await call('finalizeOrder', { body: { orderId, desktopToken, returnCode } })).body
      return await call('issueNonce', { body: { purpose: 'link' }, headers: { authorization: `Bearer ${token}` } })
    },
  },
  { code: 'LOGIN_REFUSED', options: { resolveLogin: () => null }, act: verifyNew },
  { code: 'ORDER_NOT_FOUND', act: (call) => call('cancelOrder', { body: unknownOrder }) },
  {
    code: 'NOT_ENABLED',
    options: { resolveLogin: ({ address }) => ({ id: address }) },
    act: async (call) => call('listWallets', { headers: await signedIn(call) }),
  },
  {
    code: 'WALLET_NOT_FOUND',
    act: async (call) =>
      call('unlinkWallet', {
        headers: await signedIn(call),
        body: { adapterId: 'nimiq', address: makeWallet().address },
      }),
  },
  {
    code: 'ORDER_ALREADY_CLAIMED',
    async act(call) {
      const { orderId, claimToken } = await claimed(call)
      return await call('claimOrder', { body: { orderId, claimToken } })
    },
  },
  {
    code: 'ORDER_CANCELLED',
    async act(call) {
      const { orderId, desktopToken, challengeToken } = await claimed(call)
      await call('cancelOrder', { body: { orderId, desktopToken } })
      return await call('getOrderChallenge', { query: { orderId, challengeToken } })
    },
  },
  {
    code: 'RETURN_CODE_WRONG',
    async act(call) {
      const { orderId, desktopToken, returnCode } = await approved(call)
      const wrong = returnCode === '000000' ? '000001' : '000000'
      return await call('finalizeOrder', { body: { orderId, desktopToken, returnCode: wrong } })
    },
  },
  {
    code: 'REQUEST_TOO_LARGE',
    act: (call) => call('issueNonce', { body: { appName: 'x'.repeat(70_000) } }),
  },
  {
    code: 'RATE_LIMITED',
    options: { rateLimit: true },
    async act(call) {
      for (;;) {
        const answer = await call('issueNonce', { body: {} })
        if (answer.status !== 200) return answer
      }
    },
  },
  {
    code: 'HOST_UNAVAILABLE',
    options: {
      resolveLogin: () => {
        throw new Error('a fault of the application')
      },
    },
    act: verifyNew,
  },
]

async function verifyNew(call: Call): ReturnType<Call> {
  return await call('verifySignIn', { body: proofOf(makeWallet(), (await call('issueNonce', { body: {} })).body) })
}

test.each(refusals)('$code is answered as the document says', async ({ code, options, act }) => {
  const { call } = await startChecked(options)
  const answer = await act(call)
  const status = reasons[code].http
  expect(answer).toMatchObject({ status, body: { code } })
  if (status === 429) expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
})

test('a service that issues no access tokens has no key set', async () => {
  const { url } = await startService()
  const call = checkedCalls(contract, url)
  expect(await call('getKeySet')).toMatchObject({ status: 404, body: { code: 'ROUTE_NOT_FOUND' } })
  const sending = { headers: await signedIn(call), body: { audience: 'api' } }
  expect(await call('issueAccessToken', sending)).toMatchObject({ status: 404, body: { code: 'NOT_ENABLED' } })
})

test('a service that stops says so', async () => {
  const { call, service } = await startChecked({ drainSeconds: 30 })
  const drained = service.drain()
  expect(await call('getReadiness')).toMatchObject({ status: 503, body: { status: 'stopping' } })
  await service.close(0)
  await drained
})
