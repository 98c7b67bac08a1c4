import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { packPackage } from '../../scripts/pack.ts'

/** The environment of package managers and of what they start: on the Node that runs this test. */
const environment = {
  ...process.env,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  NODE_ENV: undefined,
  NODE_TEST_CONTEXT: undefined,
  // The .npmrc of this repository is not a user's. npm hands what is in it on to whatever it starts.
  npm_config_strict_allow_scripts: undefined,
  npm_config_allow_scripts: undefined,
  // What the run has fetched once.
  npm_config_prefer_offline: 'true',
}

/** How a package manager is called. */
interface PackageManager {
  readonly name: string
  readonly install: readonly string[]
  /** What comes before the name of an installed program. */
  readonly run: readonly string[]
  /** Lists what is installed. Fails if something is missing, or is there that does not belong there. */
  readonly list: readonly string[]
}

export const npm: PackageManager = {
  name: 'npm',
  install: ['npm', 'install', '--no-audit', '--no-fund'],
  run: ['npm', 'exec', '--no', '--'],
  list: ['npm', 'ls', '--all'],
}

const pnpmCommand = ['npx', '--yes', 'pnpm@12.21.0']

/** Its node_modules give a package nothing but what it names itself. */
export const pnpm: PackageManager = {
  name: 'pnpm',
  install: [...pnpmCommand, 'install'],
  run: [...pnpmCommand, 'exec'],
  list: [...pnpmCommand, 'list', '--depth=0'],
}

/** A project that has the package installed from its tarball. */
export interface Project {
  readonly folder: string
  readonly environment: NodeJS.ProcessEnv
  /** What the installation printed. */
  readonly printed: string
  /** Runs a program, and resolves with what it printed. Rejects if it fails. */
  run(command: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }>
  remove(): Promise<void>
}

/** Makes a project in a folder of its own, and installs the package, what the project's package.json
 * names, and more packages or fixed versions of those. */
export async function makeProject(
  manager: PackageManager,
  files: string,
  dependencies: Readonly<Record<string, string | undefined>> = {},
): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), `countersign-${manager.name}-`))
  await cp(files, folder, { recursive: true })
  const own = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '{"private":true,"type":"module"}')
  const manifest = JSON.parse(own)
  manifest.dependencies = { ...manifest.dependencies, ...dependencies, countersign: `file:${await packPackage()}` }
  for (const name of Object.keys(dependencies)) delete manifest.devDependencies?.[name]
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  const run: Project['run'] = async ([program = '', ...args]) =>
    await promisify(execFile)(program, args, { cwd: folder, env: environment, timeout: 240_000 }).catch((error) => {
      throw new Error(`${program} ${args.join(' ')} failed:\n${error.stdout}${error.stderr}`)
    })
  const remove = () => rm(folder, { recursive: true, force: true })
  const { stdout, stderr } = await run(manager.install).catch(async (error) => {
    await remove()
    throw error
  })
  // npm complains of settings of the machine that it does not know.
  const printed = (stdout + stderr).replace(/^npm warn Unknown .*$/gm, '')
  return { folder, environment, printed, run, remove }
}
