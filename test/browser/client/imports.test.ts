import { builtinModules } from 'node:module'
import { build, type Metafile } from 'esbuild'
import { describe, expect, test } from 'vitest'
import {
  bundleClient,
  checkSize,
  clientEntries,
  connectClient,
  connectFloor,
  plainClient,
  siweClient,
  sizeOf,
} from '../../../scripts/build-client.ts'
import { languages } from '../../../src/shared/texts/languages.ts'

/** The only places that the client may reach. Everything else in src is the server's; src/shared is for both. */
const allowed = [
  /^src\/browser\/(client|wallets|element)\//,
  /^gen\/client\//,
  /^src\/shared\//,
  /^node_modules\/@bufbuild\/protobuf\//,
  /^node_modules\/@connectrpc\/connect(-web)?\//,
  /^node_modules\/uqr\//,
]

/** The files of which something is left in the output. */
function liveInputs({ outputs }: Metafile): string[] {
  return Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  )
}

describe.each(clientEntries)('$name', ({ source }) => {
  test('reaches nothing but the client, its generated code and what it says it needs', async () => {
    const { metafile } = await bundleClient(source)
    const paths = Object.keys(metafile.inputs)
    expect(paths.filter((path) => !allowed.some((pattern) => pattern.test(path)))).toEqual([])
    expect(paths.some((path) => path.startsWith('src/browser/client/'))).toBe(true)
  })

  test('imports nothing that a browser does not have', async () => {
    const { code, metafile, onDemand } = await bundleClient(source)
    // What it imports on demand can import more on demand.
    const files = [metafile, ...[...onDemand.values()].map((bundle) => bundle.metafile)]
    const imports = files.flatMap(({ outputs }) => Object.values(outputs).flatMap((output) => output.imports))
    expect(new Set(imports.map(({ path }) => path))).toEqual(new Set([...onDemand.keys()].map((name) => `./${name}`)))
    expect(imports.filter(({ kind, external }) => kind !== 'dynamic-import' || !external)).toEqual([])
    const builtins = [...builtinModules, ...builtinModules.map((name) => `node:${name}`)]
    const specifiers = [...new TextDecoder().decode(code).matchAll(/(?:from|import\(|require\()\s*["']([^"']+)["']/g)]
    expect(specifiers.map(([, name]) => name).filter((name) => builtins.includes(name as string))).toEqual([])
  })
})

test.each([
  ['countersign-client', /\bnode_modules\/|^gen\//],
  // The QR code's library is all that it needs.
  ['countersign-sign-in', /\bnode_modules\/(?!uqr\/)|^gen\//],
])('%s comes without Connect and without generated code', async (name, foreign) => {
  const { source } = clientEntries.find((entry) => entry.name === name)!
  const { metafile } = await bundleClient(source)
  expect(Object.keys(metafile.inputs).filter((path) => foreign.test(path))).toEqual([])
})

/** What the element may load on demand only. */
const walletParts = /browser\/(wallets\/|client\/wallet(-answer)?\.ts$|element\/device-)|\/mipd\/|@wallet-standard/

test('the element loads the list of wallets on demand, as one file that needs no other', async () => {
  const { source } = clientEntries.find(({ name }) => name === 'countersign-sign-in')!
  const { code, metafile, onDemand } = await bundleClient(source)
  expect(liveInputs(metafile).filter((path) => walletParts.test(path))).toEqual([])
  expect(new TextDecoder().decode(code)).not.toMatch(/eip6963|wallet-standard|personal_sign/)
  const named = (name: string) => [...onDemand].filter(([file]) => file.startsWith(`countersign-${name}-`))
  const [[, part] = []] = named('device-sign-in')
  expect(part && liveInputs(part.metafile)).toContain('src/browser/wallets/chooser.ts')
  // The demo wallet is loaded only where it is offered.
  const [[demoFile, demo] = []] = named('demo-wallet')
  // So are texts of other languages than English.
  const texts = [...onDemand.keys()].filter((file) => file.includes('-element-'))
  expect([texts.length, onDemand.size]).toEqual([languages.length - 1, languages.length + 1])
  const imported = [part, demo].map(
    (one) => one && Object.values(one.metafile.outputs).flatMap(({ imports }) => imports),
  )
  const onDemandOnly = (file: string | undefined) => ({ path: `./${file}`, kind: 'dynamic-import', external: true })
  expect(imported).toEqual([[...texts, demoFile].map(onDemandOnly), []])
  expect(part && sizeOf(part.code).gzip).toBeLessThan(18_800)
})

test('a bundler that splits leaves the list of wallets out of what it loads with the element', async () => {
  const { metafile } = await build({
    entryPoints: ['src/browser/element/element.ts'],
    outdir: 'not-written',
    bundle: true,
    splitting: true,
    format: 'esm',
    metafile: true,
    write: false,
  })
  const [entry = ''] =
    Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint?.endsWith('/element.ts')) ?? []
  const atOnce = new Set([entry])
  for (const path of atOnce) {
    const { imports = [] } = metafile.outputs[path] ?? {}
    for (const { path: next, kind } of imports) if (kind === 'import-statement') atOnce.add(next)
  }
  const inputs = [...atOnce].flatMap((path) => Object.keys(metafile.outputs[path]?.inputs ?? {}))
  expect(inputs).toContain('src/browser/element/element.ts')
  expect(inputs.filter((path) => walletParts.test(path))).toEqual([])
  // Not because nothing has it.
  expect(Object.keys(metafile.inputs)).toContain('src/browser/wallets/chooser.ts')
})

test('the adapters for other stacks add less than 1.6 KB to a page that imports them, and are in no other entry', async () => {
  const adapters = /client\/(rainbow-kit|sign-in-steps|siwe|siwx)\.ts$/
  for (const { source } of [...clientEntries, connectClient]) {
    const { metafile, onDemand } = await bundleClient(source)
    const inputs = [metafile, ...[...onDemand.values()].map((part) => part.metafile)].flatMap((one) =>
      Object.keys(one.inputs),
    )
    expect(inputs.filter((path) => adapters.test(path))).toEqual([])
  }
  const { code, metafile } = await bundleClient(siweClient.source)
  expect(
    Object.keys(metafile.inputs).filter((path) => !/^src\/(browser\/client|shared)\/|^<stdin>$/.test(path)),
  ).toEqual([])
  const alone = await bundleClient(plainClient.source)
  const added = sizeOf(code).gzip - sizeOf(alone.code).gzip
  expect(added).toBeGreaterThan(0)
  expect(added).toBeLessThan(1_600)
})

test('the build stops for an element of more than 18,700 bytes', async () => {
  const element = clientEntries.find(({ name }) => name === 'countersign-sign-in')!
  expect(element.maxGzip).toBe(18_700)
  const { code } = await bundleClient(element.source)
  const { gzip } = sizeOf(code)
  expect(() => checkSize(element, code)).not.toThrow()
  expect(() => checkSize({ ...element, maxGzip: gzip - 1 }, code)).toThrow(
    `countersign-sign-in has ${gzip} bytes gzipped, more than ${gzip - 1}`,
  )
})

test('over Connect, signing in, orders and wallets cost less than 14.5 KB more than Connect itself', async () => {
  const floor = sizeOf((await bundleClient(connectFloor.source)).code).gzip
  const { gzip } = sizeOf((await bundleClient(connectClient.source)).code)
  expect(gzip - floor).toBeGreaterThan(0)
  expect(gzip - floor).toBeLessThan(14_500)
})
