import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  equalInConstantTime,
  hashToken,
  Keyring,
  newId,
  newToken,
  randomText,
  tokenFromBytes,
  tokenMatches,
} from '../../src/base/token.ts'

test('a token is 256 bits in base64url behind the prefix of its kind', () => {
  expect(newToken('claim')).toMatch(/^csc_[A-Za-z0-9_-]{43}$/)
  expect(newToken('challenge')).toMatch(/^csp_[A-Za-z0-9_-]{43}$/)
  expect(newToken('desktop')).toMatch(/^csd_[A-Za-z0-9_-]{43}$/)
  expect(newToken('session')).toMatch(/^css_[A-Za-z0-9_-]{43}$/)
  expect(new Set(Array.from({ length: 1000 }, () => newToken('claim'))).size).toBe(1000)
  expect(new Set(Array.from({ length: 1000 }, newId)).size).toBe(1000)
})

test('a signature is HMAC-SHA-256 (RFC 2104) of the purpose and the text with its length, in base64url', () => {
  for (const secret of ['k', 'a secret '.repeat(4), 'ü€🔑'.repeat(40)]) {
    for (const text of ['', 'css_', 'ü€', 'x'.repeat(1000)]) {
      const input = `countersign:v1:session token\n${Buffer.byteLength(text)}:${text}`
      const mac = createHmac('sha256', secret).update(input).digest('base64url')
      expect(new Keyring([secret]).sign('session token', text)).toBe(mac)
      const [derived] = new Keyring([secret]).derive('session token', [text])
      expect(Buffer.from(derived).toString('base64url')).toBe(mac)
    }
  }
})

test('only 32 bytes make a token', () => {
  expect(() => tokenFromBytes('session', new Uint8Array(16))).toThrow(TypeError)
})

test('a token matches its own hash and no other', () => {
  const token = newToken('desktop')
  expect(tokenMatches(token, hashToken(token))).toBe(true)
  expect(tokenMatches(token, hashToken(newToken('desktop')))).toBe(false)
  expect(tokenMatches(token, '')).toBe(false)
  expect(equalInConstantTime('a', 'ab')).toBe(false)
})

test('nothing is signed or verified without a secret', () => {
  expect(() => new Keyring([])).toThrow(TypeError)
})

test('the first secret signs, all verify, others do not', () => {
  const old = new Keyring(['old'.repeat(11)])
  const rotated = new Keyring(['new'.repeat(11), 'old'.repeat(11)])
  const signature = old.sign('session token', 'text')
  expect(rotated.verify('session token', 'text', signature)).toBe(true)
  expect(old.verify('session token', 'text', rotated.sign('session token', 'text'))).toBe(false)
  expect(rotated.verify('session token', 'texu', signature)).toBe(false)
  expect(rotated.verify('session token', 'text', `${signature}A`)).toBe(false)
})

test('what is derived differs by secret and purpose', () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 4 }), (parts) => {
      const keyring = new Keyring(['x'.repeat(32), 'y'.repeat(32)])
      const [first, second] = keyring.derive('challenge token', parts)
      expect(first).not.toEqual(second)
      expect(keyring.derive('finalize seed', parts)[0]).not.toEqual(first)
      expect(keyring.derive('challenge token', parts)).toEqual([first, second])
    }),
  )
})

const derived = (parts: readonly string[]): string =>
  Buffer.from(new Keyring(['x'.repeat(32)]).derive('challenge token', parts)[0]).toString('hex')

test.each([
  { joined: 'one after the other', lists: [['ab', 'c'], ['a', 'bc'], ['abc'], ['', 'abc'], ['abc', '']] },
  { joined: 'by a line break', lists: [['a', 'b'], ['a\nb'], ['a\nb', '']] },
  { joined: 'by a line break and a length', lists: [['a', 'b'], ['a\n1:b'], ['1:a\n1:b']] },
  { joined: 'by a length alone', lists: [['a', 'b'], ['a1b'], ['a1:b'], ['1', 'a1', 'b']] },
  { joined: 'by a NUL', lists: [['a', 'b'], ['a\0b']] },
  { joined: 'by a comma', lists: [['a', 'b'], ['a,b'], ['a","b']] },
  { joined: 'by a length that nothing ends', lists: [['1', '', 'abcdefghi'], ['09abcdefghi']] },
  { joined: 'as nothing', lists: [[], [''], ['', '']] },
])('lists of parts that are equal $joined make different tokens', ({ lists }) => {
  expect(new Set(lists.map(derived)).size).toBe(lists.length)
})

test('however a text is cut into parts, no two cuts make the same token', () => {
  const text = fc.stringMatching(/^[a1:\n\u00e9]{1,12}$/u)
  const cutPoints = fc.uniqueArray(fc.nat({ max: 12 }), { maxLength: 3 })
  const cut = (whole: string, at: readonly number[]): string[] => {
    const edges = [0, ...at.map((index) => Math.min(index, whole.length)).sort((a, b) => a - b), whole.length]
    return edges.slice(1).map((end, index) => whole.slice(edges[index], end))
  }
  fc.assert(
    fc.property(text, cutPoints, cutPoints, (whole, one, two) => {
      const [a, b] = [cut(whole, one), cut(whole, two)]
      // Joined, both are the same text, so nothing but where they are cut can tell them apart.
      expect(a.join('')).toBe(b.join(''))
      expect(derived(a) === derived(b)).toBe(JSON.stringify(a) === JSON.stringify(b))
    }),
    { numRuns: 1000 },
  )
})

test('random texts of all lengths are used once, also where the pool of random bytes is filled again', () => {
  const texts = Array.from({ length: 2000 }, (_, index) => randomText(index % 2 === 0 ? 16 : 32))
  expect(texts.map((text) => Buffer.from(text, 'base64url').length)).toEqual(
    Array.from({ length: 2000 }, (_, index) => (index % 2 === 0 ? 16 : 32)),
  )
  // No eight bytes in a row come twice, as they would if bytes were taken again, nor zeros, as after they are wiped.
  const pieces = texts.flatMap((text) => Buffer.from(text, 'base64url').toString('hex').match(/.{16}/g) ?? [])
  expect(new Set(pieces).size).toBe(pieces.length)
  expect(pieces).not.toContain('0'.repeat(16))
  expect(randomText(4096)).toHaveLength(5462)
})
