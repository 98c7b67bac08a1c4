import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { run } from '../support/command.ts'
import { packagedDocument } from '../support/openapi.ts'
import { hasPart } from '../support/optional.ts'
import { folderOfFile } from '../support/temporary-folder.ts'

const minuteMs = 60_000
const isComplete = hasPart('npm registry')
vi.setConfig({ testTimeout: 3 * minuteMs })

const packages = [
  'orval@8.38.0',
  '@hey-api/openapi-ts@0.99.0',
  'swagger-typescript-api@13.13.0',
  'openapi-typescript@7.13.0',
  'typescript@5.9.3',
  'zod@4.6.7',
]

const heyApi = ['-p', '@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch', 'zod', '@hey-api/schemas']

/** What each generator is called with, the modules that it writes, and a name that one of them exports. */
const generators: readonly (readonly [
  args: readonly string[],
  modules: readonly string[],
  name: string | undefined,
])[] = [
  [['orval', '--config', 'orval.config.mjs'], ['orval.ts', 'orval-zod.ts'], 'startOrder'],
  [
    ['openapi-ts', '-i', 'openapi.json', '-o', 'hey-api', ...heyApi, '--no-log-file'],
    ['hey-api/index.ts', 'hey-api/zod.gen.ts', 'hey-api/schemas.gen.ts'],
    'zStartOrderRequester',
  ],
  [
    ['swagger-typescript-api', 'generate', '-p', 'openapi.json', '-o', 'swagger', '-n', 'api.ts'],
    ['swagger/api.ts'],
    'Api',
  ],
  // It writes types only.
  [['openapi-typescript', 'openapi.json', '--output', 'types.ts'], ['types.ts'], undefined],
]

const orval = `export default {
  client: { input: 'openapi.json', output: { target: 'orval.ts', client: 'fetch' } },
  schemas: { input: 'openapi.json', output: { target: 'orval-zod.ts', client: 'zod' } },
}`

describe.skipIf(!isComplete)('what a generator makes of the OpenAPI document', () => {
  let folder = ''
  beforeAll(async () => {
    folder = folderOfFile()
    const manifest = { private: true, type: 'module', allowScripts: { esbuild: true } }
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
    await writeFile(join(folder, 'openapi.json'), JSON.stringify(packagedDocument()))
    await writeFile(join(folder, 'orval.config.mjs'), orval)
    await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], { cwd: folder })
  }, 10 * minuteMs)

  test.each(generators.map(([args, ...rest]) => [args[0], args, ...rest] as const))(
    'by %s can be imported, schemas too',
    async (_, args, modules, name) => {
      await run('npx', ['--no-install', ...args], { cwd: folder })
      const exported: string[] = []
      for (const [index, path] of modules.entries()) {
        const outfile = join(folder, `${args[0]}-${index}.mjs`)
        await build({ entryPoints: [join(folder, path)], outfile, bundle: true, format: 'esm', platform: 'node' })
        exported.push(...Object.keys(await import(/* @vite-ignore */ pathToFileURL(outfile).href)))
      }
      if (name === undefined) expect(exported).toEqual([])
      else expect(exported).toContain(name)
    },
  )
})
