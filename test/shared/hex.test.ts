import { expect, test } from 'vitest'
import { bytesToHex, hexToBytes } from '../../src/shared/hex.ts'

test('hex is read in either case', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, value) => value)
  expect(hexToBytes(bytesToHex(bytes))).toEqual(bytes)
  expect(hexToBytes(bytesToHex(bytes).toUpperCase())).toEqual(bytes)
  expect(hexToBytes('')).toEqual(new Uint8Array())
})

test('every other character is refused, in either place of a byte, and so is half a byte', () => {
  // Of some, such as U+0130, the low byte is a digit.
  const others = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).filter(
    (character) => !/[0-9a-fA-F]/.test(character),
  )
  const texts = others.flatMap((character) => [`${character}0`, `0${character}`])
  expect(texts.filter((text) => hexToBytes(text) !== undefined)).toEqual([])
  expect(hexToBytes('abc')).toBeUndefined()
})
