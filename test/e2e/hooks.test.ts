import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { describe, expect, test } from 'vitest'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { Host } from '../../src/core/users/host.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { startAuth } from '../better-auth/support.ts'
import { makeInstance } from '../core/order/support.ts'
import { approveOrder } from '../support/flows.ts'
import { keptLog, type LogLine } from '../support/log-lines.ts'
import { memoryStore } from '../support/memory-store.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

/** What a method of the session host does in place of its work, while a test says so. */
type Troubles = Partial<Record<keyof Host, () => Promise<never>>>

/** A service with a session host of the application's own, and what the host's methods do instead of their work. */
async function startWithHost(options: CountersignOptions = {}) {
  const store = await memoryStore()
  const { host } = makeInstance(store)
  const troubles: Troubles = {}
  const troubled = new Proxy(host as Host, {
    get(target, name: keyof Host) {
      const method = (target[name] as (...given: unknown[]) => unknown).bind(target)
      return (...given: unknown[]) => (troubles[name] === undefined ? method(...given) : troubles[name]())
    },
  })
  const { logger, lines } = keptLog()
  const { url, service } = await startService({ logger, store, sessionHost: troubled, ...options })
  return { url, service, troubles, lines }
}

async function newProof(url: string) {
  return proofOf(makeWallet(), (await rest(url, '/wallet/nonce', {})).json)
}

/** A login order that the phone has approved, as desktop and phone name it. */
interface Order {
  readonly orderId: string
  readonly desktopToken: string
  readonly challengeToken: string
}

async function approvedOrder(url: string): Promise<Order> {
  const { json: started } = await rest(url, '/cross-device/start', { kind: 'login' })
  const { challengeToken } = await approveOrder(url, started)
  return { orderId: started.orderId, desktopToken: started.desktopToken, challengeToken }
}

function takeBack(url: string, { orderId, challengeToken }: Order): Promise<RestAnswer> {
  return rest(url, '/cross-device/reject', { orderId, challengeToken })
}

async function statusOf(url: string, { orderId, desktopToken }: Order) {
  const response = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, {
    headers: { authorization: `Bearer ${desktopToken}` },
  })
  for await (const chunk of response.body!)
    return JSON.parse(/^data: (.*)$/m.exec(Buffer.from(chunk).toString())![1]!).status
}

/** Sessions of the signed-in user. */
async function sessionsOf(url: string, token: string): Promise<unknown[]> {
  return (await rest(url, '/sessions', undefined, { authorization: `Bearer ${token}` })).json.sessions
}

/** That a call failed because of the application, with a reference under which the log has this cause. */
function expectUnavailable(answer: RestAnswer, lines: readonly LogLine[], cause: string, nonceUsed = false): void {
  expect([answer.status, answer.json.code]).toEqual([503, 'HOST_UNAVAILABLE'])
  expect(answer.headers.has('retry-after')).toBe(!nonceUsed)
  expect(answer.headers.getSetCookie()).toEqual([])
  expect(answer.json.message).toContain(nonceUsed ? 'sign again' : 'try again')
  const [reference] = /[0-9a-f-]{36}/.exec(answer.json.message) ?? []
  const line = lines.find(({ fields }) => fields.reference === reference)
  expect(line).toMatchObject({ level: 'error', fields: { reason: 'HOST_UNAVAILABLE' } })
  expect(line?.fields.cause).toContain(cause)
}

const down = (): Promise<never> => Promise.reject(new Error('down'))

