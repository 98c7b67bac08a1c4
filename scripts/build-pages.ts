import { glob, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Metafile, OutputFile, Plugin } from 'esbuild'
import type { BuiltPages } from '../src/http/page-files.ts'
import { type PageName, pageNames } from '../src/shared/page-names.ts'
import { english } from '../src/shared/texts/english.ts'
import type { BareTexts, PageTexts } from '../src/shared/texts/page-texts.ts'
import * as pageTexts from '../src/shared/texts/pages.ts'
import { translations } from '../src/shared/texts/translations.ts'

/** The repository. */
const root = new URL('../', import.meta.url)
const sources = new URL('../src/browser/pages/', import.meta.url)
const translationSources = new URL('../src/shared/texts/', import.meta.url)
const built = fileURLToPath(new URL('../dist/pages.json', import.meta.url))

/** What browsers of the last few years run; the pages' CSS is prefixed for them. */
const target = ['chrome111', 'firefox115', 'safari16.4']

/**
 * What the HTML names. Each is bundled by itself: if the pages shared a file, a phone would download for the approval
 * page what only the demo uses.
 */
const entries = [...pageNames.flatMap((name) => [`${name}.ts`, `style/${name}.css`]), 'icon.svg']

/** What the pages are made of, relative to the repository. */
const inputs = ['src/**/*.*', 'gen/client/**/*.ts', 'scripts/build-pages.ts', 'package-lock.json']

/**
 * Builds the pages of the service: bundles scripts and styles, names each by its content, puts each page into
 * shell.html, writes names and English texts into the HTML, and puts all of it into dist/pages.json, which the server
 * imports.
 */
export async function buildPages(): Promise<void> {
  const names = new Map<string, string>()
  const chunks = new Map<string, readonly string[]>()
  const translated: Record<string, Record<string, string>> = {}
  const files: OutputFile[] = []
  for (const entry of entries) {
    const { metafile, outputFiles } = await bundle(entry)
    files.push(...outputFiles)
    const output = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === entry)
    if (output === undefined) continue
    names.set(entry.replace(/\.ts$/, '.js'), basename(output[0]))
    chunks.set(entry, chunksOf(metafile.outputs, output[0]))
    if (entry.endsWith('.ts')) translated[basename(entry, '.ts')] = await translationsIn(metafile.outputs)
  }
  const bare = await Promise.all(
    Object.entries(translations).map(async ([language, load]) => ({ language, lines: (await load()).bare })),
  )
  const fill = async (name: PageName): Promise<[PageName, string]> => {
    const parts = await withParts((await readPart('shell')).replaceAll('[[page.', `[[${name}.`))
    const html = parts.replace(/\[\[bare\.(\w+)\]\]/g, (_, text) =>
      bare.map(({ language, lines }) => `<p lang="${language}">${lines[text as keyof BareTexts]}</p>`).join(''),
    )
    const preloads = (chunks.get(`${name}.ts`) ?? []).map(
      (chunk) => `<link rel="modulepreload" href="{{assetsPath}}/${chunk}">`,
    )
    const head = html.replace('[[preloads]]', preloads.join(''))
    const filled = withStyle(withTexts(withoutIndents(head)), name, files).replace(
      /\[\[([\w.-]+)\]\]/g,
      (_, asset: string) => {
        const found = names.get(asset)
        if (found === undefined) throw new Error(`${name}.html names ${asset}, which is not built`)
        // The server fills in where it serves the assets.
        return `{{assetsPath}}/${found}`
      },
    )
    return [name, filled]
  }
  const texts: BuiltPages = {
    pages: Object.fromEntries(await Promise.all(pageNames.map(fill))) as Record<PageName, string>,
    translations: translated as BuiltPages['translations'],
    // Styles are in the documents.
    assets: Object.fromEntries(
      files.filter(({ path }) => !path.endsWith('.css')).map(({ path, text }) => [basename(path), text]),
    ),
  }
  await mkdir(dirname(built), { recursive: true })
  // In one step: a server may start meanwhile.
  await writeFile(`${built}.${process.pid}`, JSON.stringify(texts))
  await rename(`${built}.${process.pid}`, built)
}

