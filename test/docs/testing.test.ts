import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { makeTestWallet } from '../../src/testing/index.ts'

const read = (path: string): Promise<string> => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

test("the guide's suite is that of the example, which runs in test/types", async () => {
  const example = await read('examples/custom-store/map-store.test.ts')
  const [snippet = ''] = /(?<=```ts\n)import[\s\S]*?(?=```)/.exec(await read('docs/testing.md')) ?? []
  expect(snippet).toContain('describeStoreContract(')
  for (const line of snippet.split('\n')) expect(example.split('\n')).toContain(line)
})

test("the guide's wallet signs", () => {
  const { publicKeyHex, address, sign } = makeTestWallet()
  expect(publicKeyHex).toMatch(/^[0-9a-f]{64}$/)
  expect(address).toMatch(/^NQ\d\d( [0-9A-Z]{4}){8}$/)
  expect(sign('message')).toMatch(/^[0-9a-f]{128}$/)
})
