import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { askResolveLogin, guardedHost } from '../../../src/core/users/application.ts'
import type { CurrentSession, Host, IssuedSession, OrderGrant, Session } from '../../../src/core/users/host.ts'
import { callLog } from '../../../src/observe/call-log.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import { keptLog } from '../../support/log-lines.ts'
import { desktop } from '../order/support.ts'

const identity = { adapterId: 'nimiq', subject: 'ab', publicKeyHex: 'ab', address: 'NQ' }
const session: Session = {
  id: 's1',
  userId: 'u1',
  adapterId: 'nimiq',
  publicKeyHex: 'ab',
  address: 'NQ',
  createdAt: 1,
  expiresAt: 2,
  orderId: 'o1',
  ip: '',
  userAgent: '',
  computerId: 'c1',
}
const issued: IssuedSession = { token: 'css_a.b~c+/=', session, cookies: ['a=b; Path=/', 'c=\u00e4'] }
const current: CurrentSession = { session, cookies: [] }

const order: OrderGrant = { orderId: 'o1', seed: new Uint8Array(32), computerId: 'c1' }

/** A host whose methods all do this. */
function hostThat(does: () => unknown): Host {
  const method = async (): Promise<never> => (await does()) as never
  return {
    resolveUser: method,
    createSession: method,
    orderSessionId: method,
    endOrderSession: method,
    currentSession: method,
    signOut: method,
    listSessions: method,
    revokeSession: method,
    introspect: method,
  }
}

/** Every method of a host, with an answer that its contract allows. */
const calls: Record<keyof Host, { readonly call: (host: Host) => Promise<unknown>; readonly good: unknown }> = {
  resolveUser: { call: (host) => host.resolveUser(identity, desktop), good: { id: 'u1' } },
  createSession: { call: (host) => host.createSession({ id: 'u1' }, identity, desktop), good: issued },
  orderSessionId: { call: async (host) => await host.orderSessionId(order), good: 'o1' },
  endOrderSession: {
    call: (host) => host.endOrderSession({ orderId: 'o1', userId: 'u1', sessionId: 's1' }),
    good: true,
  },
  currentSession: { call: (host) => host.currentSession(desktop), good: current },
  signOut: { call: (host) => host.signOut(desktop), good: ['a=b'] },
  listSessions: { call: (host) => host.listSessions('u1', desktop), good: [session] },
  revokeSession: { call: (host) => host.revokeSession('u1', 's1', desktop), good: true },
  introspect: { call: (host) => host.introspect('token'), good: session },
}
const methods = Object.entries(calls).map(([method, { call, good }]) => ({ method, call, good }))

async function failureOf(call: Promise<unknown>): Promise<CountersignError> {
  const thrown: unknown = await call.then(
    (answer) => new Error(`nothing was thrown, but answered: ${JSON.stringify(answer)}`),
    (thrown: unknown) => thrown,
  )
  if (thrown instanceof CountersignError) return thrown
  throw thrown
}

async function expectUnavailable(call: Promise<unknown>, cause?: string): Promise<void> {
  const failure = await failureOf(call)
  expect(failure).toMatchObject({ reason: 'HOST_UNAVAILABLE', httpStatus: 503, metadata: { nonce_used: 'false' } })
  expect(failure.retryAfterMs).toBeGreaterThan(0)
  expect(failure.message).toContain(failure.metadata.reference)
  if (cause !== undefined) expect(String(failure.cause)).toContain(cause)
}

const revoked = Proxy.revocable({}, {})
revoked.revoke()

const throwing = (name: string): object =>
  Object.defineProperty({}, name, {
    enumerable: true,
    get: () => {
      throw new Error('from a getter')
    },
  })

