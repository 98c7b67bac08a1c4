import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type BuildOptions, build, type Metafile } from 'esbuild'

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
  { name: 'countersign-client', source: { entryPoints: ['src/client/index.ts'] } },
  { name: 'countersign-direct', source: { entryPoints: ['src/client/direct.ts'] } },
  { name: 'countersign-sign-in', source: { entryPoints: ['src/client/element/element.ts'] }, maxGzip: 15_000 },
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

/** Bundles for browsers: minified ESM with all that it needs. */
export async function bundleClient(
  source: ClientBundle['source'],
): Promise<{ readonly code: Uint8Array; readonly metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    ...source,
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
  return { code: file.contents, metafile }
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
  console.log(`${'minified'.padEnd(37)}raw       gzip   more than Connect`)
  for (const bundle of [connectFloor, ...clientEntries]) {
    const { name } = bundle
    const { code, metafile } = await bundleClient(bundle.source)
    checkSize(bundle, code)
    const { raw, gzip } = sizeOf(code)
    const withConnect = Object.keys(metafile.inputs).some((path) => path.includes('@connectrpc/connect-web'))
    const more = withConnect ? kilobytes(gzip - floor) : '(without)'
    console.log(`${name.padEnd(34)}${kilobytes(raw)}  ${kilobytes(gzip)}   ${more}`)
    if (name !== connectFloor.name) await writeFile(new URL(`${name}.js`, folder), code)
  }
}

if (import.meta.main) await main()
