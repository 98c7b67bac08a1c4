import { readdir } from 'node:fs/promises'
import {
  create,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  type DescService,
} from '@bufbuild/protobuf'
import { ConnectError, type Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import { newToken } from '../../src/base/token.ts'
import { restEndpoints } from '../../src/http/rest/endpoints.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'

/** Which calls count on the same allowance. A new RPC needs a row here; without one it fails these tests. */
const groups: Readonly<Record<string, { readonly perMinute: number; readonly rpcs: readonly string[] }>> = {
  'sign-in': {
    perMinute: 240,
    rpcs: [
      'SignInService/IssueNonce',
      'SignInService/VerifySignIn',
      'WalletService/LinkWallet',
      'WalletService/UnlinkWallet',
    ],
  },
  'start-order': { perMinute: 120, rpcs: ['OrderService/StartOrder'] },
  order: {
    perMinute: 1200,
    rpcs: [
      'OrderService/PreviewOrder',
      'OrderService/ClaimOrder',
      'OrderService/GetOrderChallenge',
      'OrderService/ApproveOrder',
      'OrderService/RejectOrder',
      'OrderService/CancelOrder',
      'OrderService/FinalizeOrder',
      'OrderService/WatchOrder',
      'OrderService/HandOverOrder',
      'OrderService/RedeemHandOver',
      'InboxService/ClaimFromInbox',
    ],
  },
  session: {
    perMinute: 2400,
    rpcs: [
      'SessionService/GetCurrentSession',
      'SessionService/SignOut',
      'SessionService/ListSessions',
      'SessionService/RevokeSession',
      'SessionService/RevokeOtherSessions',
      'SessionService/ListKnownComputers',
      'SessionService/ForgetKnownComputer',
      'SessionService/ListConnectedApps',
      'SessionService/DisconnectApp',
      'SessionService/IssueAccessToken',
      'WalletService/ListWallets',
      // Without a live session only: test/e2e/inbox.test.ts.
      'InboxService/ListInbox',
    ],
  },
}

/** RPCs without a limit: backends ask for all their users from one address. */
const unlimited: readonly string[] = ['SessionService/IntrospectSession']

const folder = new URL('../../gen/server/countersign/v1/', import.meta.url)

/** Every RPC of package countersign.v1, by its name in the tables above. */
async function rpcsByName(): Promise<ReadonlyMap<string, DescMethod>> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('_pb.ts'))
  const modules: object[] = await Promise.all(files.map((name) => import(new URL(name, folder).href)))
  const services = modules
    .flatMap((each): DescService[] => Object.values(each))
    .filter(({ kind }) => kind === 'service')
  return new Map(services.flatMap(({ name, methods }) => methods.map((method) => [`${name}/${method.name}`, method])))
}

const rpcs = await rpcsByName()

// The clock stands still, so that no allowance comes back while it is used up.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

async function start(): Promise<{ url: string; transport: Transport }> {
  const { url } = await startService({ rateLimit: true, trustProxy: 1 })
  return { url, transport: createConnectTransport({ baseUrl: url, httpVersion: '2' }) }
}

const from = (address: string) => ({ 'x-forwarded-for': address, 'x-forwarded-host': 'localhost' })

/**
 * Calls an RPC with an empty message, and resolves with its failure. A message that breaks the rules is counted too.
 */
async function failureOf(transport: Transport, rpc: string, address: string): Promise<ConnectError | undefined> {
  const method = rpcs.get(rpc) as DescMethod
  const signal = AbortSignal.timeout(20_000)
  try {
    if (method.methodKind === 'unary') {
      await transport.unary(method as DescMethodUnary, signal, undefined, from(address), create(method.input))
    } else {
      const messages = (async function* () {
        yield create(method.input)
      })()
      const { message } = await transport.stream(
        method as DescMethodStreaming,
        signal,
        undefined,
        from(address),
        messages,
      )
      for await (const _ of message) break
    }
    return undefined
  } catch (error) {
    return ConnectError.from(error)
  }
}

const reasonOf = (error: ConnectError | undefined): string | undefined => error?.findDetails(ErrorInfoSchema)[0]?.reason

