import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const sources = new URL('../src/pages/', import.meta.url)
const folder = new URL('../dist/pages/', import.meta.url)

/** What browsers of the last few years run; the pages' CSS is prefixed for them. */
const target = ['chrome111', 'firefox115', 'safari16.4']

/**
 * Builds the pages of the service: bundles scripts and styles, names each by its content, writes the names into the HTML, and
 * puts all of it into dist/pages, from where the server reads it at its start.
 */
export async function buildPages(): Promise<void> {
  const entries = ['approve.ts', 'demo.ts', 'style.css', 'icon.svg']
  const { metafile, outputFiles } = await build({
    absWorkingDir: fileURLToPath(sources),
    entryPoints: entries,
    outdir: fileURLToPath(folder),
    entryNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    loader: { '.svg': 'copy' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target,
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const names = new Map<string, string>()
  for (const [path, { entryPoint }] of Object.entries(metafile.outputs)) {
    if (entryPoint !== undefined) names.set(entryPoint.replace(/\.ts$/, '.js'), basename(path))
  }
  await mkdir(folder, { recursive: true })
  const written = new Set<string>()
  const write = async (name: string, content: string | Uint8Array): Promise<void> => {
    written.add(name)
    await writeFile(new URL(name, folder), content)
  }
  for (const { path, contents } of outputFiles) {
    await write(basename(path), contents)
    await write(`${basename(path)}.gz`, gzipSync(contents))
  }
  for (const name of ['approve.html', 'demo.html']) {
    const html = await readFile(new URL(name, sources), 'utf8')
    const filled = html.replace(/\[\[([\w.]+)\]\]/g, (_, asset: string) => {
      const built = names.get(asset)
      if (built === undefined) throw new Error(`${name} names ${asset}, which is not built`)
      return `/pages/${built}`
    })
    await write(name, filled)
  }
  // Last: a server that starts meanwhile finds every file that the pages name.
  for (const name of await readdir(folder)) if (!written.has(name)) await rm(new URL(name, folder))
}

if (import.meta.main) await buildPages()