/** Bundles one entry. */
async function bundle(entry: string) {
  // Not above: pages that are there can be kept without it, as after npm ci --omit=dev.
  const { build } = await import('esbuild')
  return await build({
    absWorkingDir: fileURLToPath(sources),
    entryPoints: [entry],
    // Nothing is written there: it is what names are relative to.
    outdir: dirname(built),
    entryNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    // What a page imports on demand is a file of its own, which the page names relative to itself.
    chunkNames: '[name]-[hash]',
    splitting: true,
    loader: { '.svg': 'copy', '.inline.svg': 'dataurl' },
    plugins: [ownTexts(entry)],
    bundle: true,
    minify: true,
    format: 'esm',
    charset: 'utf8',
    platform: 'browser',
    target,
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
}

/** Leaves only a page's own texts in what it loads in another language. */
function ownTexts(entry: string): Plugin {
  const pages: Readonly<Record<string, PageTexts>> = { ...pageTexts }
  return {
    name: 'own texts',
    setup({ onResolve, onLoad }) {
      // The path stays relative: it counts for the names of the files, which are the same wherever they are built.
      onResolve({ filter: /^\.\/\w+\.ts$/ }, ({ kind, importer, path }) =>
        kind === 'dynamic-import' && importer.endsWith('/shared/texts/translations.ts')
          ? { path, namespace: 'own-texts' }
          : undefined,
      )
      // A page gives element and wallet list all of their texts.
      onLoad({ filter: /\/client\/translation\.ts$/ }, () => ({
        contents: 'export const loadTranslation = async () => undefined',
      }))
      onLoad({ filter: /./, namespace: 'own-texts' }, async ({ path }) => {
        const name = `${entry.replace('.ts', '').replace(/-./, (part) => part.slice(1).toUpperCase())}Texts`
        const own = Object.assign({}, ...(pages[name] ?? []))
        const { texts } = await import(new URL(path, translationSources).href)
        const entries = Object.entries(texts).filter(([key]) => Object.hasOwn(own, key))
        return { contents: `export const texts = ${JSON.stringify(Object.fromEntries(entries))}` }
      })
    },
  }
}

/** The files with a page's texts, by language. */
async function translationsIn(outputs: Metafile['outputs']): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [path, { entryPoint = '' }] of Object.entries(outputs)) {
    const [, source] = /^own-texts:(.*)/.exec(entryPoint) ?? []
    if (source === undefined) continue
    const { texts } = await import(new URL(source, translationSources).href)
    for (const [tag, load] of Object.entries(translations))
      if ((await load()).texts === texts) found[tag] = basename(path)
  }
  return found
}

/**
 * The files that a script imports as it starts, and those that these import: a browser that finds them in the document
 * does not wait for each script to name the next.
 */
function chunksOf(outputs: Metafile['outputs'], path: string): string[] {
  const found = (outputs[path]?.imports ?? []).filter(({ kind }) => kind === 'import-statement')
  return [...new Set(found.flatMap((chunk) => [basename(chunk.path), ...chunksOf(outputs, chunk.path)]))]
}

const readPart = (name: string): Promise<string> => readFile(new URL(`${name}.html`, sources), 'utf8')

/** Writes HTML files in place of their names, such as [[notice.html]]. */
async function withParts(html: string): Promise<string> {
  const found = /\[\[([\w-]+)\.html\]\]/.exec(html)
  if (found === null) return html
  const part = await readPart(found[1] as string)
  return await withParts(html.replace(found[0], () => part))
}

/** Drops the white space that begins lines between elements. */
function withoutIndents(html: string): string {
  return html.replace(/>\s*\n\s*</g, '>\n<')
}

/**
 * Writes the English texts in place of their names, such as `<h1>[[start.title]]</h1>`. The element keeps the name as
 * `data-text`, for the page to put another language there.
 */
function withTexts(html: string): string {
  const texts: Readonly<Record<string, unknown>> = english
  return html.replace(/>\[\[([\w.-]+)\]\]</g, (_, key: string) => {
    const text = texts[key]
    if (typeof text !== 'string') throw new Error(`there is no text ${key}`)
    return ` data-text="${key}">${text.replace(/[&<]/g, (character) => `&#${character.charCodeAt(0)};`)}<`
  })
}

/**
 * Writes the style sheet of a page into it, so that a page which is opened once, on a slow network, is seen as soon as
 * its document is there. The server allows exactly that style.
 */
function withStyle(html: string, page: PageName, files: readonly OutputFile[]): string {
  const file = files.find(({ path }) => new RegExp(`^${page}-\\w+\\.css$`).test(basename(path)))
  if (file === undefined) throw new Error(`style/${page}.css is not built`)
  const style = file.text
    .trim()
    .replace(/url\((["']?)\.\//g, 'url($1{{assetsPath}}/')
    // Of pictures that the sheet contains.
    .replaceAll('<', '%3C')
  return html.replace('/* [[style]] */', () => style)
}

/** Whether the pages are missing, or older than what they are made of. */
async function areOld(): Promise<boolean> {
  try {
    const { mtimeMs: builtAt } = await stat(built)
    for await (const path of glob(inputs, { cwd: fileURLToPath(root) })) {
      if ((await stat(new URL(path, root))).mtimeMs > builtAt) return true
    }
    return false
  } catch {
    return true
  }
}

/**
 * Builds the pages if they are missing or old. If this user cannot write them, the service starts with those that are
 * there, or without any; its log says so.
 */
export async function buildOldPages(): Promise<void> {
  if (!(await areOld())) return
  try {
    await buildPages()
  } catch (error) {
    if (!/^(EACCES|EPERM|EROFS)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
    console.warn('The pages are missing or old, and this user cannot write dist. To build them: npm run build')
  }
}

if (import.meta.main) await (process.argv.includes('--if-old') ? buildOldPages() : buildPages())
