import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { rememberIn } from '../../examples/approvals/once.ts'
import { createApprovals } from '../../src/integrations/approvals/index.ts'
import { startApprovals, TestUser } from '../integrations/approvals/support.ts'
import { run } from '../support/command.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { spawnService } from '../support/service.ts'
import { withSources } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { blocksOf } from './blocks.ts'

const page = await readFromRoot('docs/approvals.md')
const blocks = blocksOf(page)

function codeIn(language: string): string {
  const code = blocks.find((block) => block.language === language)?.text
  if (code === undefined) throw new Error(`docs/approvals.md has no code in ${language}`)
  return code
}

async function makeFolder(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = temporaryFolder()
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return folder
}

/**
 * Runs a program of the page, which prints the link as its first line. The user then decides. Resolves with the rest.
 */
async function runWith(
  command: readonly [string, ...string[]],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
  decide: 'approve' | 'reject',
): Promise<string> {
  const { url, startKey, user } = await startApprovals()
  const [program, ...args] = command
  const { publicKeyHex } = user.wallet
  const own = { SIGN_URL: url, START_KEY: startKey, USER_ID: user.id, PUBLIC_KEY: publicKeyHex }
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...own, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill())
  const closed = once(child, 'close')
  const lines: string[] = []
  for await (const line of createInterface(child.stdout)) {
    if (lines.push(line) !== 1) continue
    const [, orderId = ''] = /^Approve at http\S+\/inbox\?order=([\w-]+)$/.exec(line) ?? []
    if (decide === 'approve') await user.approve(orderId)
    else await user.reject(orderId)
  }
  await closed
  return lines.slice(1).join('\n')
}

/** The environment that the settings of the page make, typed into a shell, for a service at this address. */
async function settingsOf(url: string): Promise<Record<string, string>> {
  const settings = codeIn('sh').replaceAll('https://sign.example', url)
  const { stdout } = await run('sh', ['-c', `set -a\n${settings}\nenv`])
  const entries = stdout.split('\n').map((line) => /^(START_KEY|COUNTERSIGN_\w+)=(.*)$/.exec(line)?.slice(1) ?? [])
  return Object.fromEntries(entries.filter(({ length }) => length > 0))
}

test('the steps of the page, in their order, delete what was signed, and nothing once the user has declined', async () => {
  const port = String(await freePort())
  const environment = await settingsOf(`http://localhost:${port}`)
  expect(environment.COUNTERSIGN_ORDER_START_KEYS).toBe(`deploy-agent=${environment.START_KEY}`)
  const { START_KEY: startKey, ...settings } = environment
  const { url } = await spawnService({
    ...settings,
    PORT: port,
    HOST: 'localhost',
    COUNTERSIGN_STORE: 'sqlite::memory:',
  })
  const user = await TestUser.signIn(url)
  const deleted: string[] = []
  const sent: string[] = []
  const application = {
    userOf: () => ({ userId: user.id, wallets: user.wallets }),
    sendLink: (_account: string, link: string) => void sent.push(link),
    deleteRepository: (name: string) => void deleted.push(name),
  }
  Object.assign(globalThis, { yourApplication: application })
  onTestFinished(() => void Reflect.deleteProperty(globalThis, 'yourApplication'))
  const folder = await makeFolder({
    'tool.ts': withSources(codeIn('ts')),
    'your-application.ts': 'export const { userOf, sendLink, deleteRepository } = globalThis.yourApplication',
  })
  process.env.SIGN_URL = url
  process.env.START_KEY = startKey
  onTestFinished(() => {
    delete process.env.SIGN_URL
    delete process.env.START_KEY
  })
  const { askToDelete } = await import(join(folder, 'tool.ts'))
  const orderOf = async (index: number): Promise<string> => {
    await expect.poll(() => sent[index]).toBeDefined()
    return new URL(sent[index]!).searchParams.get('order') ?? ''
  }

  const first = askToDelete('ada', 'archive')
  await user.approve(await orderOf(0))
  expect(await first).toBe('Deleted archive')
  const second = askToDelete('ada', 'website')
  await user.reject(await orderOf(1))
  expect(await second).toBe('Not deleted: declined')
  expect(await askToDelete('ada', 'a\nb')).toBe('Not deleted: ACTION_INVALID')
  expect(deleted).toEqual(['archive'])
})

test('the step of examples/approvals gives an approval out once, to two backends with one database', async () => {
  const { url, startKey, user } = await startApprovals()
  using database = new DatabaseSync(':memory:')
  const example = join(root, 'examples/approvals/once.ts')
  database.exec(/create table .*/.exec(await readFile(example, 'utf8'))![0])
  const query = async (text: string, values: unknown[]) => {
    const { changes } = database.prepare(text.replaceAll('$', '?')).run(...(values as (string | number)[]))
    return { rowCount: Number(changes) }
  }
  const options = { url, startKey, appName: 'Example', origin: 'https://app.example', remember: rememberIn(query) }
  const [one, two] = [createApprovals(options), createApprovals(options)]
  const approval = await one.ask({ userId: user.id, wallets: user.wallets, title: 'Delete', action: {} })
  await user.approve(approval.id)
  expect(await approval.decision()).toMatchObject({ approved: true })
  const again = await two.resume(approval.handle)
  await expect(again.decision()).rejects.toMatchObject({ reason: 'ALREADY_USED' })
  expect(database.prepare('select order_id from given_out').all()).toEqual([{ order_id: approval.id }])
})

test('the page names every reason', async () => {
  const source = await readFromRoot('src/integrations/approvals/error.ts')
  const reasons = [...source.matchAll(/^ {2}\| '(\w+)'$/gm)].map(([, reason]) => reason)
  expect(reasons).toHaveLength(8)
  for (const reason of reasons) expect(page).toMatch(new RegExp(`^\\|[^|]*\`${reason}\``, 'm'))
})

test.skipIf(!hasPart('python3-cryptography')).each([
  ['approve', 'Deleting archive'],
  ['reject', 'Declined'],
] as const)('the Python of the examples: %s', async (decide, said) => {
  const folder = await makeFolder()
  for (const name of ['approve.py', 'proof.py']) await cp(join(root, 'examples/python', name), join(folder, name))
  const env = { PYTHONDONTWRITEBYTECODE: '1' }
  expect(await runWith([systemPython, 'approve.py'], { cwd: folder, env }, decide)).toBe(said)
})

test.skipIf(!hasPart('go'))(
  'the Go of the examples',
  async () => {
    const folder = await makeFolder({ 'go.mod': 'module approve\n\ngo 1.19\n' })
    await cp(join(root, 'examples/go/approve/main.go'), join(folder, 'main.go'))
    await mkdir(join(folder, 'proof'))
    await cp(join(root, 'examples/go/proof.go'), join(folder, 'proof/proof.go'))
    const env = { GOFLAGS: '-mod=mod', GOPROXY: 'off', GOCACHE: join(folder, 'cache') }
    const options = { cwd: folder, env: { ...process.env, ...env }, timeout: 300_000 }
    await run('go', ['build', '-o', 'approve', '.'], options)
    expect(await runWith([join(folder, 'approve')], { cwd: folder }, 'approve')).toBe('true <nil>')
    expect(await runWith([join(folder, 'approve')], { cwd: folder }, 'reject')).toBe('false <nil>')
  },
  330_000,
)
