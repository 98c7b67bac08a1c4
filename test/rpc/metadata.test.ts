import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ConnectError, createClient } from '@connectrpc/connect'
import { errorFromJson } from '@connectrpc/connect/protocol-connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web'
import { APIError } from 'better-auth/api'
import { describe, expect, onTestFinished, test } from 'vitest'
import { StartOrderRequestSchema } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { ErrorInfoSchema } from '../../gen/server/google/rpc/error_details_pb.ts'
import { createLogger, silentLogger } from '../../src/base/log.ts'
import { guarded } from '../../src/better-auth/failures.ts'
import { OriginPolicy } from '../../src/core/origin-policy.ts'
import { Nonces } from '../../src/core/sign-in/nonce.ts'
import { SignIn } from '../../src/core/sign-in/sign-in.ts'
import { walletAdapters } from '../../src/core/wallet/adapters.ts'
import { chooseVerifier } from '../../src/core/wallet/native.ts'
import { Prover } from '../../src/core/wallet/prover.ts'
import { createApp } from '../../src/http/app.ts'
import { inputFromRest } from '../../src/http/rest/json.ts'
import { createApi } from '../../src/rpc/api.ts'
import { Invoker } from '../../src/rpc/invoke.ts'
import { resolveSettings } from '../../src/service/config.ts'
import { CountersignError, type ErrorMetadata, type ErrorReason, reasons } from '../../src/shared/errors.ts'
import { openStore } from '../../src/store/open.ts'
import { makeInstance, Signer } from '../core/order/support.ts'
import { fileWith } from '../oidc/support.ts'
import { memoryStore } from '../support/memory-store.ts'
import { startService } from '../support/service.ts'

const evil = 'https://evil.example'

/** The keys that the protos document for each reason. */
const documented = new Map<string, readonly string[]>()
{
  const text = readFileSync(new URL('../../proto/countersign/v1/error_reason.proto', import.meta.url), 'utf8')
  for (const [, comment = '', name = ''] of text.matchAll(/((?: {2}\/\/.*\n)+) {2}ERROR_REASON_(\w+) =/g)) {
    const keys = /^ {2}\/\/ Metadata: ([a-z_, ]+)\.$/m.exec(comment)?.[1]?.split(', ') ?? []
    documented.set(name, keys)
    const described = [...comment.matchAll(/^ {2}\/\/ {3}([a-z_, ]+): /gm)].flatMap(([, names = '']) =>
      names.split(', '),
    )
    if (keys.toSorted().join() !== described.toSorted().join()) throw new Error(`${name}: a key is not described`)
  }
}

/** The keys that each reason was seen to send. */
const sent = new Map<string, Set<string>>()

/** A failure as an RPC's caller gets it. */
interface Failure {
  readonly reason: string
  readonly metadata: Readonly<Record<string, string>>
  readonly message: string
}

function failureOf(error: ConnectError): Failure {
  const [info] = error.findDetails(ErrorInfoSchema)
  if (info === undefined) throw error
  return { reason: info.reason, metadata: info.metadata, message: error.rawMessage }
}

/** A service, called over Connect with JSON. */
class Service {
  readonly url: string