/** Makes calls, several at once, and resolves with how many were refused because of the limit. */
async function refusedOf(calls: number, call: () => Promise<string | undefined>): Promise<number> {
  let left = calls
  let refused = 0
  const worker = async (): Promise<void> => {
    while (left-- > 0) if ((await call()) === 'RATE_LIMITED') refused++
  }
  await Promise.all(Array.from({ length: 20 }, worker))
  return refused
}

test('every RPC has its row in these tables, and only those', () => {
  const rows = [...Object.values(groups).flatMap((group) => group.rpcs), ...unlimited]
  expect(rows.toSorted()).toEqual([...rpcs.keys()].toSorted())
})

test.each(Object.entries(groups))(
  'the RPCs of the group %s and their REST endpoints share an allowance, beyond which each says how long to wait',
  async (_name, { perMinute, rpcs: ofGroup }) => {
    const { url, transport } = await start()
    const [address, neighbour] = ['192.0.2.1', '192.0.2.2']
    const [first] = ofGroup as [string]
    const spend = async () => reasonOf(await failureOf(transport, first, address))
    expect(await refusedOf(perMinute, spend)).toBe(0)
    for (const rpc of ofGroup) {
      const error = await failureOf(transport, rpc, address)
      expect(reasonOf(error), rpc).toBe('RATE_LIMITED')
      const delay = error?.findDetails(RetryInfoSchema)[0]?.retryDelay
      expect(Number(delay?.seconds) + Number(delay?.nanos) / 1e9, rpc).toBeCloseTo(60 / perMinute, 2)
      expect(reasonOf(await failureOf(transport, rpc, neighbour)), rpc).not.toBe('RATE_LIMITED')
    }
    const endpoints = restEndpoints({ basePath: '', endpointPrefix: '/wallet' }).filter(({ rpc }) =>
      ofGroup.includes(`${rpc.parent.name}/${rpc.name}`),
    )
    expect(endpoints.length).toBeGreaterThan(0)
    for (const { httpMethod, path } of endpoints) {
      // A long poll says so in this header.
      for (const accept of ['*/*', 'application/json']) {
        const body = httpMethod === 'POST' ? {} : undefined
        const { status, headers, json } = await rest(url, path, body, { ...from(address), accept })
        expect([status, json?.code, headers.get('retry-after')], path).toEqual([429, 'RATE_LIMITED', '1'])
      }
    }
    const others = [...rpcs.keys()].filter((rpc) => !ofGroup.includes(rpc))
    for (const rpc of others) expect(reasonOf(await failureOf(transport, rpc, address)), rpc).not.toBe('RATE_LIMITED')
    // What was refused did not count, so the time that the refusal names is enough for one more call.
    vi.setSystemTime(Date.now() + Math.ceil(60_000 / perMinute))
    expect(await spend()).not.toBe('RATE_LIMITED')
    expect(await spend()).toBe('RATE_LIMITED')
  },
)

test('health is told to callers without an allowance left', async () => {
  const { url, transport } = await start()
  const spend = async () => reasonOf(await failureOf(transport, 'OrderService/StartOrder', '127.0.0.1'))
  expect(await refusedOf(130, spend)).toBe(10)
  for (const path of ['/healthz', '/readyz']) {
    expect(await refusedOf(50, async () => ((await fetch(url + path)).ok ? undefined : 'RATE_LIMITED'))).toBe(0)
  }
})

test('an IPv4 host has one allowance in every form of IPv6 that a proxy tells, and its neighbours have theirs', async () => {
  const { url } = await startService({ rateLimit: true, limits: { rates: { 'sign-in': 3 } }, trustProxy: 1 })
  const ask = async (address: string) =>
    (await rest(url, '/wallet/nonce', {}, { ...from(address), origin: url })).status
  const host = ['198.51.100.1', '::ffff:198.51.100.1', '::ffff:c633:6401', '64:ff9b::c633:6401', '::ffff:c633:6401']
  expect((await Promise.all(host.map(ask))).toSorted()).toEqual([200, 200, 200, 429, 429])
  const neighbours = ['::ffff:cb00:7101', '::ffff:cb00:7102', '64:ff9b::cb00:7103', '::cb00:7104']
  expect(await Promise.all(neighbours.map(ask))).toEqual([200, 200, 200, 200])
})

