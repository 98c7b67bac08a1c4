import { expect, test } from 'vitest'
import { bytesToHex, hexToBytes } from '../../src/shared/hex.ts'

test('hex is read in either case', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, value) => value)
  expect(hexToBytes(bytesToHex(bytes))).toEqual(bytes)
  expect(hexToBytes(bytesToHex(bytes).toUpperCase())).toEqual(bytes)
  expect(hexToBytes('')).toEqual(new Uint8Array())
})

test('every other character is refused, in either place of a byte, and so is half a byte', () => {
  for (let code = 0; code <= 0xffff; code++) {
    const character = String.fromCharCode(code)
    if (/[0-9a-fA-F]/.test(character)) continue
    // Of some, such as U+0130, the low byte is a digit.
    expect(hexToBytes(`${character}0`), `U+${code.toString(16)}`).toBeUndefined()
    expect(hexToBytes(`0${character}`), `U+${code.toString(16)}`).toBeUndefined()
  }
  expect(hexToBytes('abc')).toBeUndefined()
})
