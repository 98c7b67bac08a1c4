import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { BetterAuthPlugin } from 'better-auth'
import { siwe } from 'better-auth/plugins'
import { type Hex, verifyMessage } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'
import { expect, test } from 'vitest'
import { endpoints } from '../../scripts/docs/services.ts'
import { call } from '../better-auth/calls.ts'
import { type Auth, makeAuth } from '../better-auth/support.ts'
import { run } from '../support/command.ts'
import { startChain } from '../support/evm.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, withSources, workFolder } from '../support/snippets.ts'
import vectors from '../vectors/ethereum.json' with { type: 'json' }
import { blocksOf, type CodeBlock } from './blocks.ts'

const page = await readFromRoot('docs/migration.md')
const blocks = blocksOf(page)
const [exportWallets = '', moveAccounts = ''] = textsOf('sql')
const [inPage = '', inBackend = '', inAuthJs = '', inBetterAuth = ''] = textsOf('diff').map(afterChange)

function textsOf(language: string): string[] {
  return blocks.filter((block: CodeBlock) => block.language === language).map(({ text }) => text)
}

/** The lines of a diff that stay or are added. */
function afterChange(diff: string): string {
  const lines = diff.split('\n').filter((line) => !line.startsWith('-'))
  return lines.map((line) => line.slice(1)).join('\n')
}

function newAccount(): PrivateKeyAccount {
  return privateKeyToAccount(generatePrivateKey())
}

async function signIn(
  ask: (path: string, body: unknown) => Promise<{ readonly json: Answered }>,
  account: PrivateKeyAccount,
  { address = account.address as string, chainId = '1' } = {},
) {
  const named = { adapterId: 'ethereum', address, chainId }
  const { json } = await ask('/wallet/nonce', named)
  const signatureHex = (await account.signMessage({ message: json.message })).slice(2)
  return (await ask('/wallet/verify', { ...named, nonceId: json.nonceId, publicKeyHex: '', signatureHex })).json
}

// biome-ignore lint/suspicious/noExplicitAny: the tests look at fields that they name.
type Answered = any

test('every code block of docs/migration.md is used by a test below', () => {
  expect(blocks.map(({ language }) => language)).toEqual(['sql', 'sh', 'diff', 'diff', 'diff', 'diff', 'sql'])
})

/** A store into which the page's commands have imported the users of an application, and a service on it. */
async function imported(accounts: readonly PrivateKeyAccount[]) {
  const folder = await workFolder()
  const application = new DatabaseSync(':memory:')
  application.exec('CREATE TABLE users (id INTEGER, address TEXT)')
  const insert = application.prepare('INSERT INTO users VALUES (?, ?)')
  // As other back ends keep them: a row for each chain, and addresses as the wallets wrote them.
  for (const [index, { address }] of accounts.entries()) {
    for (const written of [address, address.toLowerCase()]) insert.run(index + 1, written)
  }
  const rows = application.prepare(exportWallets).all()
  application.close()
  await writeFile(join(folder, 'users.jsonl'), rows.map((row) => `${Object.values(row)[0]}\n`).join(''))
  const store = `sqlite:${join(folder, 'countersign.db')}`
  const { url } = await startService({ store, adapters: ['ethereum'] })
  const [command] = await executedSnippets('docs/migration.md')
  const env = { NODE: process.execPath, MAIN: join(root, 'src/main.ts'), COUNTERSIGN_STORE: store }
  const script = `set -e\ncountersign() { "$NODE" "$MAIN" "$@"; }\n${command?.code}`
  // A second time changes nothing.
  for (const added of [accounts.length, 0]) {
    const { stdout, stderr } = await run('sh', ['-c', script], { cwd: folder, env })
    expect([stderr, Number(/(\d+) of them new/.exec(stdout)?.[1])], stdout).toEqual(['', added])
  }
  return url
}

test('people who come from another back end sign in as the users that they were there', async () => {
  const accounts = [newAccount(), newAccount()]
  const url = await imported(accounts)
  for (const [index, account] of accounts.entries()) {
    const { session } = await signIn((path, body) => rest(url, path, body), account)
    expect(session).toMatchObject({ userId: String(index + 1), address: account.address })
  }
  const { session } = await signIn((path, body) => rest(url, path, body), newAccount())
  expect(session.userId).toMatch(/^usr_/)
})

test("the page signs in, and the back end's guard finds the imported user", async () => {
  const key = generatePrivateKey()
  const account = privateKeyToAccount(key)
  const url = await imported([account])
  const folder = await workFolder()
  const program = `
import express from 'express'
import { privateKeyToAccount } from 'viem/accounts'
import { MapStorage } from '${join(root, 'test/browser/client/support.ts')}'

for (const [name, value] of Object.entries({ location: new URL('${url}'), localStorage: new MapStorage() })) {
  Object.defineProperty(globalThis, name, { value })
}
// As in a browser, addresses begin with that of the page.
const { fetch } = globalThis
globalThis.fetch = (input, init) => fetch(input instanceof Request ? input : new URL(input, location.href), init)
const account = privateKeyToAccount('${key}')
const answers = {
  eth_requestAccounts: () => [account.address],
  eth_accounts: () => [account.address],
  eth_chainId: () => '0x1',
  personal_sign: ([message]) => account.signMessage({ message: { raw: message } }),
}
const provider = { request: async ({ method, params }) => answers[method](params) }
${inPage}
const app = express()
const ordersOf = async (userId) => ['the orders of ' + userId]
${inBackend.replace('http://localhost:8080', url)}
const server = app.listen(0, 'localhost', async () => {
  const address = 'http://localhost:' + server.address().port + '/orders'
  const signedIn = { headers: { authorization: 'Bearer ' + client.readStoredToken() } }
  const answers = [await fetch(address), await fetch(address, signedIn)]
  console.log(JSON.stringify(await Promise.all(answers.map(async (answer) => [answer.status, await answer.json()]))))
  process.exit()
})
`
  await writeFile(join(folder, 'program.ts'), withSources(program))
  const { stdout } = await run(process.execPath, [join(folder, 'program.ts')])
  expect(JSON.parse(stdout)).toEqual([
    [401, expect.objectContaining({ code: 'SESSION_REQUIRED' })],
    [200, ['the orders of 1']],
  ])
})

