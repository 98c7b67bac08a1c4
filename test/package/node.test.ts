import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasPart } from '../support/optional.ts'
import { manifestOf, tsc } from '../types/emit.ts'
import { makeProject, npm, type Project, pnpm } from './projects.ts'

const programs = fileURLToPath(new URL('programs', import.meta.url))
const { version, dependencies, devDependencies } = await manifestOf()
const betterAuth = devDependencies['better-auth']

/** What type-checks, beside this project's own TypeScript: the version before it. */
const types = { typescript: '5.9.3', '@types/node': devDependencies['@types/node'] }

/** The peers that an entry imports at once. */
const peers = {
  '@better-auth/core': betterAuth,
  '@grpc/grpc-js': devDependencies['@grpc/grpc-js'],
  'better-auth': betterAuth,
  react: devDependencies.react,
}

/** The entries that need a peer as they are imported, and its name. */
const needed: Readonly<Record<string, keyof typeof peers>> = {
  'countersign/better-auth': 'better-auth',
  'countersign/backend/grpc': '@grpc/grpc-js',
  'countersign/react': 'react',
}

/** Entries for servers, whose projects may not have the types of browsers. */
const serverEntries = [
  'countersign',
  'countersign/backend',
  'countersign/backend/connect',
  'countersign/backend/express',
  'countersign/backend/fastify',
  'countersign/core',
  'countersign/proof',
  'countersign/testing',
]
/** The forms in which users of Connect write generated modules. */
const generatedEntries = ['gen/sign_in_service_pb', 'gen/countersign/v1/sign_in_service_pb'].flatMap((name) => [
  `countersign/${name}`,
  `countersign/${name}.js`,
])
const clientEntries = ['', '/rest', '/element', '/wallets'].map((name) => `countersign/client${name}`)

/**
 * Prints what a version of TypeScript finds wrong with these entries of the package and all that their declarations
 * need.
 */
async function typeErrors(
  { folder, run }: Project,
  compiler: string,
  lib: string,
  entries: readonly string[],
  resolution: readonly string[] = ['--module', 'nodenext'],
): Promise<string[]> {
  const uses = entries.map((entry, index) => `export * as entry${index} from '${entry}'`)
  await writeFile(join(folder, 'uses.ts'), uses.join('\n'))
  const options = ['--target', 'es2024', '--types', 'node', '--strict', '--noEmit', '--skipLibCheck', 'false']
  const command = ['node', compiler, '--pretty', 'false', ...options, '--lib', lib, ...resolution, 'uses.ts']
  const printed = await run(command).then(
    () => '',
    ({ message }: Error) => message.replace(/^.*\n/, ''),
  )
  return printed.split('\n').filter((line) => line !== '')
}

const installed = [
  { manager: npm, peers: {}, what: 'without peers' },
  { manager: pnpm, peers, what: 'with peers' },
]

/** Package managers and compilers share the cores with other tests. */
const timeoutMs = 180_000

describe.runIf(hasPart('npm registry')).each(installed)(
  'installed by $manager.name, $what, the package',
  { timeout: timeoutMs },
  ({ manager, peers }) => {
    let project: Project
    beforeAll(async () => {
      const own = Object.fromEntries(
        ['@connectrpc/connect', '@connectrpc/connect-node'].map((name) => [name, dependencies[name]]),
      )
      project = await makeProject(manager, programs, { ...own, ...types, ...peers })
    }, 300_000)
    afterAll(() => project?.remove())

    test('had nothing to be warned of', async () => {
      expect(project.printed).not.toMatch(/ERESOLVE|peer dep|install script|build script|EBADENGINE/i)
      await project.run(manager.list)
    })

    test('brings no library of the OpenID Connect issuer', async () => {
      const { stdout } = await project.run([
        'node',
        '-e',
        "import('oidc-provider').catch(({ code }) => console.log(code))",
      ])
      expect(stdout).toBe('ERR_MODULE_NOT_FOUND\n')
    })

    test('signs in with the client and a test wallet, verifies the session, and proves a signature with the command', async () => {
      const { stdout } = await project.run(['node', 'sign-in.ts'])
      const [, origin = ''] = /^origin (\S+)$/m.exec(stdout) ?? []
      const about = ['--app-name', 'Countersign', '--origin', origin, '--payload', 'invoice.json']
      const verify = ['verify', 'proof.json', ...about]
      expect((await project.run([...manager.run, 'countersign', ...verify])).stdout).toMatch(/^valid: NQ/m)
      expect((await project.run([...manager.run, 'countersign', '--version'])).stdout).toContain(version)
    })

    test('signs in with the headless core in a program of twenty lines', async () => {
      const program = await readFile(join(programs, 'headless.ts'), 'utf8')
      expect(program.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(20)
      expect((await project.run(['node', 'headless.ts'])).stdout).toMatch(/^nimiq NQ/)
    })

    test('imports every entry, or is told in one line which package is missing', async () => {
      const { stdout } = await project.run(['node', 'entries.mjs'])
      const outcomes: Record<string, string> = JSON.parse(stdout)
      expect(Object.keys(outcomes)).toEqual(
        expect.arrayContaining([
          'countersign',
          'countersign/gen/sign_in_service_pb.js',
          'countersign/gen/countersign/v1/sign_in_service_pb',
        ]),
      )
      const failed = Object.fromEntries(Object.entries(outcomes).filter(([, outcome]) => outcome !== 'imported'))
      const missing = Object.keys(needed).filter((specifier) => !(needed[specifier]! in peers))
      expect(Object.keys(failed).sort()).toEqual(missing.sort())
      for (const [specifier, message] of Object.entries(failed)) {
        expect(message).toMatch(new RegExp(`^Cannot find package '${needed[specifier]}' imported from \\S+$`))
      }
    })

    // Of the manager, it depends on nothing.
    if (manager === npm) {
      test('has types without an error, and without those of browsers none but in Connect', async () => {
        const forServers = [...serverEntries, ...generatedEntries]
        const all = [...forServers, ...clientEntries]
        const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler']
        for (const compiler of [join(project.folder, 'node_modules/typescript/bin/tsc'), tsc]) {
          expect(await typeErrors(project, compiler, 'es2024,dom,esnext.disposable', all)).toEqual([])
          expect(await typeErrors(project, compiler, 'es2024,dom,esnext.disposable', all, bundler)).toEqual([])
        }
        const errors = await typeErrors(project, tsc, 'es2024', forServers)
        expect(errors.filter((line) => !/^node_modules\/@connectrpc\/connect\/.*'HeadersInit'/.test(line))).toEqual([])
        // These name no type of Connect.
        const withoutConnect = forServers.filter((entry) => !/^countersign(\/backend\/connect)?$/.test(entry))
        expect(await typeErrors(project, tsc, 'es2024', withoutConnect)).toEqual([])
      })
    }
  },
)
