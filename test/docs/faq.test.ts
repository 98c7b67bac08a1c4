import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCountersignClient } from '../../src/browser/client/index.ts'
import { createCountersign } from '../../src/index.ts'
import { optionsFromEnvironment } from '../../src/service/config.ts'
import { MapStorage } from '../browser/client/support.ts'
import { run } from '../support/command.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'
import { blocksOf, type CodeBlock } from './blocks.ts'
import { phone } from './phone.ts'

const page = await readFromRoot('docs/faq.md')

/** What a page says under a heading, which the common questions lead to. */
async function answer(path: string, heading: string): Promise<string> {
  const [, after = expect.fail(`there is no heading ${heading}`)] = (await readFromRoot(path)).split(`## ${heading}\n`)
  return after.split(/^##/m)[0] ?? ''
}

/** The code blocks of an answer. */
async function blocks(path: string, heading: string): Promise<[CodeBlock, ...CodeBlock[]]> {
  return blocksOf(await answer(path, heading)) as [CodeBlock, ...CodeBlock[]]
}

const [list, command, shown] = await blocks('docs/operations.md', 'Origins')

/** What a block of settings sets. */
function variablesOf({ text }: CodeBlock): Record<string, string> {
  const lines = text.matchAll(/^(?:export )?([A-Z_]+)=(\S+)$/gm)
  return Object.fromEntries([...lines].map(([, name, value]) => [name, value]))
}

test('every heading of the page is linked from its questions', () => {
  const headings = [...page.matchAll(/^## (.+)$/gm)].map(([, text = '']) => text.toLowerCase().replaceAll(' ', '-'))
  const links = [...page.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor]) => anchor)
  expect(headings.length).toBeGreaterThan(1)
  expect(links.toSorted()).toEqual(headings.toSorted())
})

describe('origins', () => {
  test('the list replaces the default, and each entry is compared as a whole', async () => {
    const { url } = await startService(optionsFromEnvironment(variablesOf(list)))
    const nonceFor = async (origin: string) => (await rest(url, '/wallet/nonce', {}, { origin })).status
    expect(await nonceFor('https://auth.shop.example')).toBe(200)
    expect(await nonceFor('https://www.shop.example')).toBe(200)
    expect(await nonceFor('https://evil.shop.example')).toBe(403)
    const { url: other } = await startService({
      publicUrl: 'https://auth.shop.example',
      trustedOrigins: ['https://www.shop.example'],
    })
    expect((await rest(other, '/wallet/nonce', {}, { origin: 'https://auth.shop.example' })).status).toBe(403)
    await expect(createCountersign({ trustedOrigins: ['https://*.shop.example'] })).rejects.toThrow('trustedOrigins')
  })

  test('every list of a page has the service’s own origin, but for the one that doctor finds', async () => {
    const folder = join(root, 'docs')
    const leftOut: string[] = []
    for (const name of (await readdir(folder)).filter((file) => file.endsWith('.md'))) {
      for (const block of blocksOf(await readFile(join(folder, name), 'utf8'))) {
        const { COUNTERSIGN_PUBLIC_URL: own, COUNTERSIGN_TRUSTED_ORIGINS: list } = variablesOf(block)
        if (list !== undefined && !list.split(',').includes(String(own))) leftOut.push(name)
      }
    }
    expect(leftOut).toEqual(['doctor.md'])
  })

  test.each([
    ['with the settings of the page', variablesOf(list)],
    ['without settings', {}],
  ])('the refusal says what the page shows, %s', async (_name, variables) => {
    const { url } = await startService(optionsFromEnvironment(variables))
    const { stdout } = await run('sh', ['-c', command!.text.replace('http://localhost:8080', url)])
    expect(JSON.parse(stdout)).toEqual(JSON.parse(shown!.text))
  })

  test('without an Origin header, the refusal names the Host header and the setting for proxies', async () => {
    const { url } = await startService({ publicUrl: 'https://auth.shop.example' })
    const { json } = await rest(url, '/wallet/nonce', {})
    expect(json).toMatchObject({
      code: 'ORIGIN_NOT_TRUSTED',
      message: expect.stringContaining('read from the Host header'),
    })
    expect(json.message).toContain('COUNTERSIGN_TRUST_PROXY')
    expect(await answer('docs/operations.md', 'Origins')).toContain('read from the Host header')
  })
})

test('a user signs out everywhere', async () => {
  const [{ text }] = await blocks('docs/backends.md', 'How long a session lives')
  const { url } = await startService()
  const wallet = makeWallet()
  const tokens = [(await signIn(url, wallet)).json.token, (await signIn(url, wallet)).json.token]
  const storage = new MapStorage()
  const client = createCountersignClient({ baseUrl: url, storage })
  await client.signInWallet({
    wallet: { sign: async (message) => ({ ...wallet, signatureHex: wallet.sign(message) }) },
  })
  tokens.push(storage.getItem('countersign.token'))
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor
  await new AsyncFunction('client', text)(client)
  expect(tokens).toHaveLength(3)
  for (const token of tokens) {
    expect((await rest(url, '/session', undefined, { authorization: `Bearer ${token}` })).status).toBe(401)
  }
})

test('the table names every field about a person that is stored after a sign-in by each way', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'a.db')
  const { url } = await startService({ store: `sqlite:${file}` })
  await signIn(url, makeWallet(), { 'user-agent': 'A browser' })
  const client = createCountersignClient({ baseUrl: url, storage: new MapStorage() })
  const order = await client.startOrder({ kind: 'login' })
  await phone(order.claimUrl)
  await client.finalizeOrder(order)

  const database = new DatabaseSync(file, { readOnly: true })
  onTestFinished(() => database.close())
  const values = database.prepare('SELECT key, value FROM entries').all() as { key: string; value: string }[]
  const table = await answer('docs/faq.md', 'What is stored about users')
  /** Expects the row of a kind of record to name all fields of it but these. */
  const expectNamed = (kind: string, records: Record<string, unknown>[], but: readonly string[]): void => {
    const [row = ''] = new RegExp(`^\\| ${kind} \\|.*$`, 'm').exec(table) ?? []
    expect(records.length, kind).toBeGreaterThan(1)
    for (const name of new Set(records.flatMap(Object.keys))) {
      if (!but.includes(name)) expect(row).toContain(`\`${name}\``)
    }
  }
  const records = (prefix: string) =>
    values.filter(({ key }) => key.startsWith(prefix)).map(({ value }) => JSON.parse(value))
  const users = records('user:')
  expectNamed('user', users, ['v'])
  expectNamed(
    'user',
    users.flatMap(({ wallets }) => wallets),
    ['claim'],
  )
  expectNamed(
    'session',
    records('session:').map(({ session }) => session),
    ['id'],
  )
})

async function signIn(url: string, wallet: TestWallet, headers: Record<string, string> = {}) {
  const { json } = await rest(url, '/wallet/nonce', {}, headers)
  return await rest(url, '/wallet/verify', proofOf(wallet, json), headers)
}
