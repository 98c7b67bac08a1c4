import { createHmac, randomBytes, randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { HmacSha256 } from '../src/hmac.ts'

const texts = [
  '',
  'a',
  'css_',
  'x'.repeat(511),
  'x'.repeat(512),
  'x'.repeat(513),
  'x'.repeat(10_000),
  'ü€🔑'.repeat(90),
  '€'.repeat(171),
  '\ud800 half of a pair \udc00',
  'a zero \0 in it',
]

test('it is node:crypto’s HMAC of SHA-256, for keys and texts of any length', () => {
  for (const length of [1, 31, 32, 63, 64, 65, 128, 1000, ...Array.from({ length: 50 }, () => randomInt(200))]) {
    const key = randomBytes(length)
    const hmac = new HmacSha256(key)
    // By one object and in both orders: what one text leaves behind is in no other one's MAC.
    for (const text of [...texts, ...texts.toReversed()]) {
      expect(hmac.of(text)).toBe(createHmac('sha256', key).update(text).digest('base64url'))
    }
  }
})

test('a random text has the MAC of node:crypto', () => {
  const key = randomBytes(32)
  const hmac = new HmacSha256(key)
  for (let count = 0; count < 2000; count++) {
    const text = randomBytes(randomInt(700)).toString(count % 2 === 0 ? 'latin1' : 'utf8')
    expect(hmac.of(text)).toBe(createHmac('sha256', key).update(text).digest('base64url'))
  }
})