test.each([
  ['resolveUser', 'approved'],
  ['orderSessionId', 'approved'],
  ['createSession', 'finalized'],
] as const)(
  'FinalizeOrder, if %s of the application fails, leaves the order %s, and a retry makes the session',
  async (method, statusAfter) => {
    const { url, troubles, lines } = await startWithHost()
    const order = await approvedOrder(url)
    troubles[method] = down
    for (let n = 0; n < 3; n++) {
      expectUnavailable(await rest(url, '/cross-device/finalize', order), lines, 'down')
      expect(await statusOf(url, order)).toBe(statusAfter)
    }
    delete troubles[method]
    const { status, json } = await rest(url, '/cross-device/finalize', order)
    expect([status, json.session.orderId]).toEqual([200, order.orderId])
    expect((await rest(url, '/cross-device/finalize', order)).json).toEqual(json)
    expect(await sessionsOf(url, json.token)).toHaveLength(1)
  },
)

describe('RejectOrder of a finalized login order, if the application fails,', () => {
  test('ends the session in a retry, and then says the same again', async () => {
    const { url, troubles, lines } = await startWithHost()
    const order = await approvedOrder(url)
    const { json } = await rest(url, '/cross-device/finalize', order)
    troubles.endOrderSession = down
    expectUnavailable(await takeBack(url, order), lines, 'down')
    expect((await rest(url, '/cross-device/finalize', order)).json.code).toBe('ORDER_REJECTED')
    delete troubles.endOrderSession
    for (let n = 0; n < 2; n++) {
      expect((await takeBack(url, order)).json).toMatchObject({ status: 'finalized', sessionEnded: true })
    }
    const bearer = { authorization: `Bearer ${json.token}` }
    expect((await rest(url, '/session', undefined, bearer)).status).toBe(401)
  })

  test('keeps the session that the application did not make from being made later', async () => {
    const { url, troubles } = await startWithHost()
    const order = await approvedOrder(url)
    troubles.createSession = down
    expect((await rest(url, '/cross-device/finalize', order)).json.code).toBe('HOST_UNAVAILABLE')
    expect((await takeBack(url, order)).json).toMatchObject({ status: 'finalized', sessionEnded: false })
    delete troubles.createSession
    expect((await rest(url, '/cross-device/finalize', order)).json.code).toBe('ORDER_REJECTED')
  })
})

test('VerifySignIn says to sign again if the application fails, and the nonce is used', async () => {
  const { url, troubles, lines } = await startWithHost()
  const proof = await newProof(url)
  for (const method of ['resolveUser', 'createSession'] as const) {
    const proof = await newProof(url)
    troubles[method] = () => Promise.reject(new Error(`${method} is down`))
    expectUnavailable(await rest(url, '/wallet/verify', proof), lines, `${method} is down`, true)
    expect((await rest(url, '/wallet/verify', proof)).json.code).toBe('NONCE_NOT_FOUND')
    delete troubles[method]
  }
  expect((await rest(url, '/wallet/verify', proof)).status).toBe(200)
})

