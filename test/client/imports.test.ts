import { builtinModules } from 'node:module'
import { describe, expect, test } from 'vitest'
import { bundleClient, clientEntries, connectFloor, sizeOf } from '../../scripts/build-client.ts'

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

test('direct sign-in alone comes without Connect', async () => {
  const direct = clientEntries.find(({ name }) => name === 'countersign-direct')!
  const { metafile } = await bundleClient(direct.source)
  expect(Object.keys(metafile.inputs).filter((path) => path.startsWith('node_modules'))).toEqual([])
})

test('signing in costs less than 12 KB more than Connect itself', async () => {
  const floor = sizeOf((await bundleClient(connectFloor.source)).code).gzip
  const whole = clientEntries.find(({ name }) => name === 'countersign-client')!
  const { gzip } = sizeOf((await bundleClient(whole.source)).code)
  expect(gzip - floor).toBeGreaterThan(0)
  expect(gzip - floor).toBeLessThan(12_000)
})