  constructor(url: string) {
    this.url = url
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
  async call(rpc: string, body: object | number, headers: Record<string, string> = {}): Promise<any> {
    const response = await fetch(`${this.url}/countersign.v1.${rpc}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body),
    })
    const json = await response.json()
    if (response.status !== 200) throw errorFromJson(json, undefined, new Error('not a Connect error') as ConnectError)
    return json
  }

  /** The failure of a call that must fail. */
  async refusal(...call: Parameters<Service['call']>): Promise<Failure> {
    const error: ConnectError = await this.call(...call).then(
      () => {
        throw new Error('the call succeeded')
      },
      (thrown) => thrown,
    )
    return failureOf(error)
  }
}

async function start(options: Parameters<typeof startService>[0] = {}): Promise<Service> {
  return new Service((await startService(options)).url)
}

/** The request of a sign-in with a new key; `change` makes it wrong. */
async function proofFor(service: Service, change: object = {}): Promise<object> {
  const { nonceId, message } = await service.call('SignInService/IssueNonce', {})
  return { nonceId, ...new Signer().prove(message), ...change }
}

async function waitingOrder(service: Service, details: object = {}) {
  const { orderId, claimToken, desktopToken, confirmationCode } = await service.call('OrderService/StartOrder', {
    kind: 'ORDER_KIND_LOGIN',
    ...details,
  })
  const { challengeToken } = await service.call('OrderService/ClaimOrder', { orderId, claimToken })
  const { message } = await service.call('OrderService/GetOrderChallenge', { orderId, challengeToken })
  const approval = { orderId, challengeToken, proof: new Signer().prove(message) }
  return { approval, desktopToken: desktopToken as string, confirmationCode: confirmationCode as string }
}

/** An order that the phone has approved, as the desktop names it. */
async function approvedOrder(service: Service): Promise<object> {
  const { approval, desktopToken } = await waitingOrder(service)
  await service.call('OrderService/ApproveOrder', approval)
  return { orderId: approval.orderId, desktopToken }
}

/** That the log has one line, under the reference that the message names too. */
function expectInLog(lines: readonly string[], { metadata, message }: Failure, cause: string): void {
  const { reference } = metadata
  expect(message).toContain(reference)
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ reference, cause: expect.stringContaining(cause) }),
  ])
}

function expectDocumented({ reason, metadata }: { reason: string; metadata: ErrorMetadata }): void {
  const keys = Object.keys(metadata)
  expect(documented.get(reason)).toEqual(expect.arrayContaining(keys))
  sent.set(reason, new Set([...(sent.get(reason) ?? []), ...keys]))
}

interface Case {
  readonly reason: ErrorReason
  readonly when: string
  provoke(): Promise<Failure>
  readonly metadata: ErrorMetadata
}

const startOrder = 'OrderService/StartOrder'
const verify = 'SignInService/VerifySignIn'

const cases: Case[] = [
  {
    reason: 'INVALID_REQUEST',
    when: 'a field breaks a rule of the schema',
    provoke: async () => (await start()).refusal(verify, { nonceId: '?', signatureHex: 'xy' }),
    metadata: { field: 'nonce_id, signature_hex' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'a nested field breaks a rule of the schema',
    provoke: async () =>
      (await start()).refusal('OrderService/ApproveOrder', { orderId: 'x', proof: { signatureHex: 'xy' } }),
    metadata: { field: 'signature_hex' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'a field has another type',
    provoke: async () => (await start()).refusal(verify, { nonceId: 5 }),
    metadata: { field: 'nonce_id' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'the body is no message',
    provoke: async () => (await start()).refusal(verify, 5),
    metadata: { type: 'countersign.v1.VerifySignInRequest' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'binary bytes are no message',
    provoke: async () =>
      (await start()).refusal(verify, new Uint8Array([0xff]), { 'content-type': 'application/proto' }),
    metadata: { type: 'countersign.v1.VerifySignInRequest' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'the deadline is malformed',
    provoke: async () => (await start()).refusal(verify, {}, { 'connect-timeout-ms': 'soon' }),
    metadata: { header: 'connect-timeout-ms' },
  },
  {
    reason: 'COMPRESSION_UNSUPPORTED',
    when: 'it is not known',
    provoke: async () => (await start()).refusal(verify, {}, { 'content-encoding': 'zstd' }),
    metadata: { encodings: 'gzip, br' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'a title has a line break',
    provoke: async () => (await start()).refusal(startOrder, { kind: 'ORDER_KIND_SIGN', displayTitle: 'a\nb' }),
    metadata: { field: 'display_title' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'return_to leads elsewhere',
    provoke: async () => (await start()).refusal(startOrder, { kind: 'ORDER_KIND_SIGN', returnTo: '//evil.example' }),
    metadata: { field: 'return_to' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'a key has another length',
    provoke: async () => {
      const service = await start()
      return await service.refusal(verify, await proofFor(service, { publicKeyHex: '00' }))
    },
    metadata: { field: 'public_key_hex', bytes: '32' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'an order asks for another adapter',
    provoke: async () => {
      const service = await start()
      const { approval } = await waitingOrder(service, { adapterId: 'nimiq' })
      const proof = { ...approval.proof, adapterId: 'ed25519' }
      return await service.refusal('OrderService/ApproveOrder', { ...approval, proof })
    },
    metadata: { field: 'adapter_id', expected: 'nimiq' },
  },
  {
    reason: 'INVALID_REQUEST',
    when: 'REST is sent a word that the field does not have',
    provoke: async () => await thrownBy(() => inputFromRest(StartOrderRequestSchema, { kind: 'buy' })),
    metadata: { field: 'kind', allowed: 'login, sign, link' },
  },
  {
    reason: 'REQUEST_TOO_LARGE',
    when: 'a body is longer than 64 KiB',
    provoke: async () => (await start()).refusal(verify, { nonceId: 'x'.repeat(70_000) }),
    metadata: { max_bytes: '65536' },
  },
  {
    reason: 'ORIGIN_NOT_TRUSTED',
    when: 'a browser is elsewhere',
    provoke: async () => (await start()).refusal('SignInService/IssueNonce', {}, { origin: evil }),
    metadata: { origin: evil, origin_source: 'Origin header', setting: 'COUNTERSIGN_TRUSTED_ORIGINS' },
  },
  {
    reason: 'ORIGIN_NOT_TRUSTED',
    when: 'a proxy names a host that is not trusted',
    provoke: async () =>
      (await start({ trustProxy: 1 })).refusal('SignInService/IssueNonce', {}, { 'x-forwarded-host': 'other.example' }),
    metadata: {
      origin: 'http://other.example',
      origin_source: 'X-Forwarded-Host header',
      setting: 'COUNTERSIGN_TRUSTED_ORIGINS',
      proxy_setting: 'COUNTERSIGN_TRUST_PROXY',
    },
  },
  {
    reason: 'ORIGIN_NOT_TRUSTED',
    when: 'the origin is malformed',
    provoke: async () => (await start()).refusal('SignInService/IssueNonce', {}, { origin: 'null' }),
    metadata: { origin: '', origin_source: 'Origin header', setting: 'COUNTERSIGN_TRUSTED_ORIGINS' },
  },
  {
    reason: 'ORIGIN_MISMATCH',
    when: 'a nonce is used from another origin',
    provoke: async () => {
      const service = await start({ trustedOrigins: [evil, 'https://app.example'] })
      const { nonceId } = await service.call('SignInService/IssueNonce', {}, { origin: 'https://app.example' })
      return await service.refusal(verify, { nonceId, signatureHex: '00' }, { origin: evil })
    },
    metadata: {
      origin: evil,
      origin_source: 'Origin header',
      expected: 'https://app.example',
      bound_to: 'nonce',
      setting: 'COUNTERSIGN_PUBLIC_URL',
    },
  },
  {
    reason: 'ORIGIN_MISMATCH',
    when: 'an order is claimed under another name of the service',
    provoke: async () => {
      const options = { trustedOrigins: ['https://app.example'], publicUrl: 'https://sign.example', trustProxy: 1 }
      const service = await start(options)
      const order = await service.call(startOrder, { kind: 'ORDER_KIND_SIGN' }, { origin: 'https://app.example' })
      const { orderId, claimToken } = order
      return await service.refusal(
        'OrderService/ClaimOrder',
        { orderId, claimToken },
        { 'x-forwarded-host': 'a.example' },
      )
    },
    metadata: {
      origin: 'http://a.example',
      origin_source: 'X-Forwarded-Host header',
      expected: 'https://app.example, https://sign.example',
      bound_to: 'order',
      setting: 'COUNTERSIGN_PUBLIC_URL',
      proxy_setting: 'COUNTERSIGN_TRUST_PROXY',
    },
  },
  {
    reason: 'APP_NAME_MISMATCH',
    when: 'the client expects another name',
    provoke: async () => (await start({ appName: 'Tulips' })).refusal('SignInService/IssueNonce', { appName: 'Roses' }),
    metadata: { app_name: 'Tulips', setting: 'COUNTERSIGN_APP_NAME' },
  },
  {
    reason: 'ADAPTER_UNKNOWN',
    when: 'an adapter is not configured',
    provoke: async () => (await start()).refusal(startOrder, { kind: 'ORDER_KIND_SIGN', adapterId: 'other' }),
    metadata: { adapters: 'nimiq, ed25519' },
  },
  {
    reason: 'AUDIENCE_UNKNOWN',
    when: 'access tokens are for others',
    provoke: async () => {
      const service = await start({ accessTokens: { audiences: ['orders'] } })
      const { token } = await service.call(verify, await proofFor(service))
      const headers = { authorization: `Bearer ${token}` }
      return await service.refusal('SessionService/IssueAccessToken', { audience: 'other' }, headers)
    },
    metadata: { setting: 'COUNTERSIGN_ACCESS_TOKEN_AUDIENCES' },
  },
  {
    reason: 'ADDRESS_MISMATCH',
    when: 'the form was asked for with another address',
    provoke: async () => {
      const service = await start({ adapters: ['ethereum'] })
      const wallet = { adapterId: 'ethereum', address: `0x${'ab'.repeat(20)}`, chainId: '1' }
      const { nonceId } = await service.call('SignInService/IssueNonce', { ...wallet, form: true })
      const address = `0x${'cd'.repeat(20)}`
      return await service.refusal(verify, { nonceId, ...wallet, address, signatureHex: '00' })
    },
    metadata: { field: 'address' },
  },
  {
    reason: 'CONTRACT_WALLET_NEEDS_RPC',
    when: 'no RPC of the chain is set',
    provoke: async () => {
      const service = await start({ adapters: ['ethereum'] })
      const wallet = { adapterId: 'ethereum', address: `0x${'ab'.repeat(20)}`, chainId: '8453' }
      const { nonceId } = await service.call('SignInService/IssueNonce', wallet)
      return await service.refusal(verify, { nonceId, ...wallet, signatureHex: '00' })
    },
    metadata: { chain_id: '8453', setting: 'COUNTERSIGN_EVM_RPC' },
  },
  {
    reason: 'EVM_RPC_UNAVAILABLE',
    when: 'the RPC does not answer',
    provoke: async () => {
      const service = await start({ adapters: ['ethereum'], evmRpc: { 1: 'http://127.0.0.1:1' } })
      const wallet = { adapterId: 'ethereum', address: `0x${'ab'.repeat(20)}`, chainId: '1' }
      const { nonceId } = await service.call('SignInService/IssueNonce', wallet)
      return await service.refusal(verify, { nonceId, ...wallet, signatureHex: '00' })
    },
    metadata: { chain_id: '1' },
  },
  {
    reason: 'LOGIN_REFUSED',
    when: 'a hook of Better Auth refuses in words of its own',
    provoke: async () =>
      await thrownBy(() => guarded(() => Promise.reject(new APIError('FORBIDDEN', { message: 'Members only' })))),
    metadata: { application_message: 'Members only' },
  },
  {
    reason: 'LOGIN_REFUSED',
    when: 'resolveLogin returns null',
    provoke: async () => {
      const service = await start({ resolveLogin: () => null })
      return await service.refusal(verify, await proofFor(service))
    },
    metadata: {},
  },
  {
    reason: 'LOGIN_REFUSED',
    when: 'the people file does not list the wallet',
    provoke: async () => {
      const service = await start({ people: fileWith({ 'user-1': {} }), admit: 'people' })
      return await service.refusal(verify, await proofFor(service))
    },
    metadata: { adapter_id: 'ed25519', address: expect.stringMatching(/^NQ/) },
  },
  {
    reason: 'GROUP_REQUIRED',
    when: 'a proxy asks for groups that the user is not in',
    provoke: async () => {
      const service = await start({ trustProxy: true })
      const { token } = await service.call(verify, await proofFor(service))
      const headers = { authorization: `Bearer ${token}` }
      const answer = await fetch(`${service.url}/api/auth/forward-auth?groups=staff,admins`, { headers })
      const { code: reason, ...rest } = await answer.json()
      return { reason, ...rest }
    },
    metadata: { groups: 'staff,admins' },
  },
]

/** The failure that a step of the domain throws. */
async function thrownBy(step: () => unknown): Promise<Failure> {
  try {
    await step()
  } catch (thrown) {
    if (thrown instanceof CountersignError) return thrown
    throw thrown
  }
  throw new Error('nothing was thrown')
}

describe('metadata', () => {
  test.each(cases)('$reason when $when', async ({ reason, provoke, metadata }) => {
    const failure = await provoke()
    expect(failure).toMatchObject({ reason, metadata })
    expect(failure.metadata).toEqual(metadata)
    expectDocumented(failure)
  })

  test('RETURN_CODE_WRONG counts the tries that are left down to 0', async () => {
    const service = await start({ confirmationCode: 'return' })
    const { approval, desktopToken } = await waitingOrder(service)
    const { returnCode } = await service.call('OrderService/ApproveOrder', approval)
    const { orderId } = approval
    const wrong = { orderId, desktopToken, returnCode: returnCode === '000000' ? '000001' : '000000' }
    for (const left of ['2', '1', '0']) {
      const failure = await service.refusal('OrderService/FinalizeOrder', wrong)
      expect(failure).toMatchObject({ reason: 'RETURN_CODE_WRONG', metadata: { tries_left: left } })
      expectDocumented(failure)
    }
    expect(await service.refusal('OrderService/FinalizeOrder', wrong)).toMatchObject({ reason: 'ORDER_REJECTED' })
  })

  test('START_KEY_REQUIRED names the setting', async () => {
    const service = await start({ orderStartKeys: ['k'.repeat(32)] })
    const failure = await service.refusal('OrderService/StartOrder', { kind: 'ORDER_KIND_SIGN' })
    expect(failure).toMatchObject({
      reason: 'START_KEY_REQUIRED',
      metadata: { setting: 'COUNTERSIGN_ORDER_START_KEYS' },
    })
    expectDocumented(failure)
  })

  test.each([
    ['true', verify, async (service: Service) => await proofFor(service)],
    ['false', 'OrderService/FinalizeOrder', async (service: Service) => await approvedOrder(service)],
  ] as const)(
    'HOST_UNAVAILABLE names a reference under which the log has the cause; nonce_used is %s of %s',
    async (nonceUsed, rpc, inputOf) => {
      const lines: string[] = []
      const logger = createLogger({ write: (line) => lines.push(line) }, 'error')
      const service = await start({ logger, resolveLogin: () => ({}) as never })
      const failure = await service.refusal(rpc, await inputOf(service))
      expect(failure).toMatchObject({ reason: 'HOST_UNAVAILABLE', metadata: { nonce_used: nonceUsed } })
      expectDocumented(failure)
      expectInLog(lines, failure, 'resolveLogin().id must be text')
    },
  )

  test('INTERNAL names a reference under which the log has the cause', async () => {
    const lines: string[] = []
    const logger = createLogger({ write: (line) => lines.push(line) }, 'error')
    const rubbish = { get: async () => null, set: async () => {}, delete: async () => {}, take: async () => 'not JSON' }
    const service = await start({ logger, nonceStore: rubbish })
    const failure = await service.refusal(verify, await proofFor(service))
    expect(failure.reason).toBe('INTERNAL')
    expectDocumented(failure)
    expectInLog(lines, failure, 'SyntaxError')
  })

  test('INTERNAL for a reply that cannot be written has a reference in the log too', async () => {
    const lines: string[] = []
    const logger = createLogger({ write: (line) => lines.push(line) }, 'error')
    const store = await memoryStore()
    const service = await start({ logger, store })
    const { approval } = await waitingOrder(service)
    const key = `order:{${approval.orderId}}`
    const stored = await store.get(key)
    const broken = JSON.stringify({ ...JSON.parse(stored!.value), displayTitle: 5 })
    await store.compareAndSet(key, stored!.version, broken, { ttlMs: 60_000 })
    const { orderId, challengeToken } = approval
    const failure = await service.refusal('OrderService/GetOrderChallenge', { orderId, challengeToken })
    expect(failure.reason).toBe('INTERNAL')
    expectInLog(lines, failure, '')
  })

  test('RATE_LIMITED names the limit', async () => {
    const service = await start({ rateLimit: true, limits: { rates: { 'sign-in': 1 } } })
    await service.call('SignInService/IssueNonce', {})
    const failure = await service.refusal('SignInService/IssueNonce', {})
    expect(failure).toMatchObject({ reason: 'RATE_LIMITED', metadata: { limit: 'sign-in' } })
    expectDocumented(failure)
  })

  test.each([
    ['ROUTE_NOT_FOUND', '/nothing/here?token=secret', { path: '/nothing/here' }],
    [
      'METHOD_NOT_ALLOWED',
      '/api/auth/wallet/nonce',
      { path: '/api/auth/wallet/nonce', method: 'GET', allowed: 'POST' },
    ],
  ] as const)('%s at %s is told to the observer', async (reason, target, metadata) => {
    const observed: unknown[] = []
    const url = await serveObserved((outcome) => observed.push(outcome))
    await (await fetch(url + target)).arrayBuffer()
    expect(observed).toMatchObject([{ reason, metadata }])
    expectDocumented(observed[0] as CountersignError)
  })

  test.each([
    ['gRPC', createGrpcTransport],
    ['gRPC-Web', createGrpcWebTransport],
    ['Connect', createConnectTransport],
  ])('is the same over %s', async (_protocol, createTransport) => {
    const { url } = await start()
    const { issueNonce } = createClient(SignInService, createTransport({ baseUrl: url }))
    const failure = await issueNonce({}, { headers: { origin: evil } }).then(() => undefined, failureOf)
    expect(failure?.metadata).toEqual({
      origin: evil,
      origin_source: 'Origin header',
      setting: 'COUNTERSIGN_TRUSTED_ORIGINS',
    })
  })

  test('a body that is too large has it over gRPC too', async () => {
    const { url } = await start()
    const { verifySignIn } = createClient(SignInService, createGrpcTransport({ baseUrl: url }))
    const failure = await verifySignIn({ nonceId: 'x'.repeat(70_000) }).then(() => undefined, failureOf)
    expect(failure).toMatchObject({ reason: 'REQUEST_TOO_LARGE', metadata: { max_bytes: '65536' } })
  })

  // Last: it looks at what the tests above have seen.
  test('is documented by its keys, no more and no fewer', () => {
    expect([...documented.keys()].filter((name) => name !== 'UNSPECIFIED').toSorted()).toEqual(
      Object.keys(reasons).toSorted(),
    )
    for (const [reason, keys] of documented) {
      expect([...(sent.get(reason) ?? [])].toSorted(), reason).toEqual(keys.toSorted())
    }
  })
})

/** Serves the routes of a real service, with an observer of the test's own. */
async function serveObserved(observe: (outcome: unknown) => void): Promise<string> {
  const store = await openStore('sqlite::memory:')
  const settings = resolveSettings({})
  const origins = new OriginPolicy({ enforce: true, own: 'http://localhost', trusted: [] })
  const { orders, host } = makeInstance(store)
  const nonces = new Nonces({ appName: 'Example', ttlSeconds: 60, store })
  const prover = new Prover(walletAdapters(['nimiq']), chooseVerifier('auto'))
  const tell = ({ outcome }: { outcome: unknown }): void => observe(outcome)
  const { port } = createApp({
    settings: {
      ...settings,
      adapterIds: ['nimiq'],
      demoWallet: false,
      keepsUsers: true,
      startsOrders: true,
      hasDemo: true,
      accessTokensIssued: false,
      hasIssuer: false,
    },
    methods: createApi({ signIn: new SignIn({ nonces, prover, origins, host }), orders, host }),
    invoker: new Invoker(undefined, tell),
    observe: tell,
    origins,
    peekSession: undefined,
    pageFiles: undefined,
    ready: () => store.ping(),
    shutdownSignal: new AbortController().signal,
    log: silentLogger,
  })
  const server = createServer(port.request).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await store.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