test('hooks that hang end their calls after five seconds, and the places of the calls are free again', async () => {
  /** Never answers while a call waits for it; fails when nobody listens any more. */
  const hang = (): Promise<never> => {
    const { promise, reject } = Promise.withResolvers<never>()
    setTimeout(() => reject(new Error('too late')), 6_000)
    return promise
  }

  const resolveLogin = async () => {
    let hanging = true
    const { logger, lines } = keptLog()
    const { url } = await startService({
      logger,
      limits: { requests: 4 },
      resolveLogin: () => (hanging ? hang() : { id: 'a user' }),
    })
    const proofs = [await newProof(url), await newProof(url)]
    const answers = await Promise.all(proofs.map((proof) => rest(url, '/wallet/verify', proof)))
    const busy = answers.findIndex(({ json }) => json.code === 'SERVER_BUSY')
    expectUnavailable(answers[1 - busy]!, lines, 'resolveLogin() did not answer within 5 seconds', true)
    hanging = false
    expect((await rest(url, '/wallet/verify', proofs[busy])).status).toBe(200)
  }

  const finalize = async (method: 'resolveUser' | 'orderSessionId' | 'createSession', statusAfter: string) => {
    const { url, troubles, lines } = await startWithHost()
    const order = await approvedOrder(url)
    troubles[method] = hang
    const cause = `sessionHost.${method}() did not answer within 5 seconds`
    expectUnavailable(await rest(url, '/cross-device/finalize', order), lines, cause)
    expect(await statusOf(url, order)).toBe(statusAfter)
    delete troubles[method]
    expect((await rest(url, '/cross-device/finalize', order)).json).toMatchObject({ ok: true, status: 'finalized' })
  }

  const reject = async () => {
    const { url, troubles, lines } = await startWithHost()
    const order = await approvedOrder(url)
    await rest(url, '/cross-device/finalize', order)
    troubles.endOrderSession = hang
    expectUnavailable(
      await takeBack(url, order),
      lines,
      'sessionHost.endOrderSession() did not answer within 5 seconds',
    )
    delete troubles.endOrderSession
    expect((await takeBack(url, order)).json).toMatchObject({ ok: true, sessionEnded: true })
  }

  const sessions = async () => {
    const { url, service, troubles, lines } = await startWithHost({ limits: { requests: 8 } })
    const { json } = await rest(url, '/wallet/verify', await newProof(url))
    const bearer = { authorization: `Bearer ${json.token}` }
    troubles.currentSession = hang
    troubles.introspect = hang
    const { introspectSession } = createClient(
      SessionService,
      createConnectTransport({ baseUrl: url, httpVersion: '1.1' }),
    )
    const introspected = introspectSession({ token: json.token }).catch((thrown: unknown) => thrown)
    const inProcess = service.introspect(json.token).catch((thrown: unknown) => thrown)
    const cause = 'sessionHost.currentSession() did not answer within 5 seconds'
    expectUnavailable(await rest(url, '/session', undefined, bearer), lines, cause)
    expect(String(await introspected)).toContain('failed or did not answer; try again shortly')
    expect(await inProcess).toMatchObject({ reason: 'HOST_UNAVAILABLE' })
    delete troubles.currentSession
    delete troubles.introspect
    expect((await introspectSession({ token: json.token })).active).toBe(true)
    expect((await rest(url, '/session', undefined, bearer)).status).toBe(200)
  }

  const nonceStore = async () => {
    let hanging = true
    const map = new Map<string, string>()
    const { url } = await startService({
      limits: { requests: 4 },
      nonceStore: {
        get: async (key) => map.get(key),
        set: async (key, value) => (hanging ? await new Promise(() => {}) : map.set(key, value)),
        delete: async (key) => map.delete(key),
        async take(key) {
          const value = map.get(key)
          map.delete(key)
          return value
        },
      },
    })
    const answers = await Promise.all([rest(url, '/wallet/nonce', {}), rest(url, '/wallet/nonce', {})])
    expect(answers.map(({ json }) => json.code).toSorted()).toEqual(['SERVER_BUSY', 'STORE_UNAVAILABLE'])
    hanging = false
    expect((await rest(url, '/wallet/verify', await newProof(url))).status).toBe(200)
  }

  const betterAuth = async () => {
    const logged: unknown[] = []
    const { url } = await startAuth({
      wallet: { resolveLogin: hang },
      auth: { logger: { log: (...line) => void logged.push(line) } },
    })
    const { status, json } = await rest(url, '/wallet/verify', await newProof(url))
    expect([status, json.code]).toEqual([503, 'HOST_UNAVAILABLE'])
    expect(json.message).toContain('sign again')
    const [reference = 'none'] = /[0-9a-f-]{36}/.exec(json.message) ?? []
    const line = logged.find((line) => String(line).includes(reference))
    expect(String(line)).toContain('resolveLogin() did not answer within 5 seconds')
  }

  await Promise.all([
    resolveLogin(),
    finalize('resolveUser', 'approved'),
    finalize('orderSessionId', 'approved'),
    finalize('createSession', 'finalized'),
    reject(),
    sessions(),
    nonceStore(),
    betterAuth(),
  ])
}, 30_000)
