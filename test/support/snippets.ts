import { globSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import { run } from './command.ts'
import { readFromRoot, root } from './repository.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A snippet of a document that says that it is executed. */
export interface Snippet {
  readonly language: string
  readonly code: string
  /** The JSON block that follows it: what it prints. Empty if there is none. */
  readonly output: string
}

/** The snippets of a document that say that they are executed. `path` is that of the document in the repository. */
export async function executedSnippets(path: string): Promise<Snippet[]> {
  const page = await readFromRoot(path)
  const form = /<!-- executed by test\/docs -->\n\n?```(\w+)\n([\s\S]*?)```\n(?:\n```json\n([\s\S]*?)```)?/g
  return [...page.matchAll(form)].map(([, language = '', code = '', output = '']) => ({ language, code, output }))
}

/** The files of a folder of the repository with their texts, by their paths in it. */
export async function filesIn(folder: string): Promise<Map<string, string>> {
  const paths = globSync('**/*.*', { cwd: join(root, folder) })
  return new Map(await Promise.all(paths.map(async (path) => [path, await readFromRoot(`${folder}/${path}`)] as const)))
}

/** Writes files into a folder. */
export async function writeFiles(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  for (const [path, text] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
}

/** What a program printed. */
export interface Printed {
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a shell snippet against a service, with the repository's Node and tools, and the repository in place of the
 * installed package. `folder` is by default one that is removed again.
 */
export async function runShell(code: string, url: string, folder?: string): Promise<Printed> {
  const PATH = [dirname(process.execPath), join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter)
  return await run('bash', ['-euo', 'pipefail', '-c', at(url, code).replaceAll('node_modules/countersign', root)], {
    cwd: folder ?? (await workFolder()),
    env: { ...process.env, PATH },
  })
}

/** Runs a TypeScript snippet against a service, with the package's sources in place of the package. */
export async function runTypeScript(code: string, url: string): Promise<Printed> {
  const file = join(await workFolder(), 'snippet.ts')
  await writeFile(file, withSources(at(url, code)))
  return await run(process.execPath, [file])
}

/** A program that imports the package's sources instead of the package. */
export function withSources(code: string): string {
  return code.replaceAll(/(?<=from ')(countersign|\.\/gen)(\/[^']+)?(?=')/g, (_, base: string, rest = '') =>
    join(root, base === 'countersign' ? sourceOf(rest) : `gen/client${rest}`),
  )
}

const exported: Readonly<Record<string, string | { readonly default: string }>> = packageJson.exports

/** The file of an export of the package. */
function sourceOf(subpath: string): string {
  if (subpath.startsWith('/gen/')) return `gen/client/countersign/v1${subpath.slice('/gen'.length)}.ts`
  const entry = exported[`.${subpath}`]
  if (typeof entry !== 'object') throw new Error(`the package has no export ${subpath}`)
  return entry.default.replace('./dist/', '').replace(/\.js$/, '.ts')
}

/** A folder that is removed when the test ends, in which programs find the packages of the repository. */
export async function workFolder(): Promise<string> {
  const folder = temporaryFolder()
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

function at(url: string, code: string): string {
  return code.replaceAll('http://localhost:8080', url)
}
