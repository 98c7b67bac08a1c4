import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './command.ts'
import { executedSnippets } from './snippets.ts'
import { temporaryFolder } from './temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Where what the generator needs is kept between runs. */
const cacheFolder = join(root, 'node_modules/.cache/countersign-openapi')

const manifest = JSON.stringify({ private: true, type: 'module' })

/** The commands of docs/other-languages.md that install the generator, and that generate the types. */
async function commands(): Promise<{ readonly install: string; readonly generate: string }> {
  const snippets = (await executedSnippets('docs/other-languages.md')).map(({ code }) => code)
  const found = (part: string): string => {
    const code = snippets.find((each) => each.includes(part))
    if (code === undefined) throw new Error(`docs/other-languages.md has no command with ${part}`)
    return code
  }
  return { install: found('npm install openapi-fetch'), generate: found('npx openapi-typescript') }
}

/**
 * A project with a client that was generated from a service's document as docs/other-languages.md says. Removed when the test
 * ends.
 */
export class GeneratedProject {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  /** Generates the client. What that needs is installed once for each machine and list of packages. */
  static async make(url: string): Promise<GeneratedProject> {
    const { install, generate } = await commands()
    const folder = temporaryFolder()
    await writeFile(join(folder, 'package.json'), manifest)
    await symlink(join(await installed(install), 'node_modules'), join(folder, 'node_modules'))
    await runShell(generate.replaceAll('http://localhost:8080', url), folder)
    return new GeneratedProject(folder)
  }

  /** Writes a program beside the client, and resolves with its path. */
  async add(name: string, code: string): Promise<string> {
    const file = join(this.folder, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, code)
    return file
  }

  /** Copies a program of this repository there, and resolves with its path. */
  async copy(path: string): Promise<string> {
    return await this.add(path.slice(path.lastIndexOf('/') + 1), await readFile(join(root, path), 'utf8'))
  }

  /** Checks programs with the TypeScript of the generator. Rejects with what it says. */
  async check(...names: readonly string[]): Promise<void> {
    const options = ['--strict', '--noEmit', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess']
    const modules = ['--module', 'nodenext', '--target', 'es2024', '--allowImportingTsExtensions']
    const types = ['--skipLibCheck', '--typeRoots', join(root, 'node_modules/@types'), '--types', 'node']
    const tsc = join(this.folder, 'node_modules/typescript/bin/tsc')
    const args = [tsc, ...options, ...modules, ...types, ...names]
    await run(process.execPath, args, { cwd: this.folder }).catch((error: { stdout?: string }) => {
      throw new Error(error.stdout ?? String(error))
    })
  }
}

/** Runs a snippet as a shell does that stops at the first failure, on the Node that runs this test. */
async function runShell(code: string, cwd: string): Promise<void> {
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`
  const env = { ...process.env, PATH, npm_config_audit: 'false', npm_config_fund: 'false' }
  await run('bash', ['-euo', 'pipefail', '-c', code], { cwd, env })
}

/** The folder in which the packages of a command are installed. */
async function installed(command: string): Promise<string> {
  const folder = join(cacheFolder, createHash('sha256').update(command).digest('hex').slice(0, 16))
  if (await exists(join(folder, 'node_modules'))) return folder
  await mkdir(cacheFolder, { recursive: true })
  // Another test may be doing the same: whoever is first puts the whole folder in its place.
  const made = await mkdtemp(join(cacheFolder, 'making-'))
  await writeFile(join(made, 'package.json'), manifest)
  await runShell(command, made)
  await rename(made, folder).catch(async (error: NodeJS.ErrnoException) => {
    await rm(made, { recursive: true, force: true })
    if (!(await exists(join(folder, 'node_modules')))) throw error
  })
  return folder
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}
