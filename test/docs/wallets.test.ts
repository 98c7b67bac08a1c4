import { expect, test } from 'vitest'
import { CountersignWallets } from '../../src/browser/wallets/index.ts'
import { readFromRoot } from '../support/repository.ts'
import { expectNamedTests } from './named-tests.ts'

const page = await readFromRoot('docs/wallets.md')

test("docs/wallets.md describes the element's properties, all of them", () => {
  const [table = ''] = /\| property of the element[\s\S]*?\n\n/.exec(page) ?? []
  const described = [...table.matchAll(/`(\w+)`(?=[^|]*\|)/g)].map(([, name]) => name)
  const properties = Object.entries(Object.getOwnPropertyDescriptors(CountersignWallets.prototype))
    .filter(([, { set }]) => set !== undefined)
    .map(([name]) => name)
  for (const name of properties) expect(described).toContain(name)
})

test('every wallet says what is not proven without a device', () => {
  const rows = page.split('\n').filter((line) => /^\| .* \|.*\|.*\|.*\|.*\|.*\|$/.test(line))
  expect(rows.length).toBeGreaterThan(10)
  for (const row of rows.slice(1, -1)) expect(row.split(' | ').at(-1)?.length, row).toBeGreaterThan(5)
})

test('what is said about accounts with code names the tests that show it', () => {
  const [section = ''] = /^## Ethereum accounts with code[\s\S]*?(?=^## )/m.exec(page) ?? []
  const [, path] = /shown by `([^`]+)`/.exec(section) ?? []
  const named = [...section.matchAll(/\| "([^"]+)" \|$/gm)].map(([, name]) => `\`${path}\`: "${name}"`)
  expect(expectNamedTests(named.join('\n'))).toBe(5)
})