test('the lines for Auth.js are those of the application that signs in at the issuer in test/oidc', async () => {
  const application = await readFromRoot('examples/oidc/auth-js.mjs')
  const lines = inAuthJs.split('\n').map((line) => line.trim())
  expect(lines.length).toBeGreaterThan(10)
  for (const line of lines) expect(application).toContain(line)
})

test("users of Better Auth's siwe plugin stay who they are, and signed in", async () => {
  expect(inBetterAuth).toContain("walletSignIn({ appName: 'Tulip Shop', adapters: ['ethereum'] })")
  const database = new DatabaseSync(':memory:')
  const storage = async () => ({ database })
  const plugin: BetterAuthPlugin = siwe({
    domain: 'localhost:3000',
    getNonce: async () => 'abcdefgh12345678',
    verifyMessage: async ({ message, signature, address }) =>
      await verifyMessage({ message, signature: signature as Hex, address: address as Hex }),
  })
  const plugins = [plugin] as never
  const before = await makeAuth({ storage, auth: { plugins } })
  const accounts = [newAccount(), newAccount()]
  const signedIn = []
  for (const account of accounts) {
    // On two chains: two rows of Better Auth.
    for (const chainId of [1, 10]) signedIn.push(await signInBefore(before, account, chainId))
  }
  const after = await makeAuth({ storage, wallet: { appName: 'Tulip Shop', adapters: ['ethereum'] } })
  database.exec(moveAccounts)
  for (const [index, account] of accounts.entries()) {
    const { session } = await signIn((path, body) => call(after, path, body), account)
    expect(session.userId).toBe(signedIn[2 * index]?.userId)
    const { internalAdapter } = await after.$context
    expect(await internalAdapter.findAccounts(session.userId)).toMatchObject([
      { providerId: 'ethereum', accountId: account.address.toLowerCase() },
    ])
  }
  for (const { token, userId } of signedIn) {
    const { json } = await call(after, '/get-session', undefined, { authorization: `Bearer ${token}` })
    expect(json.user.id).toBe(userId)
  }
})

/** Signs in at Better Auth's own plugin. */
async function signInBefore(auth: Auth, account: PrivateKeyAccount, chainId: number) {
  const { nonce } = (await call(auth, '/siwe/nonce', {})).json
  const uri = 'http://localhost:3000'
  const message = createSiweMessage({
    address: account.address,
    chainId,
    domain: 'localhost:3000',
    nonce,
    uri,
    version: '1',
  })
  const signature = await account.signMessage({ message })
  const { headers, json } = await call(auth, '/siwe/verify', { message, signature })
  return { token: headers.get('set-auth-token') ?? '', userId: String(json.user.id) }
}

test('the calls of the last column are served', () => {
  const rows = [...page.matchAll(/^\| .* \| `(GET|POST) \/api\/auth(\S+)` \|$/gm)].map(([, method, path]) => [
    method,
    path,
  ])
  expect(rows).toHaveLength(4)
  for (const [httpMethod, path] of rows) expect(endpoints).toContainEqual(expect.objectContaining({ httpMethod, path }))
})

test('a key is the user on every chain, a contract wallet on its own; one wallet of two users is refused', async () => {
  const folder = await workFolder()
  const chain = await startChain()
  const contract = await chain.deploy(vectors.contract.runtime)
  const [owner, account] = [privateKeyToAccount(vectors.contract.ownerPrivateKey as Hex), newAccount()]
  const store = `sqlite:${join(folder, 'countersign.db')}`
  const { url } = await startService({ store, adapters: ['ethereum'], evmRpc: { 1: chain.url } })
  const importLines = async (...lines: readonly (readonly [wallet: string, userId: string])[]) => {
    const text = lines.map(([wallet, userId]) => `${JSON.stringify({ wallet, user_id: userId })}\n`).join('')
    await writeFile(join(folder, 'users.jsonl'), text)
    const args = [join(root, 'src/main.ts'), 'admin', 'import', join(folder, 'users.jsonl')]
    await run(process.execPath, args, { env: { COUNTERSIGN_STORE: store, COUNTERSIGN_ADAPTERS: 'ethereum' } })
  }
  const wallet = `ethereum:${account.address}`
  await expect(importLines([wallet, '1'], [wallet.toLowerCase(), '2'])).rejects.toThrow('line 2')
  await importLines([wallet, '1'], [`ethereum:eip155:1:${contract}`, '2'])
  const ask = (path: string, body: unknown) => rest(url, path, body)
  expect((await signIn(ask, account, { chainId: '10' })).session.userId).toBe('1')
  expect((await signIn(ask, owner, { address: contract })).session.userId).toBe('2')
})
