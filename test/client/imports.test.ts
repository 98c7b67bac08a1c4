import { builtinModules } from 'node:module'
import { describe, expect, test } from 'vitest'
import { bundleClient, checkSize, clientEntries, connectFloor, sizeOf } from '../../scripts/build-client.ts'

/** The only places that the client may reach. Everything else in src is the server's; these two modules are shared with it. */
const allowed = [
  /^src\/client\//,
  /^gen\/client\//,
  /^src\/(enum-words|rest-paths)\.ts$/,
  /^node_modules\/@bufbuild\/protobuf\//,
  /^node_modules\/@connectrpc\/connect(-web)?\//,
  /^node_modules\/uqr\//,
]

describe.each(clientEntries)('$name', ({ source }) => {
  test('reaches nothing but the client, its generated code and what it says it needs', async () => {
    const { metafile } = await bundleClient(source)
    const paths = Object.keys(metafile.inputs)
    expect(paths.filter((path) => !allowed.some((pattern) => pattern.test(path)))).toEqual([])
    expect(paths.some((path) => path.startsWith('src/client/'))).toBe(true)
  })

  test('imports nothing that a browser does not have', async () => {
    const { code, metafile } = await bundleClient(source)
    const imports = Object.values(metafile.outputs).flatMap((output) => output.imports)
    expect(imports).toEqual([])
    const builtins = [...builtinModules, ...builtinModules.map((name) => `node:${name}`)]
    const specifiers = [...new TextDecoder().decode(code).matchAll(/(?:from|import\(|require\()\s*["']([^"']+)["']/g)]
    expect(specifiers.map(([, name]) => name).filter((name) => builtins.includes(name as string))).toEqual([])
  })
})

test.each([
  ['countersign-direct', /\bnode_modules\/|^gen\//],
  // The QR code's library is all that it needs.
  ['countersign-sign-in', /\bnode_modules\/(?!uqr\/)|^gen\//],
])('%s comes without Connect and without generated code', async (name, foreign) => {
  const { source } = clientEntries.find((entry) => entry.name === name)!
  const { metafile } = await bundleClient(source)
  expect(Object.keys(metafile.inputs).filter((path) => foreign.test(path))).toEqual([])
})

test('the build stops for an element of more than 15,000 bytes', async () => {
  const element = clientEntries.find(({ name }) => name === 'countersign-sign-in')!
  expect(element.maxGzip).toBe(15_000)
  const { code } = await bundleClient(element.source)
  const { gzip } = sizeOf(code)
  expect(() => checkSize(element, code)).not.toThrow()
  expect(() => checkSize({ ...element, maxGzip: gzip - 1 }, code)).toThrow(
    `countersign-sign-in has ${gzip} bytes gzipped, more than ${gzip - 1}`,
  )
})

test('signing in, orders and wallets cost less than 13 KB more than Connect itself', async () => {
  const floor = sizeOf((await bundleClient(connectFloor.source)).code).gzip
  const whole = clientEntries.find(({ name }) => name === 'countersign-client')!
  const { gzip } = sizeOf((await bundleClient(whole.source)).code)
  expect(gzip - floor).toBeGreaterThan(0)
  expect(gzip - floor).toBeLessThan(13_000)
})
