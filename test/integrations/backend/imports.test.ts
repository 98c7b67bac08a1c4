import { builtinModules } from 'node:module'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

/** The packages and modules of Node that an entry loads, with all that it imports itself. */
async function loadedBy(entry: string): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: new URL('../../..', import.meta.url).pathname,
    entryPoints: [`src/integrations/backend/${entry}.ts`],
    outdir: 'not-written',
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'neutral',
    metafile: true,
    write: false,
  })
  const all = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path))
  return [...new Set(all)].sort()
}

test('the verifier loads nothing of Node, of Connect or of a framework', async () => {
  const builtins = [...builtinModules, ...builtinModules.map((name) => `node:${name}`)]
  const loaded = await loadedBy('index')
  expect(loaded).toContain('@noble/hashes/sha2.js')
  const foreign = /^(@connectrpc|@grpc|express|fastify|hono|redis)(\/|$)/
  expect(loaded.filter((path) => builtins.includes(path) || foreign.test(path))).toEqual([])
})

test.each([
  ['connect', ['@connectrpc/connect']],
  ['express', []],
  ['fastify', []],
  ['grpc', ['@grpc/grpc-js']],
  ['hono', []],
])('the guard of %s loads its own framework, if any', async (entry, packages) => {
  expect(await loadedBy(entry)).toEqual(packages)
})
