import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesToHex, hexToBytes } from '../../../src/shared/hex.ts'

test('hex of either case comes back as the bytes it stands for', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const hex = bytesToHex(bytes)
      expect(hex).toBe(Buffer.from(bytes).toString('hex'))
      expect(hexToBytes(hex)).toEqual(bytes)
      expect(hexToBytes(hex.toUpperCase())).toEqual(bytes)
    }),
  )
})

test.each(['0', '0g', '0x00', ' 00', '00\n', '0 0', '-1', '٠٠', 'ａａ'])('%j is no hex', (text) => {
  expect(hexToBytes(text)).toBeUndefined()
})

test('no text makes it throw', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...'09afAFgG \n') }))
  fc.assert(
    fc.property(text, (input) => {
      const isHex =
        input.length % 2 === 0 && [...input].every((character) => '0123456789abcdefABCDEF'.includes(character))
      expect(hexToBytes(input) !== undefined).toBe(isHex)
    }),
    { numRuns: 2000 },
  )
  expect(hexToBytes('a'.repeat(2 ** 24 + 1))).toBeUndefined()
})
