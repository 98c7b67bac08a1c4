import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { readRequest } from '../../src/base/request.ts'
import { callLog } from '../../src/observe/call-log.ts'
import type { CallReport } from '../../src/rpc/invoke.ts'
import { CallEnded, CountersignError, internalError } from '../../src/shared/errors.ts'
import { keptLog } from '../support/log-lines.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const refusal = new CountersignError('SESSION_INVALID', 'The session is not valid')

function report(outcome: CallReport['outcome'], ip = '192.0.2.1', method = 'a.Service/Method'): CallReport {
  const request = readRequest({ headers: new Headers(), scheme: 'http', authority: 'a', remoteAddress: ip }, 0)
  return { method, protocol: 'grpc', request, outcome, durationMs: 1 }
}

function start() {
  const { logger, lines } = keptLog()
  return { observe: callLog(logger), lines }
}

test('what went well, and what its caller ended, is not logged', () => {
  const { observe, lines } = start()
  observe(report('ok'))
  observe(report(new CallEnded('canceled')))
  expect(lines).toEqual([])
})

describe('a flood of refusals', () => {
  test('is one line at once, then at most one each second with the number it stands for', () => {
    const { observe, lines } = start()
    observe(report(refusal))
    expect(lines).toEqual([
      {
        level: 'info',
        text: 'request refused',
        fields: { reason: 'SESSION_INVALID', method: 'a.Service/Method', protocol: 'grpc', ip: '192.0.2.1' },
      },
    ])
    // 1,000 a second.
    for (let ms = 0; ms < 10_000; ms++) {
      observe(report(refusal))
      vi.advanceTimersByTime(1)
    }
    vi.advanceTimersByTime(5_000)
    expect(lines.length).toBeGreaterThan(5)
    expect(lines.length).toBeLessThanOrEqual(12)
    const repeated = lines.slice(1).map(({ fields }) => fields.repeated as number)
    expect(repeated.reduce((sum, one) => sum + one, 0)).toBe(10_000)
  })

  test('does not hide the refusals of another address or for another reason', () => {
    const { observe, lines } = start()
    for (let i = 0; i < 100; i++) observe(report(refusal))
    observe(report(refusal, '192.0.2.2'))
    observe(report(new CountersignError('ORDER_NOT_FOUND', 'There is no such order')))
    expect(lines.map(({ fields }) => [fields.ip, fields.reason])).toEqual([
      ['192.0.2.1', 'SESSION_INVALID'],
      ['192.0.2.2', 'SESSION_INVALID'],
      ['192.0.2.1', 'ORDER_NOT_FOUND'],
    ])
  })

  test('a flood of refusals that is over is forgotten: the next one is a line at once', () => {
    const { observe, lines } = start()
    observe(report(refusal))
    vi.advanceTimersByTime(2_000)
    expect(vi.getTimerCount()).toBe(0)
    observe(report(refusal))
    expect(lines).toHaveLength(2)
    expect(lines[1]?.fields.repeated).toBeUndefined()
  })

  test('from very many addresses costs bounded lines and memory, and all of it is counted', () => {
    const { observe, lines } = start()
    const address = (i: number) => `2001:db8::${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}`
    for (let i = 0; i < 100_000; i++) observe(report(refusal, address(i)))
    vi.advanceTimersByTime(3_000)
    expect(lines.length).toBeLessThanOrEqual(1_002)
    const counted = lines.reduce((sum, { fields }) => sum + ((fields.repeated as number | undefined) ?? 1), 0)
    expect(counted).toBe(100_000)
    expect(vi.getTimerCount()).toBe(0)
  })
})

test('an outage of the store is one warning at once and one each second, for all callers together', () => {
  const { observe, lines } = start()
  const outage = new CountersignError('STORE_UNAVAILABLE', 'The store does not answer', {
    cause: new Error('ECONNREFUSED'),
  })
  for (let i = 0; i < 100; i++) observe(report(outage, `192.0.2.${i}`))
  vi.advanceTimersByTime(1_500)
  expect(lines).toMatchObject([
    { level: 'warn', text: 'store unavailable', fields: { cause: 'ECONNREFUSED' } },
    { level: 'warn', text: 'store unavailable', fields: { repeated: 99 } },
  ])
})

test("every failure of the server's own is logged, with its reference", () => {
  const { observe, lines } = start()
  for (let i = 0; i < 5; i++) observe(report(internalError(new Error('broken'))))
  expect(lines.map(({ level }) => level)).toEqual(Array(5).fill('error'))
  expect(new Set(lines.map(({ fields }) => fields.reference)).size).toBe(5)
})
