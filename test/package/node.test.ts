import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commitOfBuild } from '../../scripts/build-commit.ts'
import { hasPart } from '../support/optional.ts'
import { manifestOf, tsc } from '../types/emit.ts'
import { makeProject, npm, type Project } from './projects.ts'

const programs = fileURLToPath(new URL('programs', import.meta.url))
const { version, dependencies, devDependencies } = await manifestOf()

/** What type-checks, beside this project's own TypeScript: the version before it. */
const types = { typescript: '5.9.3', '@types/node': devDependencies['@types/node'] }

/** The peers that an entry imports at once. */
const peers = {
  '@better-auth/core': devDependencies['better-auth'],
  '@grpc/grpc-js': devDependencies['@grpc/grpc-js'],
  'better-auth': devDependencies['better-auth'],
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
  'countersign/approvals',
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
const clientEntries = ['', '/connect', '/element', '/wallets'].map((name) => `countersign/client${name}`)

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

// pnpm installs it in react.test.ts.
describe.runIf(hasPart('npm registry'))(
  'installed by npm, with peers, the package',
  // npm and compilers share the cores with other tests.
  { timeout: 180_000 },
  () => {
    let project: Project
    beforeAll(async () => {
      const connect = {
        '@connectrpc/connect': dependencies['@connectrpc/connect'],
        '@connectrpc/connect-node': devDependencies['@connectrpc/connect-node'],
      }
      project = await makeProject(npm, programs, { ...connect, ...types, ...peers })
    }, 300_000)
    afterAll(() => project?.remove())

    test('had nothing to be warned of', async () => {
      // protobufjs, alone, comes with the peer @grpc/grpc-js.
      const printed = project.printed.replace(/.* 1 package has install scripts .*\n.* protobufjs@.*\n/, '')
      expect(printed).not.toMatch(/ERESOLVE|peer dep|install script|build script|EBADENGINE/i)
      await project.run(npm.list)
    })

    test('brings no library of the OpenID Connect issuer', async () => {
      const { stdout } = await project.run([
        'node',
        '-e',
        "import('oidc-provider').catch(({ code }) => console.log(code))",
      ])
      expect(stdout).toBe('ERR_MODULE_NOT_FOUND\n')
    })

    /** What comes of an import of each entry, by its specifier. */
    const entries = async (): Promise<Record<string, string>> =>
      JSON.parse((await project.run(['node', 'entries.mjs'])).stdout)

    test('imports every entry', async () => {
      const outcomes = await entries()
      expect(Object.keys(outcomes)).toEqual(
        expect.arrayContaining([
          'countersign',
          'countersign/gen/sign_in_service_pb.js',
          'countersign/gen/countersign/v1/sign_in_service_pb',
        ]),
      )
      expect(new Set(Object.values(outcomes))).toEqual(new Set(['imported']))
    })

    test('names, without peers, the one that is missing in one line, and imports all other entries', async () => {
      for (const peer of Object.keys(peers)) await rm(join(project.folder, 'node_modules', peer), { recursive: true })
      const failed = Object.entries(await entries()).filter(([, outcome]) => outcome !== 'imported')
      expect(failed.map(([specifier]) => specifier).sort()).toEqual(Object.keys(needed).sort())
      for (const [specifier, message] of failed) {
        expect(message).toMatch(new RegExp(`^Cannot find package '${needed[specifier]}' imported from \\S+$`))
      }
    })

    // From here on without peers.
    test('signs in with the client and a test wallet, verifies the session, and proves a signature with the command', async () => {
      const { stdout } = await project.run(['node', 'sign-in.ts'])
      const [, origin = ''] = /^origin (\S+)$/m.exec(stdout) ?? []
      const about = ['--app-name', 'Countersign', '--origin', origin, '--payload', 'invoice.json']
      const verify = ['verify', 'proof.json', ...about]
      expect((await project.run([...npm.run, 'countersign', ...verify])).stdout).toMatch(/^valid: NQ/m)
      const { stdout: printed } = await project.run([...npm.run, 'countersign', '--version'])
      const commit = commitOfBuild()
      expect(printed).toContain(commit === undefined ? version : `${version} (commit ${commit})`)
    })

    test('signs in with the headless core in a program of twenty lines', async () => {
      const program = await readFile(join(programs, 'headless.ts'), 'utf8')
      expect(program.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(20)
      expect((await project.run(['node', 'headless.ts'])).stdout).toMatch(/^nimiq NQ/)
    })

    test('has types without an error, and without those of browsers none but in Connect', async () => {
      const forServers = [...serverEntries, ...generatedEntries]
      const all = [...forServers, ...clientEntries]
      const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler']
      const before = join(project.folder, 'node_modules/typescript/bin/tsc')
      expect(await typeErrors(project, before, 'es2024,dom,esnext.disposable', all)).toEqual([])
      expect(await typeErrors(project, tsc, 'es2024,dom,esnext.disposable', all, bundler)).toEqual([])
      const errors = await typeErrors(project, tsc, 'es2024', forServers)
      expect(errors.filter((line) => !/^node_modules\/@connectrpc\/connect\/.*'HeadersInit'/.test(line))).toEqual([])
      // These name no type of Connect.
      const withoutConnect = forServers.filter((entry) => !/^countersign(\/backend\/connect)?$/.test(entry))
      expect(await typeErrors(project, tsc, 'es2024', withoutConnect)).toEqual([])
    })
  },
)