describe.each(methods)('$method of a session host', ({ method, call, good }) => {
  test('answers what the host answers', async () => {
    expect(await call(guardedHost(hostThat(() => good)))).toEqual(good)
  })

  test('is HOST_UNAVAILABLE if it throws, with the cause for the log', async () => {
    const down = (): never => {
      throw new Error('the database is down')
    }
    await expectUnavailable(call(guardedHost(hostThat(down))), 'the database is down')
    const now = { ...hostThat(() => good), [method]: down } as unknown as Host
    await expectUnavailable(call(guardedHost(now)), 'the database is down')
  })

  test.each(['LOGIN_REFUSED', 'STORE_UNAVAILABLE', 'SESSION_INVALID', 'SESSION_REQUIRED'] as const)(
    'passes on the refusal %s as it is',
    async (reason) => {
      const refusal = new CountersignError(reason, 'In words of its own', { retryAfterMs: 5 })
      expect(await failureOf(call(guardedHost(hostThat(() => Promise.reject(refusal)))))).toBe(refusal)
    },
  )

  const rubbish: [string, unknown][] = [
    ['null', null],
    ['a number', 7],
    ['text', 'text'],
    ['a function', () => good],
    ['an object of another kind', { name: 'no id' }],
    ['a list of rubbish', [7]],
    ['a revoked Proxy', revoked.proxy],
    ['a list that is a revoked Proxy', [revoked.proxy]],
  ]

  const unusable = rubbish.filter(([, answer]) => typeof answer !== typeof good || typeof good === 'object')

  test.each(unusable)('is HOST_UNAVAILABLE if it answers %s', async (_name, answer) => {
    await expectUnavailable(call(guardedHost(hostThat(() => answer))))
  })

  test('is HOST_UNAVAILABLE if it answers nothing, unless that is an answer', async () => {
    const answer = call(guardedHost(hostThat(() => undefined)))
    if (method === 'introspect') expect(await answer).toBeUndefined()
    else await expectUnavailable(answer, `sessionHost.${method}()`)
  })

  test.each([
    ['undefined', undefined],
    ['an object without a prototype', Object.create(null)],
    ['a revoked Proxy', revoked.proxy],
    ['a refusal with a reason that does not exist', new CountersignError('NO_SUCH_REASON' as never, 'x')],
  ])('is HOST_UNAVAILABLE, with a line in the log, if it throws %s', async (_name, thrown) => {
    const outcome = await failureOf(call(guardedHost(hostThat(() => Promise.reject(thrown)))))
    expect(outcome.reason).toBe('HOST_UNAVAILABLE')
    const { logger, lines } = keptLog()
    callLog(logger)({ method, protocol: 'grpc', request: desktop, outcome, durationMs: 1 })
    expect(lines).toMatchObject([{ level: 'error', fields: { reference: outcome.metadata.reference } }])
  })
})

describe('a session that a host answers with', () => {
  const create = async (answer: unknown): Promise<unknown> =>
    await guardedHost(hostThat(() => answer)).createSession({ id: 'u1' }, identity, desktop)

  test.each(Object.keys(session).filter((field) => field !== 'orderId' && field !== 'computerId'))(
    'is unusable without %s',
    async (field) => {
      const { [field as keyof Session]: _, ...rest } = session
      await expectUnavailable(create({ ...issued, session: rest }), `session.${field} must be`)
    },
  )

  test.each(Object.keys(session))('is unusable if %s cannot be read or is of another type', async (field) => {
    const { [field as keyof Session]: _, ...rest } = session
    const unreadable = Object.defineProperties(rest, Object.getOwnPropertyDescriptors(throwing(field)))
    await expectUnavailable(create({ ...issued, session: unreadable }), 'from a getter')
    for (const value of [null, true, {}, ['x'], 1.5, Number.NaN]) {
      await expectUnavailable(create({ ...issued, session: { ...session, [field]: value } }), `session.${field}`)
    }
  })

  test.each([
    ['an id of 201 characters', { session: { ...session, id: 'x'.repeat(201) } }],
    ['an empty id', { session: { ...session, id: '' } }],
    ['a user id with half a surrogate pair', { session: { ...session, userId: 'a\ud800' } }],
    ['no session', { session: undefined }],
    ['no token', { token: undefined }],
    ['an empty token', { token: '' }],
    ['a token that is not text', { token: 7 }],
    ['a token with a line break', { token: 'a\r\nset-cookie: x=y' }],
    ['a token with a space', { token: 'a b' }],
    ['cookies that are not a list', { cookies: 'a=b' }],
    ['no cookies', { cookies: undefined }],
    ['a cookie that is not text', { cookies: ['a=b', 7] }],
    ['an empty cookie', { cookies: [''] }],
    ['a cookie with a line break', { cookies: ['a=b\r\nx-evil: 1'] }],
    ['a cookie that no header can carry', { cookies: ['a=\u0100'] }],
    ['51 cookies', { cookies: Array.from({ length: 51 }, () => 'a=b') }],
  ])('is unusable with %s', async (_name, change) => {
    await expectUnavailable(create({ ...issued, ...change }))
  })

  test('is read once, so that it cannot be one thing when checked and another when used', async () => {
    let reads = 0
    const changing = {
      session,
      cookies: ['a=b'],
      get token() {
        reads++
        return reads === 1 ? 'good' : 'bad\r\n'
      },
    }
    expect(await create(changing)).toEqual({ session, cookies: ['a=b'], token: 'good' })
    expect(reads).toBe(1)
  })

  test('is copied, without what the contract does not name', async () => {
    const more = { ...issued, secret: 'x', session: { ...session, passwordHash: 'x' } }
    const answer = (await create(more)) as IssuedSession
    expect(answer).toEqual(issued)
    expect(answer.session).not.toBe(session)
  })
})

