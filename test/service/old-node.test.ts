import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { folderOfFile } from '../support/temporary-folder.ts'
import { emit, root } from '../types/emit.ts'

/** A package that is built, and can also be started as a checkout. Nothing is installed in it. */
const folder = folderOfFile()
for (const name of ['package.json', 'src', 'scripts'])
  await cp(join(root, name), join(folder, name), { recursive: true })
await emit(join(folder, 'dist'))

/** Of the built package, only the files that an old Node may load. */
const checked = join(folder, 'checked')
for (const name of ['package.json', 'dist/src/main.js', 'dist/src/base/node-version.js']) {
  await cp(join(folder, name), join(checked, name))
}

interface OldNode {
  readonly version: string
  /** Folder with the program `node`. */
  readonly programs: string
}

/** The Node of the running tests, which calls itself 22. */
async function pretended(): Promise<OldNode> {
  const version = '22.18.0'
  const code = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
  const programs = join(folder, 'programs')
  await mkdir(programs)
  const url = `data:text/javascript,${encodeURIComponent(code).replaceAll("'", '%27')}`
  await writeFile(join(programs, 'node'), `#!/bin/sh\nexec '${process.execPath}' --import '${url}' "$@"\n`)
  await chmod(join(programs, 'node'), 0o755)
  return { version, programs }
}

/** The Node of the system, if it is too old. */
function installed(): OldNode[] {
  const programs = '/usr/bin'
  try {
    const version = execFileSync(join(programs, 'node'), ['--print', 'process.versions.node'], {
      encoding: 'utf8',
    }).trim()
    if (Number.parseInt(version, 10) < 24) return [{ version, programs }]
  } catch {
    // There is none.
  }
  console.warn('NOT TESTED: a real Node older than 24, because /usr/bin has none')
  return []
}

async function run(program: string, args: readonly string[], programs: string) {
  const env = { PATH: `${programs}${delimiter}${process.env.PATH}`, HOME: folder }
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return { code, stdout, stderr }
}

const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const minimum = /^>=(\d+)$/.exec(manifest.engines.node)?.[1]

const oldNodes = [await pretended(), ...installed()]

describe.each(oldNodes)('on Node $version, one sentence says what is needed', (old) => {
  const line = `countersign: Node.js ${minimum} or later is needed, and this is ${old.version}; see https://nodejs.org/en/download\n`

  test.each([[[]], [['--help']], [['--version']], [['--nonsense']], [['verify', '--help']]])(
    'by the built command with %j, before it loads anything else',
    async (args) => {
      const built = join(checked, manifest.bin.countersign)
      const result = await run(join(old.programs, 'node'), [built, ...args], old.programs)
      expect(result).toEqual({ code: 1, stdout: '', stderr: line })
    },
  )

  test('by npm start', async () => {
    const { code, stderr, stdout } = await run('npm', ['start', '--', '--help'], old.programs)
    expect(stderr.split('\n').filter((text) => text !== '' && !text.startsWith('npm '))).toEqual([line.trim()])
    expect(stdout).not.toContain('Usage')
    expect(code).toBe(1)
  })
})

test('the built command needs no other package for its version and help', async () => {
  const built = join(folder, manifest.bin.countersign)
  expect(await run(process.execPath, [built, '--version'], '')).toEqual({
    code: 0,
    stdout: `${manifest.version}\n`,
    stderr: '',
  })
  expect(await run(process.execPath, [built, '--help'], '')).toMatchObject({ code: 0, stderr: '' })
})

/** The same package, with its dependencies beside it, as an application has it. */
const application = join(folder, 'application')
await cp(join(folder, 'dist'), join(application, 'dist'), { recursive: true })
await cp(join(folder, 'package.json'), join(application, 'package.json'))
await symlink(join(root, 'node_modules'), join(application, 'node_modules'))

/** Each way into the package whose service, store or plugin an application makes itself. */
const entries = [
  ['countersign', 'createCountersign()'],
  ['countersign', "openStore('sqlite:./countersign.db')"],
  ['countersign', "openStore('sqlite::memory:')"],
  ['countersign', "openStore('redis://127.0.0.1:1')"],
  ['countersign/better-auth', "openStore('sqlite:./countersign.db')"],
  ['countersign/better-auth', 'walletSignIn()'],
  ['countersign/better-auth', 'crossDevice()'],
]

describe.each(oldNodes)('an application of its own on Node $version', (old) => {
  test.each(entries)('of %s: %s fails with the same sentence', async (entry, call) => {
    const { exports } = manifest
    const module = entry === 'countersign' ? exports['.'].default : exports[entry.replace('countersign', '.')].default
    const program = `import(${JSON.stringify(pathToFileURL(join(application, module)).href)})
      .then(async (entry) => { await entry.${call} })
      .then(() => console.log('made'), (error) => console.log(error.name + ': ' + error.message))`
    const { stdout, stderr, code } = await run(join(old.programs, 'node'), ['-e', program], old.programs)
    const line = `Node.js ${minimum} or later is needed, and this is ${old.version}; see https://nodejs.org/en/download`
    expect({ stdout, stderr, code }).toEqual({ stdout: `TypeError: ${line}\n`, stderr: '', code: 0 })
  })
})
