import { readdirSync, readFileSync } from 'node:fs'
import { ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { codeFromString } from '@connectrpc/connect/protocol-connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { createConnectTransport } from '@connectrpc/connect-web'
import { describe, expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import type { WalletAdapter } from '../../src/core/wallet/wallet.ts'
import type { AuditEvent, AuditEventType } from '../../src/index.ts'
import { patternWords } from '../../src/rpc/read-input.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { CountersignError, type ErrorReason, reasons } from '../../src/shared/errors.ts'
import { keptLog } from '../support/log-lines.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

const protos = new URL('../../proto/countersign/v1/', import.meta.url)

type Headers = Record<string, string>

/** Direct sign-in and sessions over one protocol; every failure is told as its reason. */
interface Caller {
  nonce(headers?: Headers, request?: object): Promise<{ nonceId: string; message: string }>
  verify(request: object, headers?: Headers): Promise<{ token: string }>
  session(headers: Headers): Promise<unknown>
}

class Refusal extends Error {
  readonly reason: string
  readonly retry: boolean
  constructor(reason: string, retry: boolean, text: string) {
    super(`${reason}: ${text}`)
    this.reason = reason
    this.retry = retry
  }
}

function restCaller(url: string): Caller {
  const call = async (path: string, body?: object, headers?: Headers) => {
    const answer = await rest(url, path, body, headers)
    if (answer.status === 200) return answer.json
    expect(answer.status).toBe(reasons[answer.json.code as ErrorReason].http)
    throw new Refusal(answer.json.code, answer.headers.has('retry-after'), answer.json.message)
  }
  return {
    nonce: (headers, request = {}) => call('/wallet/nonce', request, headers),
    verify: (request, headers) => call('/wallet/verify', request, headers),
    session: (headers) => call('/session', undefined, headers),
  }
}

function connectCaller(transport: Transport): Caller {
  const signIn = createClient(SignInService, transport)
  const sessions = createClient(SessionService, transport)
  const told = async <T>(running: Promise<T>): Promise<T> => {
    try {
      return await running
    } catch (thrown) {
      const error = ConnectError.from(thrown)
      const [info] = error.findDetails(ErrorInfoSchema)
      if (info === undefined) throw error
      expect(info.domain).toBe('countersign')
      expect(error.code).toBe(codeFromString(reasons[info.reason as ErrorReason].code))
      throw new Refusal(info.reason, error.findDetails(RetryInfoSchema).length === 1, error.rawMessage)
    }
  }
  return {
    nonce: (headers = {}, request = {}) => told(signIn.issueNonce(request, { headers })),
    verify: (request, headers = {}) => told(signIn.verifySignIn(request, { headers })),
    session: (headers) => told(sessions.getCurrentSession({}, { headers })),
  }
}

const callers: [string, (url: string) => Caller][] = [
  ['REST', restCaller],
  ['Connect JSON', (url) => connectCaller(createConnectTransport({ baseUrl: url }))],
  [
    'Connect with a deadline',
    (url) => connectCaller(createConnectTransport({ baseUrl: url, defaultTimeoutMs: 20_000 })),
  ],
  ['gRPC', (url) => connectCaller(createGrpcTransport({ baseUrl: url }))],
]

interface Case {
  readonly reason: ErrorReason
  readonly when: string
  readonly options?: CountersignOptions
  act(caller: Caller, wallet: TestWallet, url: string): Promise<unknown>
}

const down = () => Promise.reject(new Error('down'))

const faultyAdapter: WalletAdapter = {
  id: 'faulty',
  displayName: 'Faulty',
  verify: () => {
    throw new Error('a fault')
  },
  readAddress: () => undefined,
}

/** What each protocol shows of a failure is in test/contract and test/rpc; here are those that allow a retry, or not. */
const cases: Case[] = [
  { reason: 'INVALID_REQUEST', when: 'a field is missing', act: async (caller) => await caller.verify({}) },
  {
    reason: 'STORE_UNAVAILABLE',
    when: 'the nonce store is down',
    options: { nonceStore: { get: down, set: down, delete: down } },
    act: async (caller) => await caller.nonce(),
  },
  {
    reason: 'INTERNAL',
    when: 'a wallet adapter of the application has a fault',
    options: { adapters: [faultyAdapter] },
    act: async (caller, wallet) =>
      await caller.verify({ ...proofOf(wallet, await caller.nonce()), adapterId: faultyAdapter.id }),
  },
  {
    reason: 'RATE_LIMITED',
    when: 'one address asks too often',
    options: { rateLimit: true, limits: { rates: { 'sign-in': 10 } } },
    act: async (caller) => {
      for (let i = 0; i < 20; i++) await caller.nonce()
    },
  },
  { reason: 'SESSION_REQUIRED', when: 'there is no token', act: async (caller) => await caller.session({}) },
]

describe.each(callers)('over %s', (_protocol, makeCaller) => {
  test.each(cases)('$reason when $when', async ({ reason, options, act }) => {
    const { url } = await startService(options)
    const failure = await act(makeCaller(url), makeWallet(), url).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(failure).toMatchObject({
      reason,
      retry: reason === 'RATE_LIMITED' || reason === 'STORE_UNAVAILABLE',
    })
  })
})

const every = Object.keys(reasons) as ErrorReason[]

/** An application that refuses sign-ins for one reason after another. */
function refusingApplication(): { resolveLogin: () => never; refuseFor(reason: ErrorReason): void } {
  let current: ErrorReason = 'INTERNAL'
  return {
    resolveLogin() {
      throw new CountersignError(current, 'The application says so')
    },
    refuseFor: (reason) => {
      current = reason
    },
  }
}

test.each(callers)('over %s, every reason has the code and the status of its row', async (_protocol, makeCaller) => {
  const { resolveLogin, refuseFor } = refusingApplication()
  const { url } = await startService({ resolveLogin })
  const caller = makeCaller(url)
  for (const reason of every) {
    refuseFor(reason)
    const refused = caller.verify(proofOf(makeWallet(), await caller.nonce()))
    // The caller compares the code or the status with the row.
    await expect(refused).rejects.toMatchObject({ reason })
  }
})

test('every reason has the log line and the audit event of its row', async () => {
  const { resolveLogin, refuseFor } = refusingApplication()
  const { logger, lines } = keptLog()
  const events: AuditEvent[] = []
  const onAuditEvent = (event: AuditEvent) => events.push(event)
  const { url } = await startService({ resolveLogin, logger, onAuditEvent })
  const caller = restCaller(url)
  for (const reason of every) {
    refuseFor(reason)
    await expect(caller.verify(proofOf(makeWallet(), await caller.nonce()))).rejects.toBeInstanceOf(Refusal)
  }
  const last = every.at(-1)
  await expect.poll(() => lines.some(({ fields }) => fields.reason === last)).toBe(true)
  for (const reason of every) {
    const { level, log, audit } = reasons[reason]
    const [line] = lines.filter(({ fields }) => fields.reason === reason)
    expect(line?.level, reason).toBe(level)
    if (level !== 'error') expect(line?.fields.message !== undefined, reason).toBe(log.includes('message'))
    const types = events.filter((event) => 'reason' in event && event.reason === reason).map(({ type }) => type)
    expect(types, reason).toEqual(eventsOf[audit])
  }
})

/** The events of a sign-in, which brings a signature. */
const eventsOf: Readonly<Record<(typeof reasons)[ErrorReason]['audit'], AuditEventType[]>> = {
  signature: ['challenge.refused'],
  'signature else call': ['challenge.refused'],
  call: ['call.refused'],
  limit: ['limit.hit'],
  order: [],
  none: [],
}

describe('over REST alone', () => {
  test.each([
    [{ kind: 'buy' }, 'kind: must be login or sign'],
    [{}, 'kind is missing'],
    [{ kind: 7 }, 'kind '],
    [{ kind: 'login', displayTitle: 'a\nb' }, 'displayTitle must be one line'],
    [{ kind: 'login', returnTo: '//evil.example' }, 'returnTo must be a path'],
    [{ kind: 'sign', payload: { amount: 1 } }, 'payload must be a string with JSON in it'],
    [{ kind: 'login', adapterId: 'Nimiq!' }, 'adapterId must be 1 to 32 small letters, digits and hyphens'],
    [{ kind: 'login', displayTitle: 'a'.repeat(200) }, 'displayTitle must be at most 120 characters'],
  ])('%j is refused in words that help', async (body, words) => {
    const { url } = await startService()
    const { status, json } = await rest(url, '/cross-device/start', body)
    expect([status, json.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(json.message).toContain(words)
  })

  test('what is missing is called missing, and metadata names the field as REST does', async () => {
    const { url } = await startService()
    expect(await rest(url, '/wallet/verify', {})).toMatchObject({
      status: 400,
      json: { message: 'nonceId is missing', metadata: { field: 'nonceId' } },
    })
    const { orderId } = (await rest(url, '/cross-device/start', { kind: 'login' })).json
    const missing = { status: 401, json: { code: 'ORDER_TOKEN_INVALID', message: 'The desktop token is missing' } }
    expect(await rest(url, '/cross-device/finalize', { orderId })).toMatchObject(missing)
    expect(await rest(url, `/cross-device/events?orderId=${orderId}`)).toMatchObject(missing)
  })

  test('every pattern of the protos has words', () => {
    const found = readdirSync(protos).flatMap((file) =>
      [...readFileSync(new URL(file, protos), 'utf8').matchAll(/pattern\s*[=:]\s*"([^"]+)"/g)].map(
        ([, pattern]) => pattern,
      ),
    )
    expect([...new Set(found)].sort()).toEqual(Object.keys(patternWords).sort())
  })

  test('ROUTE_NOT_FOUND where there is nothing', async () => {
    const { url } = await startService()
    expect(await rest(url, '/nothing')).toMatchObject({ status: 404, json: { code: 'ROUTE_NOT_FOUND' } })
    const outside = await fetch(`${url}/countersign.v1.SignInService/Nothing`, { method: 'POST' })
    expect([outside.status, await outside.json()]).toMatchObject([404, { code: 'ROUTE_NOT_FOUND' }])
  })
})
