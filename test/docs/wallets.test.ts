import { expect, test } from 'vitest'
import { readFromRoot } from '../support/repository.ts'
import { expectNamedTests } from './named-tests.ts'

const page = await readFromRoot('docs/wallets.md')

test('every wallet says what is not proven without a device', () => {
  const rows = page.split('\n').filter((line) => /^\| .* \|.*\|.*\|.*\|.*\|$/.test(line))
  expect(rows.length).toBeGreaterThan(10)
  for (const row of rows.slice(1, -1)) expect(row.split(' | ').at(-1)?.length, row).toBeGreaterThan(5)
})

/** What the page says of accounts with code, by the tests that show it. */
const shown = [
  'needs no RPC while its key signs, with any code',
  'and with code (EIP-7702) is the identity of the chain if the code answers',
  'nothing is remembered: a contract that changes its mind is believed at once',
  'is the identity of its chain, and is still not deployed afterwards',
  'and with a delegation around its signature (ERC-8010) is refused until the chain has it',
]

test('what is said about accounts with code is what tests show', () => {
  expect(page).toContain('## Ethereum accounts with code')
  const named = shown.map((name) => `\`test/core/wallet/ethereum/contracts.test.ts\`: "${name}"`)
  expect(expectNamedTests(named.join('\n'))).toBe(5)
})
