import { expect, test } from 'vitest'
import { reasons } from '../../src/errors.ts'
import { endingOf, noticeOf } from '../../src/pages/words.ts'

/** What the approval page's own calls cannot be refused for, and what it handles by other means than an ending. */
const notEndings = ['ORDER_NOT_APPROVED', 'ORDER_CHALLENGE_NOT_READ']

test('every way in which a request can be over has words of its own', () => {
  const over = Object.keys(reasons).filter((reason) => reason.startsWith('ORDER_') && !notEndings.includes(reason))
  const titles = over.map((reason) => endingOf(reason)?.title)
  expect(titles).not.toContain(undefined)
  expect(new Set(titles).size).toBe(over.length)
})

test('what passes is no ending', () => {
  for (const code of [
    'NETWORK',
    'STORE_UNAVAILABLE',
    'SERVER_BUSY',
    'HOST_UNAVAILABLE',
    'RATE_LIMITED',
    'INTERNAL',
    'WALLET_DECLINED',
    'WALLET_CLOSED',
  ]) {
    expect(endingOf(code)).toBe(undefined)
    expect(noticeOf(code, 'message')).not.toContain(code)
  }
})

test('what nobody foresaw keeps its message and its code', () => {
  expect(noticeOf('ORIGIN_MISMATCH', 'The origin is wrong')).toContain('The origin is wrong (ORIGIN_MISMATCH)')
})
