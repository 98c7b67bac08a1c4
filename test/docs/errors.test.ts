import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readFromRoot, root } from '../support/repository.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, runShell, runTypeScript, workFolder } from '../support/snippets.ts'

const [rest, connect, grpc] = await executedSnippets('docs/errors.md')
/** A program of examples/errors, wherever it is. */
const example = async (name: string): Promise<string> =>
  (await readFromRoot(`examples/errors/${name}.ts`)).replace('../../src', join(root, 'src'))

test('there are three', async () => {
  expect((await executedSnippets('docs/errors.md')).map(({ language }) => language)).toEqual(['sh', 'sh', 'sh'])
})

test.each([
  ['REST', rest],
  ['Connect', connect],
])('%s answers what the page shows', async (_protocol, snippet) => {
  const { url } = await startService()
  const { stdout } = await runShell(snippet?.code ?? '', url)
  expect(JSON.parse(stdout)).toEqual(JSON.parse(snippet?.output ?? ''))
})

test('gRPC and gRPC-Web answer the same as Connect', async () => {
  const { url } = await startService()
  const folder = await workFolder()
  await runShell(grpc?.code ?? '', url, folder)
  const { details, ...shown } = JSON.parse(connect?.output ?? '')
  const [{ debug: _debug, ...detail }] = details
  for (const file of ['grpc.json', 'grpc-web.json']) {
    expect(JSON.parse(await readFile(join(folder, file), 'utf8'))).toEqual({ ...shown, details: [detail] })
  }
})

test("the client's error is told by its code", async () => {
  const { url } = await startService()
  const { stdout } = await runTypeScript(await example('client'), url)
  expect(stdout).toBe('The code is too old: show a new one\n')
})

test('generated code finds the reason and its metadata over gRPC', async () => {
  const { url } = await startService({ appName: 'The tulip shop' })
  const { stdout } = await runTypeScript(await example('generated'), url)
  expect(stdout).toBe('APP_NAME_MISMATCH The tulip shop do not retry\n')
})

test('a bare call over REST waits for as long as the service asks, and then succeeds', async () => {
  const { url } = await startService({ rateLimit: true })
  const nonce = () => fetch(`${url}/api/auth/wallet/nonce`, { method: 'POST' }).then(({ status }) => status)
  while ((await nonce()) === 200);
  const { stdout } = await runTypeScript(`${countRefusals}${await example('rest')}`, url)
  expect(stdout).toMatch(/action: 'auth\.login'/)
  expect(stdout).toMatch(/^refused$/m)
})

/** Keeps the allowance used up at the first try, which a program that takes long to start would find filled again. */
const countRefusals = `
  const fetchOnce = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    globalThis.fetch = fetchOnce
    for (;;) {
      const response = await fetchOnce(input, init)
      if (response.status !== 429) continue
      console.log('refused')
      return response
    }
  }
`
