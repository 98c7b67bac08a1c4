import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type BuildOptions, build, type Metafile, type Plugin, transform } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = new URL('../dist/client/', import.meta.url)

/** What a bundle of the client is made from: an entry of the package, or a text that imports one. */
export interface ClientBundle {
  readonly name: string
  readonly source: Pick<BuildOptions, 'entryPoints' | 'stdin'>
  /** Most bytes that it may have gzipped. */
  readonly maxGzip?: number
}

/** The entries of the client, by the names of their bundles. */
export const clientEntries: readonly ClientBundle[] = [
  { name: 'countersign-client', source: { entryPoints: ['src/browser/client/index.ts'] }, maxGzip: 11_200 },
  { name: 'countersign-sign-in', source: { entryPoints: ['src/browser/element/element.ts'] }, maxGzip: 18_700 },
]

/** What any page pays that calls one generated service with Connect, to measure the client against. */
export const connectFloor: ClientBundle = {
  name: 'Connect and one generated service',
  source: text(`
    import { createClient } from '@connectrpc/connect'
    import { createConnectTransport } from '@connectrpc/connect-web'
    import { SignInService } from './gen/client/countersign/v1/sign_in_service_pb.ts'
    globalThis.client = createClient(SignInService, createConnectTransport({ baseUrl: '' }))
  `),
}

/** The client over Connect with its transport, as a page bundles it. */
export const connectClient: ClientBundle = {
  name: 'countersign/client/connect',
  source: text(`
    import { createConnectTransport } from '@connectrpc/connect-web'
    import { createCountersignClient } from './src/browser/client/connect.ts'
    globalThis.client = createCountersignClient({ transport: createConnectTransport({ baseUrl: '' }) })
  `),
}

/** The client as a page bundles it, to measure against what {@link siweClient} adds. */
export const plainClient: ClientBundle = {
  name: 'countersign/client',
  source: text(`
    import { createCountersignClient } from './src/browser/client/index.ts'
    globalThis.made = createCountersignClient()
  `),
}

/** The client with the adapters for other stacks' buttons, as a page bundles both. */
export const siweClient: ClientBundle = {
  name: 'countersign/client and countersign/client/siwe',
  source: text(`
    import { createCountersignClient } from './src/browser/client/index.ts'
    import { rainbowKit, signInForm, siwx } from './src/browser/client/siwe.ts'
    globalThis.made = [createCountersignClient(), rainbowKit, signInForm, siwx]
  `),
}

/** A bundle for browsers. */
export interface BuiltBundle {
  /** Minified ESM with all that it needs at once: it imports no other file statically. */
  readonly code: Uint8Array
  readonly metafile: Metafile
  /** Bundles that it imports on demand, by file name, beside itself. */
  readonly onDemand: ReadonlyMap<string, BuiltBundle>
}

/** Bundles for browsers: minified ESM, and what it imports on demand. */
export async function bundleClient(source: ClientBundle['source']): Promise<BuiltBundle> {
  const onDemand = new Map<string, BuiltBundle>()
  const { outputFiles, metafile } = await build({
    ...source,
    plugins: [bundlesOnDemand(onDemand), minifiesStyles],
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const [file] = outputFiles
  if (file === undefined) throw new Error('esbuild wrote nothing')
  return { code: file.contents, metafile, onDemand }
}

/**
 * Makes a bundle of its own of what is imported dynamically, named by its content. esbuild's own splitting would put
 * what both need into a third file, which the first one would wait for.
 */
function bundlesOnDemand(bundles: Map<string, BuiltBundle>): Plugin {
  return {
    name: 'bundles on demand',
    setup({ onResolve }) {
      onResolve({ filter: /^\./ }, async ({ kind, path, resolveDir }) => {
        if (kind !== 'dynamic-import') return undefined
        const bundle = await bundleClient({ entryPoints: [join(resolveDir, path)] })
        const hash = createHash('sha256').update(bundle.code).digest('hex').slice(0, 8)
        const name = `countersign-${basename(path, '.ts')}-${hash}.js`
        for (const [inner, its] of bundle.onDemand) bundles.set(inner, its)
        bundles.set(name, bundle)
        return { path: `./${name}`, external: true }
      })
    },
  }
}

/** Minifies the style sheets of the elements, which are texts in files of their own. */
const minifiesStyles: Plugin = {
  name: 'minifies styles',
  setup({ onLoad }) {
    onLoad({ filter: /style\.ts$/ }, async ({ path }) => {
      const [, declaration, css = ''] = /(export const \w+ = )`([^`]*)`/.exec(await readFile(path, 'utf8')) ?? []
      const { code } = await transform(css, { loader: 'css', minify: true })
      return { contents: declaration + JSON.stringify(code.trim()), loader: 'ts' }
    })
  },
}

/** Size of a bundle, bytes. */
export function sizeOf(code: Uint8Array): { readonly raw: number; readonly gzip: number } {
  return { raw: code.length, gzip: gzipSync(code, { level: 9 }).length }
}

/** Throws if a bundle is larger than it may be. */
export function checkSize({ name, maxGzip = Number.POSITIVE_INFINITY }: ClientBundle, code: Uint8Array): void {
  const { gzip } = sizeOf(code)
  if (gzip > maxGzip) throw new Error(`${name} has ${gzip} bytes gzipped, more than ${maxGzip}`)
}

function text(contents: string): ClientBundle['source'] {
  return { stdin: { contents, resolveDir: root, loader: 'ts' } }
}

/** Builds the client's bundles into dist/client and prints their sizes. */
async function main(): Promise<void> {
  await mkdir(folder, { recursive: true })
  const floor = sizeOf((await bundleClient(connectFloor.source)).code).gzip
  const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1).padStart(6)} KB`
  const print = (name: string, { code, metafile }: BuiltBundle): void => {
    const { raw, gzip } = sizeOf(code)
    const withConnect = Object.keys(metafile.inputs).some((path) => path.includes('@connectrpc/connect-web'))
    const more = withConnect ? kilobytes(gzip - floor) : '(without)'
    console.log(`${name.padEnd(42)}${kilobytes(raw)}  ${kilobytes(gzip)}   ${more}`)
  }
  console.log(`${'minified'.padEnd(45)}raw       gzip   more than Connect`)
  for (const { name, source } of [connectFloor, connectClient]) print(name, await bundleClient(source))
  const written = new Set<string>()
  /** What the attribute `integrity` of a script tag says of each file. */
  const integrity = new Map<string, string>()
  const write = async (name: string, { code }: BuiltBundle): Promise<void> => {
    written.add(name)
    integrity.set(name, `sha384-${createHash('sha384').update(code).digest('base64')}`)
    await writeFile(new URL(name, folder), code)
  }
  for (const bundle of clientEntries) {
    const built = await bundleClient(bundle.source)
    checkSize(bundle, built.code)
    print(bundle.name, built)
    for (const [name, part] of built.onDemand) {
      print(`  on demand: ${name}`, part)
      await write(name, part)
    }
    await write(`${bundle.name}.js`, built)
  }
  written.add('integrity.json')
  await writeFile(new URL('integrity.json', folder), `${JSON.stringify(Object.fromEntries(integrity), undefined, 2)}\n`)
  // Of earlier builds.
  for (const name of await readdir(folder)) if (!written.has(name)) await rm(new URL(name, folder))
}

if (import.meta.main) await main()