describe('what a foreign page sends through its visitor’s browser takes nothing from the visitor’s network', () => {
  const foreign = { origin: 'https://evil.example' }

  test.each([
    [
      'nonces',
      'sign-in',
      (url: string, headers: Record<string, string>) => rest(url, '/wallet/nonce', {}, headers),
      200,
    ],
    [
      'orders',
      'start-order',
      (url: string, headers: Record<string, string>) => rest(url, '/cross-device/start', { kind: 'sign' }, headers),
      200,
    ],
    [
      'sessions',
      'session',
      (url: string, headers: Record<string, string>) => rest(url, '/session', undefined, headers),
      401,
    ],
    [
      'claims',
      'order',
      (url: string, headers: Record<string, string>) => rest(url, '/cross-device/claim', {}, headers),
      400,
    ],
  ] as const)('%s', async (_what, limit, call, status) => {
    const { url } = await startService({ rateLimit: true, limits: { rates: { [limit]: 4 } } })
    const refused = new Set<number>()
    for (let n = 0; n < 12; n++) refused.add((await call(url, foreign)).status)
    for (let n = 0; n < 4; n++) refused.add((await call(url, { origin: 'null' })).status)
    // They are limited all the same.
    expect([...refused]).toContain(429)
    for (let n = 0; n < 4; n++) expect((await call(url, { origin: url })).status).toBe(status)
    expect((await call(url, { origin: url })).status).toBe(429)
  })

  test('nor do wrong tokens', async () => {
    const { url } = await startService({
      rateLimit: true,
      limits: { rates: { 'wrong-token': 2, 'order-wrong-token': 100 } },
    })
    const { orderId } = (await rest(url, '/cross-device/start', { kind: 'sign' })).json
    const claim = async (headers: Record<string, string>) => {
      const { json } = await rest(url, '/cross-device/claim', { orderId, claimToken: newToken('claim') }, headers)
      return json.code
    }
    expect(await Promise.all(Array.from({ length: 4 }, () => claim(foreign)))).toContain('RATE_LIMITED')
    expect(await claim({ origin: url })).toBe('ORDER_TOKEN_INVALID')
  })

  test('wrong tokens count also where a page allows for being signed out', async () => {
    const { url } = await startService({ rateLimit: true, limits: { rates: { 'wrong-token': 2 } } })
    const read = async () =>
      (await rest(url, '/session?allowSignedOut=true', undefined, { authorization: 'Bearer cst_wrong' })).status
    expect(await Promise.all(Array.from({ length: 4 }, read))).toContain(429)
  })

  test('nor do reads without an Origin that Fetch Metadata shows to come from elsewhere', async () => {
    const { url } = await startService({ rateLimit: true, limits: { rates: { session: 4 } } })
    const read = async (site: string | undefined) => {
      return (await rest(url, '/session', undefined, site === undefined ? {} : { 'sec-fetch-site': site })).status
    }
    const sites = ['cross-site', 'same-site', 'cross-site', 'same-site', 'cross-site', 'same-site']
    expect((await Promise.all(sites.map(read))).toSorted()).toEqual([401, 401, 401, 401, 429, 429])
    expect(await Promise.all(['same-origin', 'none', undefined, 'same-origin'].map(read))).toEqual(Array(4).fill(401))
    expect(await read('same-origin')).toBe(429)
  })

  test('and trusted pages of other origins count as the visitor', async () => {
    const trusted = 'https://app.example'
    const { url } = await startService({
      rateLimit: true,
      limits: { rates: { session: 2 } },
      trustedOrigins: [trusted],
    })
    const read = async (headers: Record<string, string>) => (await rest(url, '/session', undefined, headers)).status
    const statuses = [await read({ origin: trusted }), await read({ origin: url }), await read({ origin: trusted })]
    expect(statuses).toEqual([401, 401, 429])
  })
})
