/**
 * A newcomer's day: clones a commit, types what its README and docs/start.md say, and puts the options for real users in.
 * Prints the minutes that reading takes, at 200 words a minute, beside those of the machine.
 *
 *     node scripts/newcomer-day.ts [commit]
 *
 * Needs git, bash, curl and a registry of npm. The commit is HEAD by default; changes that are not committed do not count.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { blocksOf } from '../test/docs/blocks.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const wordsPerMinute = 200
const commit = process.argv[2] ?? 'HEAD'
const folder = await mkdtemp(join(tmpdir(), 'countersign-day-'))
const clone = join(folder, 'countersign')
const shop = join(folder, 'tulip-shop')
const running = new Set<ChildProcess>()

/** A part of the day: what is read, and what the machine does. */
interface Part {
  readonly name: string
  readonly pages: readonly string[]
  readonly work: () => Promise<void>
}

const parts: readonly Part[] = [
  { name: 'clone and two commands', pages: ['README.md'], work: lookAround },
  { name: 'first application', pages: ['docs/start.md'], work: firstApplication },
  {
    name: 'own application',
    pages: [
      'docs/client.md',
      'docs/mounting.md',
      'docs/backends.md',
      'docs/proxies.md',
      'docs/cross-device-security.md',
    ],
    work: ownApplication,
  },
]

try {
  await promisify(execFile)('git', ['clone', '--quiet', root, clone])
  await promisify(execFile)('git', ['-C', clone, 'checkout', '--quiet', commit])
  const sum = { words: 0, machineMs: 0 }
  for (const { name, pages, work } of parts) {
    const texts = await Promise.all(pages.map((page) => readFile(join(clone, page), 'utf8')))
    const words = texts.join('\n').match(/\S+/g)?.length ?? 0
    const start = performance.now()
    await work()
    const machineMs = performance.now() - start
    console.log(lineOf(name, words, machineMs))
    sum.words += words
    sum.machineMs += machineMs
  }
  console.log(lineOf('all', sum.words, sum.machineMs))
} finally {
  for (const child of running) stop(child)
  await rm(folder, { recursive: true, force: true })
}

function lineOf(name: string, words: number, machineMs: number): string {
  const minutes = (value: number): string => value.toFixed(1).padStart(5)
  const reading = `${String(words).padStart(6)} words, ${minutes(words / wordsPerMinute)} min to read`
  return `${name.padEnd(24)}${reading}, ${minutes(machineMs / 60_000)} min of machine`
}

/** The commands of README.md: the service starts, and a wallet signs in to it. */
async function lookAround(): Promise<void> {
  const port = await freePort()
  const commands = blocksOf(await readFile(join(clone, 'README.md'), 'utf8')).filter(
    ({ language }) => language === 'sh',
  )
  const start = commands.find(({ text }) => text.includes('npm start'))?.text ?? ''
  const signIn = commands.find(({ text }) => text.includes('/wallet/verify'))?.text ?? ''
  const service = await startCommand(clone, `export PORT=${port}\n${start}`, /\bready\b.*"port":/)
  await run(clone, signIn.replaceAll(':8080', `:${port}`))
  stop(service)
}

/** docs/start.md up to the application that knows who is signed in. */
async function firstApplication(): Promise<void> {
  await run(clone, await block('sh', 'npm run package'))
  await run(folder, await block('sh', 'npm install ../countersign/'))
  await mkdir(join(shop, 'public'))
  await writeFile(join(shop, 'public/index.html'), await block('html', '<!-- public/index.html -->'))
  await serveShop(await block('js', '// server.mjs'))
}

/** The last step of docs/start.md: the options for real users, asked as a proxy in front asks. */
async function ownApplication(): Promise<void> {
  const program = await block('js', '// server.mjs')
  const [service = ''] = /^const countersign = [\s\S]*?^const verifier = .*\n/m.exec(program) ?? []
  const forwarded = ['proto: https', 'host: shop.example', 'for: 203.0.113.7']
  const headers = forwarded.map((header) => `-H 'x-forwarded-${header}'`).join(' ')
  await serveShop(program.replace(service, await block('js', 'shop.example')), headers)
}

/** Starts the application, signs in to it, and asks it who is signed in. `headers` are arguments of curl. */
async function serveShop(program: string, headers = ''): Promise<void> {
  const port = await freePort()
  await writeFile(join(shop, 'server.mjs'), program.replace('port = 3000', `port = ${port}`))
  const server = await startCommand(shop, await block('sh', 'node server.mjs'), /Listening at/)
  await run(
    shop,
    `call() { curl --silent --show-error --fail ${headers} "$@"; }
    auth=http://localhost:${port}/api/auth
    call -X POST $auth/wallet/nonce > challenge.json
    node ${clone}/examples/curl/toy-wallet.mjs < challenge.json > proof.json
    call -H 'content-type: application/json' -d @proof.json $auth/wallet/verify > session.json
    token=$(node -p 'JSON.parse(require("fs").readFileSync("session.json")).token')
    call -H "authorization: Bearer $token" http://localhost:${port}/me`,
  )
  stop(server)
}

/** The first block of docs/start.md in a language that contains a text. */
async function block(language: string, text: string): Promise<string> {
  const blocks = blocksOf(await readFile(join(clone, 'docs/start.md'), 'utf8'))
  const found = blocks.find((candidate) => candidate.language === language && candidate.text.includes(text))
  if (found === undefined) throw new Error(`docs/start.md has no block of ${language} with "${text}"`)
  return found.text
}

/** Runs a command to its end. Rejects with what it printed if it fails. */
async function run(cwd: string, command: string): Promise<void> {
  const { child, output } = shell(cwd, command)
  const [code] = await once(child, 'close')
  running.delete(child)
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${output()}`)
}

/** Starts a command, and resolves once its output matches. */
async function startCommand(cwd: string, command: string, ready: RegExp): Promise<ChildProcess> {
  const { child, output } = shell(cwd, command)
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (ready.test(output())) resolve()
    }
    child.stdout?.on('data', look)
    child.stderr?.on('data', look)
    child.on('close', (code) => reject(new Error(`${command} ended with ${code}:\n${output()}`)))
  })
  return child
}

/** A shell with the Node.js that runs this, and without what npm has set for this script. */
function shell(cwd: string, command: string) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|COUNTERSIGN_|PORT$|HOST$)/.test(name))
  const child = spawn('bash', ['-euo', 'pipefail', '-c', command], {
    cwd,
    env: { ...Object.fromEntries(kept), PATH: `${dirname(process.execPath)}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  running.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk))
  return { child, output: () => output }
}

/** Ends a command with all its processes. */
function stop(child: ChildProcess): void {
  running.delete(child)
  if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, 'localhost')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
