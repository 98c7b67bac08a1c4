import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { namedEndpoints, withTables } from '../../scripts/docs.ts'
import { optionRows } from '../../src/config/options.ts'
import { reasons } from '../../src/errors.ts'
import { startService } from '../support/service.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const readme = await readFile(join(root, 'README.md'), 'utf8')

/** The README's snippets that say they are executed. */
const snippets = [...readme.matchAll(/<!-- executed by test\/docs -->\n```(\w+)\n([\s\S]*?)```/g)].map(
  ([, language, code]) => ({ language: language as string, code: code as string }),
)
const [curl, direct, crossDevice] = snippets as [
  (typeof snippets)[number],
  (typeof snippets)[number],
  (typeof snippets)[number],
]

async function workFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-readme-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Runs a TypeScript snippet as a program against a service; `before` stands for what a browser has and Node has not. */
async function runTypeScript(code: string, url: string, before = ''): Promise<{ stdout: string; stderr: string }> {
  const program = `${before}\n${code
    .replaceAll('http://localhost:8080', url)
    .replaceAll("'countersign/client'", JSON.stringify(join(root, 'src/client/index.ts')))}`
  const file = join(await workFolder(), 'snippet.ts')
  await writeFile(file, program)
  return await run(process.execPath, [file])
}

test('there are three', () => expect(snippets.map(({ language }) => language)).toEqual(['sh', 'ts', 'ts']))

test('the curl snippet signs in', async () => {
  const { url } = await startService()
  const folder = await workFolder()
  await cp(join(root, 'examples/curl'), join(folder, 'examples/curl'), { recursive: true })
  const { stdout } = await run('bash', ['-euc', curl.code.replaceAll('http://localhost:8080', url)], {
    cwd: folder,
    env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` },
  })
  expect(JSON.parse(stdout)).toMatchObject({ session: { adapterId: 'ed25519', current: true } })
})

test('the client snippet signs in, with the wallet that a page of Nimiq Pay finds', async () => {
  const { url } = await startService()
  // The provider's answers, as its documentation has them, signed by Nimiq's own library.
  const provider = `
    import { makeWallet } from ${JSON.stringify(join(root, 'test/support/wallet.ts'))}
    const wallet = makeWallet()
    globalThis.window = globalThis
    globalThis.nimiq = {
      listAccounts: async () => [wallet.address],
      sign: async (message) => ({ publicKey: wallet.publicKeyHex, signature: wallet.sign(message) }),
    }`
  const { stdout } = await runTypeScript(direct.code, url, provider)
  expect(stdout).toMatch(/^Signed in as NQ\d\d( [0-9A-Z]{4}){8}\n$/)
})

test('the order snippet goes from created to finalized', async () => {
  const { url } = await startService()
  const { stdout } = await runTypeScript(crossDevice.code, url, havePhoneApprove)
  expect(stdout).toMatch(
    /^Scan \S+ and compare the code \d\d\n(created\n)?(claimed\n)?(waiting_user\n)?approved\nGo to \/\nfinalized\n$/,
  )
})

/** Has a phone approve the order as soon as its claim URL is printed. */
const havePhoneApprove = `
  import { phone } from ${JSON.stringify(join(root, 'test/docs/phone.ts'))}
  const log = console.log
  console.log = (text) => {
    log(text)
    const claimUrl = /^Scan (\\S+)/.exec(text)?.[1]
    if (claimUrl !== undefined) void phone(claimUrl)
  }`

describe('tables', async () => {
  test('are those of the code; if not, run `npm run docs`', () => expect(withTables(readme)).toBe(readme))

  test.each([
    [
      'settings',
      optionRows.flatMap(([option, { variable }]) => (variable === undefined ? [option] : [option, variable])),
    ],
    ['REST calls', await rpcs()],
    ['errors', Object.keys(reasons)],
  ])('the table of %s is written whole', (name, entries) => {
    const place = new RegExp(`(<!-- ${name}: written by npm run docs -->\n\n)([^<]*)(\n<!-- end of ${name} -->\n)`)
    const written = place.exec(withTables(readme.replace(place, '$1$3')))?.[2]
    for (const entry of entries) expect(written).toContain(`\`${entry}\``)
  })

  test('a table without its place is an error, not forgotten', () => {
    expect(() => withTables(readme.replace('<!-- end of errors -->', ''))).toThrow(/no place for the table of errors/)
  })

  test.each(namedEndpoints())('$httpMethod $path is served, by its method alone', async ({ httpMethod, path }) => {
    const { url } = await startService()
    const call = async (method: string) => {
      const response = await fetch(`${url}/api/auth${path}`, { method })
      return ((await response.json()) as { code?: string }).code
    }
    expect(['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED']).not.toContain(await call(httpMethod))
    expect(await call(httpMethod === 'GET' ? 'POST' : 'GET')).toBe('METHOD_NOT_ALLOWED')
  })
})

/** All RPCs as the protos declare them: `Service.Method`. */
async function rpcs(): Promise<string[]> {
  const folder = join(root, 'proto/countersign/v1')
  const protos = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')))
  return protos.flatMap((proto) => {
    const service = /^service (\w+)/m.exec(proto)?.[1]
    return [...proto.matchAll(/^ {2}rpc (\w+)/gm)].map(([, rpc]) => `${service}.${rpc}`)
  })
}

test('the links lead somewhere', async () => {
  for (const [, target] of readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    await expect(run('ls', [join(root, target as string)]), target).resolves.toBeDefined()
  }
})
