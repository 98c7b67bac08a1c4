import { mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packPackage } from '../../scripts/pack.ts'
import { run } from '../support/command.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const tsc = join(root, 'node_modules/typescript/bin/tsc')

/** The package.json of this package, or of one that is installed. */
export async function manifestOf(name?: string): Promise<Manifest> {
  const folder = name === undefined ? root : join(root, 'node_modules', name)
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
}

/** What the tests read of a package.json. */
export interface Manifest {
  readonly version: string
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

/**
 * The packages whose types Better Auth's own declarations name, in endpoints above all. npm installs them beside it.
 */
export async function packagesOfBetterAuth(): Promise<string[]> {
  const manifests = await Promise.all(['better-auth', '@better-auth/core', 'better-call'].map(manifestOf))
  return [...new Set(manifests.flatMap(({ dependencies }) => Object.keys(dependencies)))]
}

/** Compiles this package as `npm run build` does, into a folder. */
export async function emit(outDir: string): Promise<void> {
  const args = [tsc, '-p', 'tsconfig.build.json', '--outDir', outDir]
  // Errors are for `npm run typecheck` to report; tsc emits in spite of them.
  await run(process.execPath, args, { cwd: root }).catch(() => undefined)
}

/** Frameworks of which the package has a guard and names no type, and what users have beside a peer. */
const frameworks = ['express', '@types/express', 'fastify', 'react-dom', '@types/react', '@types/react-dom']

/**
 * Makes a project that has the packed package installed as its users have it, with its dependencies and peers, and none
 * of the packages that only this project's own development needs. Removed when the test ends.
 */
export async function makeProject(): Promise<string> {
  const folder = await temporaryFolder()
  const installed = join(folder, 'node_modules/countersign')
  await mkdir(installed, { recursive: true })
  await run('tar', ['-xzf', await packPackage(), '--strip-components=1', '-C', installed])
  const { dependencies, peerDependencies } = await manifestOf()
  const names = [...Object.keys({ ...dependencies, ...peerDependencies }), ...(await packagesOfBetterAuth())]
  for (const name of new Set([...names, ...frameworks, '@types/node'])) {
    const place = join(folder, 'node_modules', name)
    await mkdir(dirname(place), { recursive: true })
    await symlink(join(root, 'node_modules', name), place)
  }
  return folder
}
