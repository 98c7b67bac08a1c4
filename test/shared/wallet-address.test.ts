import { expect, test } from 'vitest'
import { isSameAddressText, shortAddress } from '../../src/shared/wallet-address.ts'

const spaced = 'NQ07 0000 0000 0000 0000 0000 0000 0000 0001'
const hex = `0x${'aB'.repeat(20)}`

test.each([
  ['spaces', spaced, spaced.replaceAll(' ', ''), true],
  ['spaces of other kinds', spaced, spaced.replaceAll(' ', '\u00a0'), true],
  ['case', hex, hex.toLowerCase(), true],
  ['a chain that only one text names', `eip155:1:${hex}`, hex, true],
  ['case, with the same chain', `eip155:1:${hex}`, `EIP155:1:${hex.toLowerCase()}`, true],
  ['another chain', `eip155:1:${hex}`, `eip155:10:${hex}`, false],
  ['another address', hex, `${hex.slice(0, -1)}c`, false],
  ['another address of the same chain', `eip155:1:${hex}`, `eip155:1:${hex.slice(0, -1)}c`, false],
])('texts that differ by %s', (_, one, other, isSame) => {
  expect(isSameAddressText(one, other)).toBe(isSame)
  expect(isSameAddressText(other, one)).toBe(isSame)
})

test('the short form has both ends of an address, without its chain', () => {
  expect(shortAddress(spaced)).toBe('NQ07 0000 … 0001')
  expect(shortAddress(`eip155:1:${hex}`)).toBe('0xaBaB … aBaB')
  expect(shortAddress('0x12')).toBe('0x12')
})
