import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Challenge, challengeMessage } from '../../src/core/challenge-text.ts'
import { isPlainLine, requirePlainLine } from '../../src/shared/plain-line.ts'

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
      order: {
        orderId: 'o',
        kind: 'sign',
        displayTitle: 'Pay',
        displaySummary: '3 tulips',
        confirmationCode: '42',
        payloadHash: 'abc=',
      },
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

const sampleOrder = { orderId: 'o'.repeat(22), kind: 'sign' } as const

test.each([
  ['400 bytes', `{"a":"${'b'.repeat(392)}"}`, true],
  ['401 bytes', `{"a":"${'b'.repeat(393)}"}`, false],
  ['401 bytes in fewer characters', `{"a":"ü${'b'.repeat(391)}"}`, false],
  ['single spaces', '{"a":"b c d"}', true],
  ['two spaces in a row', '{"a":"b  c"}', false],
  ['a space that does not break', '{"a":"b\u00a0c"}', false],
  ['a wide space', '{"a":"b\u3000c"}', false],
  ['a narrow space', '{"a":"b\u202fc"}', false],
])('a payload with %s is a line of the text: %s', (_name, payload, isLine) => {
  const order = { ...sampleOrder, payloadHash: 'h', payload, displayTitle: 'Title' }
  const lines = challengeMessage('Shop', challenge, { order }).split('\n').slice(9)
  expect(lines).toEqual(['Payload Hash: h', ...(isLine ? [`Payload: ${payload}`] : []), 'Title: Title'])
})

test('the longest payload that is a line leaves a text without a summary below 1,024 bytes', () => {
  const whole = {
    ...challenge,
    challengeId: 'c'.repeat(22),
    nonce: 'n'.repeat(43),
    origin: `https://${'a'.repeat(30)}.example`,
  }
  const payload = `{"a":"${'b'.repeat(392)}"}`
  const order = { ...sampleOrder, payload, payloadHash: `sha256:${'h'.repeat(43)}`, displayTitle: 't'.repeat(120) }
  const bytes = (more: object) =>
    Buffer.byteLength(challengeMessage('An application', whole, { order: { ...order, ...more } }))
  expect(bytes({ confirmationCode: '42' })).toBeLessThan(1024)
  expect(bytes({ displayTitle: 't'.repeat(60), displaySummary: 's'.repeat(140) })).toBeLessThan(1024)
  expect(bytes({ displaySummary: 's'.repeat(141) })).toBeGreaterThan(1024)
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
  const user = { userId: 'u 1', sessionAddress: 'NQ07' }
  expect(challengeMessage('Shop', link, { link: user })).toBe(`${common}\nSession Account: NQ07`)
  expect(challengeMessage('Shop', link, { link: { userId: 'u 1' } })).toBe(common)
  for (const lines of [{ userId: 'u\nSession Account: NQ08' }, { userId: 'u', sessionAddress: 'NQ07\u2028User: v' }]) {
    expect(() => challengeMessage('Shop', link, { link: lines })).toThrow(TypeError)
  }
})

test('the text of an order for adding a wallet names both before the order', () => {
  const link: Challenge = { ...challenge, action: 'auth.link' }
  const order = { orderId: 'o', kind: 'link' } as const
  expect(challengeMessage('Shop', link, { order, link: { userId: 'u 1', sessionAddress: 'NQ07' } })).toBe(
    `Shop requests approval
Action: auth.link
Origin: https://app.example
Challenge ID: c
Nonce: n
Issued At: 2026-01-01T00:00:00.000Z
Expires At: 2026-01-01T00:05:00.000Z
User: u 1
Session Account: NQ07
Order ID: o
Kind: link`,
  )
})

test.each([
  ...['\n', '\r', '\0', '\t', '\u007f', '\u0085', '\u2028', '\u2029', '\u202e', '\u2066', '\u200f', '\u061c', '\ud800'],
])('a value with %j is refused', (character) => {
  expect(() => requirePlainLine('display_title', `a${character}b`)).toThrow(
    expect.objectContaining({ reason: 'INVALID_REQUEST', message: expect.stringContaining('display_title') }),
  )
})