describe('resolveLogin', () => {
  test.each([
    ['nothing', undefined],
    ['a user without id', { name: 'Ada' }],
    ['an empty id', { id: '' }],
    ['an id of 201 characters', { id: 'x'.repeat(201) }],
    ['an id that is not text', { id: 7 }],
    ['an id with half a surrogate pair', { id: '\udc00' }],
    ['an id that cannot be read', throwing('id')],
    ['a revoked Proxy', revoked.proxy],
    ['a thenable that throws', throwing('then')],
  ])('that answers %s is HOST_UNAVAILABLE', async (_name, answer) => {
    await expectUnavailable(askResolveLogin(() => answer as never, identity))
  })

  test('that throws is HOST_UNAVAILABLE, whether at once or later', async () => {
    const throws = (): never => {
      throw new Error('at once')
    }
    await expectUnavailable(askResolveLogin(throws, identity), 'at once')
    await expectUnavailable(
      askResolveLogin(() => Promise.reject(new Error('later')), identity),
      'later',
    )
  })

  test('refuses with null, or with a refusal of its own', async () => {
    expect((await failureOf(askResolveLogin(() => null, identity))).reason).toBe('LOGIN_REFUSED')
    const refusal = new CountersignError('LOGIN_REFUSED', 'Members only')
    const refuses = (): never => {
      throw refusal
    }
    expect(await failureOf(askResolveLogin(refuses, identity))).toBe(refusal)
  })

  test('can have an id of 200 characters', async () => {
    expect(await askResolveLogin(() => ({ id: 'x'.repeat(200) }), identity)).toEqual({ id: 'x'.repeat(200) })
  })
})

describe('a step that does not end', () => {
  // The tests above have set a timer, which ends by itself.
  beforeAll(() => sleep(500))
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  const steps: [string, (does: () => unknown) => Promise<unknown>][] = [
    ['resolveLogin()', (does) => askResolveLogin(does as never, identity)],
    ...methods.map(({ method, call }): [string, (does: () => unknown) => Promise<unknown>] => [
      `sessionHost.${method}()`,
      (does) => call(guardedHost(hostThat(does))),
    ]),
  ]

  test.each(steps)('%s has five seconds', async (name, ask) => {
    let settled = false
    // biome-ignore lint/suspicious/noThenProperty: what the application returns may only look like a promise.
    const asked = ask(() => ({ then() {} })).finally(() => {
      settled = true
    })
    asked.catch(() => {})
    await vi.advanceTimersByTimeAsync(4_900)
    expect(settled).toBe(false)
    await vi.advanceTimersByTimeAsync(600)
    expect(settled).toBe(true)
    await expectUnavailable(asked, `${name} did not answer within 5 seconds`)
  })

  test.each(steps)('%s may answer or fail later, without effect', async (_name, ask) => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    try {
      for (const end of ['resolve', 'reject'] as const) {
        const late = Promise.withResolvers<unknown>()
        const asked = ask(() => late.promise)
        asked.catch(() => {})
        await vi.advanceTimersByTimeAsync(5_500)
        await expectUnavailable(asked)
        late[end](new Error('late'))
        await sleep(5)
      }
      expect(unhandled).not.toHaveBeenCalled()
    } finally {
      process.off('unhandledRejection', unhandled)
    }
  })
})
