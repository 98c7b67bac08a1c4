import fc from 'fast-check'
import { expect, test } from 'vitest'
import { equalInConstantTime, hashToken, Keyring, newId, newToken, tokenFromBytes, tokenMatches } from '../src/token.ts'

test('a token is 256 bits in base64url behind the prefix of its kind', () => {
  expect(newToken('claim')).toMatch(/^csc_[A-Za-z0-9_-]{43}$/)
  expect(newToken('challenge')).toMatch(/^csp_[A-Za-z0-9_-]{43}$/)
  expect(newToken('desktop')).toMatch(/^csd_[A-Za-z0-9_-]{43}$/)
  expect(newToken('session')).toMatch(/^css_[A-Za-z0-9_-]{43}$/)
  expect(new Set(Array.from({ length: 1000 }, () => newToken('claim'))).size).toBe(1000)
  expect(new Set(Array.from({ length: 1000 }, newId)).size).toBe(1000)
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

test('the first secret signs, all verify, others do not', () => {
  const old = new Keyring(['old'.repeat(11)])
  const rotated = new Keyring(['new'.repeat(11), 'old'.repeat(11)])
  const signature = old.sign('session token', 'text')
  expect(rotated.verify('session token', 'text', signature)).toBe(true)
  expect(old.verify('session token', 'text', rotated.sign('session token', 'text'))).toBe(false)
  expect(rotated.verify('session token', 'texu', signature)).toBe(false)
  expect(rotated.verify('session token', 'text', `${signature}A`)).toBe(false)
})

test('what is derived differs by secret, purpose and parts, however the parts are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 4 }), fc.array(fc.string(), { maxLength: 4 }), (a, b) => {
      const keyring = new Keyring(['x'.repeat(32), 'y'.repeat(32)])
      const [first, second] = keyring.derive('challenge token', a)
      expect(first).not.toEqual(second)
      expect(keyring.derive('finalize seed', a)[0]).not.toEqual(first)
      expect(Buffer.compare(keyring.derive('challenge token', b)[0], first) === 0).toBe(
        JSON.stringify(a) === JSON.stringify(b),
      )
    }),
  )
})
