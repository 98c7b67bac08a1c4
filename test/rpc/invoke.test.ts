import { create } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { IssueNonceRequestSchema } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { readRequest } from '../../src/base/request.ts'
import { defaultLimits } from '../../src/limits/limits.ts'
import { RateLimiter } from '../../src/limits/rate.ts'
import { type CallReport, Invoker } from '../../src/rpc/invoke.ts'
import type { Call } from '../../src/rpc/methods.ts'
import { CallEnded, CountersignError } from '../../src/shared/errors.ts'

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] }),
)
afterEach(async () => {
  // The timer that all calls share ends once there are none.
  await vi.advanceTimersByTimeAsync(60_000)
  vi.useRealTimers()
})

const request = readRequest(
  { headers: new Headers(), scheme: 'http', authority: 'a.example', remoteAddress: '192.0.2.1' },
  0,
)

function callOf(details: Partial<Call> = {}): Call {
  const { signal } = new AbortController()
  return { protocol: 'connect', request, responseHeaders: {}, signal, ...details }
}

/** What is invoked, and what the observer is told. */
function invoke(
  handle: (input: unknown, call: Call) => Promise<unknown>,
  {
    call = callOf(),
    limiter,
    read = () => create(IssueNonceRequestSchema),
  }: {
    call?: Call
    limiter?: RateLimiter
    read?: () => ReturnType<typeof create<typeof IssueNonceRequestSchema>>
  } = {},
) {
  const reports: CallReport[] = []
  const invoker = new Invoker(limiter, (report) => reports.push(report))
  const answer = invoker.unary({
    method: { name: 'test/Call', desc: { input: IssueNonceRequestSchema }, limit: 'sign-in', handle },
    call,
    readInput: read,
    write: (reply) => reply,
  })
  answer.catch(() => {})
  return { answer, reports }
}

test('the observer is told of each call once: method, caller, outcome and time', async () => {
  const { answer, reports } = invoke(async () => 'reply')
  expect(await answer).toBe('reply')
  expect(reports).toEqual([
    { method: 'test/Call', protocol: 'connect', request, outcome: 'ok', durationMs: expect.any(Number) },
  ])
})

test('a call over its limit reads nothing, is not handled, and is told of', async () => {
  // An allowance refills as time passes, on a slow machine faster than the calls use it up.
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const limiter = new RateLimiter(defaultLimits)
  const done: string[] = []
  const once = () =>
    invoke(async () => done.push('handled'), {
      limiter,
      read: () => {
        done.push('read')
        return create(IssueNonceRequestSchema)
      },
    })
  for (let i = 0; i < 240; i++) await once().answer
  done.length = 0
  const { answer, reports } = once()
  await expect(answer).rejects.toMatchObject({ reason: 'RATE_LIMITED' })
  expect(done).toEqual([])
  expect(reports).toMatchObject([{ outcome: { reason: 'RATE_LIMITED' } }])
})

test('a message that breaks the rules is not handled', async () => {
  let handled = false
  const { answer } = invoke(
    async () => {
      handled = true
    },
    { read: () => create(IssueNonceRequestSchema, { appName: 'x'.repeat(81) }) },
  )
  await expect(answer).rejects.toMatchObject({ reason: 'INVALID_REQUEST', metadata: { field: 'app_name' } })
  expect(handled).toBe(false)
})

test('nothing that a failed call set is handed out', async () => {
  const call = callOf()
  const { answer } = invoke(
    async (_input, { responseHeaders }) => {
      responseHeaders['set-cookie'] = ['a=b']
      responseHeaders['set-auth-token'] = 'secret'
      throw new CountersignError('LOGIN_REFUSED', 'no')
    },
    { call },
  )
  await expect(answer).rejects.toMatchObject({ reason: 'LOGIN_REFUSED' })
  expect(call.responseHeaders).toEqual({})
})

test('a handler that never ends is ended after 30 s, up to a second late, without a deadline of the caller', async () => {
  const { answer, reports } = invoke(() => new Promise(() => {}))
  await vi.advanceTimersByTimeAsync(29_900)
  expect(reports).toEqual([])
  await vi.advanceTimersByTimeAsync(1200)
  await expect(answer).rejects.toBeInstanceOf(CallEnded)
  expect(reports).toMatchObject([{ outcome: { code: 'deadline_exceeded' } }])
})

test('so is one whose caller would wait longer; a shorter deadline holds to the millisecond', async () => {
  const patient = invoke(() => new Promise(() => {}), { call: callOf({ timeoutMs: 600_000 }) })
  const hasty = invoke(() => new Promise(() => {}), { call: callOf({ timeoutMs: 50 }) })
  await vi.advanceTimersByTimeAsync(49)
  expect(hasty.reports).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  await expect(hasty.answer).rejects.toMatchObject({ code: 'deadline_exceeded' })
  await vi.advanceTimersByTimeAsync(31_000)
  await expect(patient.answer).rejects.toMatchObject({ code: 'deadline_exceeded' })
})

test('a call that has answered leaves no timer behind', async () => {
  await invoke(async () => 'reply').answer
  await invoke(async () => 'reply', { call: callOf({ timeoutMs: 5000 }) }).answer
  await vi.advanceTimersByTimeAsync(2000)
  expect(vi.getTimerCount()).toBe(0)
})
