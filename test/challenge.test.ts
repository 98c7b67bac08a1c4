import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Challenge, challengeMessage, isPlainLine, requirePlainLine } from '../src/challenge.ts'

const challenge: Challenge = {
  action: 'order.approve',
  challengeId: 'c',
  nonce: 'n',
  origin: 'https://app.example',
  issuedAt: Date.UTC(2026, 0, 1),
  expiresAt: Date.UTC(2026, 0, 1, 0, 5),
}

test('the text has one line for each fact, in this order', () => {
  expect(
    challengeMessage('Shop', challenge, {
      orderId: 'o',
      kind: 'sign',
      displayTitle: 'Pay',
      displaySummary: '3 tulips',
      confirmationCode: '42',
      payloadHash: 'abc=',
    }),
  ).toBe(`Shop requests approval
Action: order.approve
Origin: https://app.example
Challenge ID: c
Nonce: n
Issued At: 2026-01-01T00:00:00.000Z
Expires At: 2026-01-01T00:05:00.000Z
Order ID: o
Kind: sign
Code: 42
Payload Hash: abc=
Title: Pay
Summary: 3 tulips`)
})

test('the text for adding a wallet names the user and the wallet of the session', () => {
  const link: Challenge = { ...challenge, action: 'auth.link', challengeId: 'link' }
  const common = `Shop requests authentication
Action: auth.link
Origin: https://app.example
Challenge ID: link
Nonce: n
Issued At: 2026-01-01T00:00:00.000Z
Expires At: 2026-01-01T00:05:00.000Z
User: u 1`
  expect(challengeMessage('Shop', link, { userId: 'u 1', sessionAddress: 'NQ07' })).toBe(
    `${common}\nSession Account: NQ07`,
  )
  expect(challengeMessage('Shop', link, { userId: 'u 1' })).toBe(common)
  for (const lines of [{ userId: 'u\nSession Account: NQ08' }, { userId: 'u', sessionAddress: 'NQ07\u2028User: v' }]) {
    expect(() => challengeMessage('Shop', link, lines)).toThrow(TypeError)
  }
})

test.each([
  '\n',
  '\r',
  '\0',
  '\t',
  '\u007f',
  '\u0085',
  '\u2028',
  '\u2029',
  '\u202e',
  '\u2066',
  '\u200f',
  '\u061c',
  '\ud800',
])('a value with %j is refused', (character) => {
  expect(() => requirePlainLine('display_title', `a${character}b`)).toThrow(
    expect.objectContaining({ reason: 'INVALID_REQUEST', message: expect.stringContaining('display_title') }),
  )
})

test('no accepted value can forge a line', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (title) => {
      const make = () =>
        challengeMessage('A', challenge, { orderId: 'o', kind: 'login', displayTitle: title, confirmationCode: '1' })
      if (!isPlainLine(title)) expect(make).toThrow(TypeError)
      else expect(make().split(/[\n\r\u0085\u2028\u2029]/u)).toHaveLength(11)
    }),
    { numRuns: 2000 },
  )
})

test('letters of all scripts and emoji are fine', () => {
  for (const text of ['Zürich', '東京', 'שלום', 'سلام', '👩‍👩‍👧 ☕️', '']) expect(isPlainLine(text)).toBe(true)
})