/** Characters that show nothing: nearly all default-ignorable ones, and some that are blank. */
test.each([
  ['soft hyphen', '\u00ad'],
  ['combining grapheme joiner', '\u034f'],
  ['Hangul choseong filler', '\u115f'],
  ['Hangul jungseong filler', '\u1160'],
  ['Khmer inherent vowel', '\u17b4'],
  ['Mongolian vowel separator', '\u180e'],
  ['zero width space', '\u200b'],
  ['word joiner', '\u2060'],
  ['invisible times', '\u2062'],
  ['blank Braille pattern', '\u2800'],
  ['Hangul filler', '\u3164'],
  ['variation selector of ideographs', '\u{e0100}'],
  ['variation selector 1', '\ufe00'],
  ['byte order mark', '\ufeff'],
  ['half-width Hangul filler', '\uffa0'],
  ['interlinear annotation', '\ufff9'],
  ['null notehead', '\u{1d159}'],
  ['tag letter', '\u{e0061}'],
])('a value with a %s is refused: it can fill a line and shows nothing', (_name, character) => {
  for (const text of [`a${character}b`, character, `😀${character}`]) expect(isPlainLine(text)).toBe(false)
  expect(() => requirePlainLine('display_title', `a${character}`)).toThrow(
    expect.objectContaining({ reason: 'INVALID_REQUEST', message: expect.stringContaining('invisible') }),
  )
})

/** The default-ignorable characters that texts need, where they need them. */
test.each([
  ['Persian with a zero width non-joiner', 'می\u200cخواهم'],
  ['Hindi with a zero width joiner', 'क्\u200dष'],
  ['Sinhala with a zero width joiner', 'ශ්\u200dරී'],
  ['a family of emoji', '👨\u200d👩\u200d👧\u200d👦'],
  ['a heart as an emoji', '❤\ufe0f'],
  ['a heart as text', '❤\ufe0e'],
  ['a heart on fire', '❤\ufe0f\u200d🔥'],
  ['a woman judge with a skin tone', '👩🏽\u200d⚖\ufe0f'],
  ['a keycap', '1\ufe0f\u20e3 #\ufe0f\u20e3 *\ufe0f\u20e3'],
  ['an exclamation as an emoji', '‼\ufe0f'],
  ['a flag', '🇩🇪'],
  ['Vietnamese, decomposed', 'Việt Nam'.normalize('NFD')],
  ['Hebrew with points and accents', 'בְּרֵאשִׁ֖ית'],
  ['Thai', 'ที่นี่'],
  ['Tibetan', 'རྐྱེན་ཧཱུྃ'],
  ['four combining marks', 'a\u0300\u0301\u0302\u0303'],
])('a value with %s is accepted', (_name, text) => {
  expect(isPlainLine(text)).toBe(true)
})

test.each([
  ['a joiner at the beginning', '\u200da'],
  ['a joiner behind a space', 'a \u200d'],
  ['two joiners', 'a\u200d\u200d'],
  ['two non-joiners', 'می\u200c\u200cخ'],
  ['a row of variation selectors', '❤\ufe0f\ufe0f'],
  ['a variation selector behind a space', 'a \ufe0f'],
  ['selectors and joiners in turn', 'a\ufe0f\u200d\ufe0f\u200d'],
  ['five combining marks', 'a\u0300\u0301\u0302\u0303\u0304'],
  ['five marks that enclose', 'a\u20dd\u20dd\u20dd\u20dd\u20dd'],
])('a value with %s is refused', (_name, text) => {
  expect(isPlainLine(text)).toBe(false)
})

test('no accepted value can forge a line', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (title) => {
      const order = { orderId: 'o', kind: 'login', displayTitle: title, confirmationCode: '1' } as const
      const make = () => challengeMessage('A', challenge, { order })
      if (!isPlainLine(title)) expect(make).toThrow(TypeError)
      else expect(make().split(/[\n\r\u0085\u2028\u2029]/u)).toHaveLength(11)
    }),
    { numRuns: 2000 },
  )
})

test('letters of all scripts and emoji are fine', () => {
  for (const text of ['Zürich', '東京', 'שלום', 'سلام', '👩‍👩‍👧 ☕️', '']) expect(isPlainLine(text)).toBe(true)
})
