import { cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../support/command.ts'
import { readFromRoot } from '../support/repository.ts'
import { makeProject, manifestOf, root, tsc } from './emit.ts'

/** The files here that use the package as its users do, by the subpath that they are about. */
const files: Readonly<Record<string, string>> = {
  '.': 'main.test-d.ts',
  './client': 'client.test-d.ts',
  './client/connect': 'connect.test-d.ts',
  './client/element': 'element.test-d.ts',
  './client/siwe': 'client-siwe.test-d.ts',
  './client/wallets': 'client-wallets.test-d.ts',
  './better-auth': 'better-auth.test-d.ts',
  './better-auth/client': 'better-auth-client.test-d.ts',
  './testing': 'testing.test-d.ts',
  './core': 'core.test-d.ts',
  './approvals': 'approvals.test-d.ts',
  './proof': 'proof.test-d.ts',
  './gen/*': 'gen.test-d.ts',
  './backend': 'backend.test-d.ts',
  './backend/connect': 'backend-connect.test-d.ts',
  './backend/express': 'backend-express.test-d.ts',
  './backend/fastify': 'backend-fastify.test-d.ts',
  './backend/grpc': 'backend-grpc.test-d.ts',
  './backend/hono': 'backend-hono.test-d.ts',
  './opentelemetry': 'opentelemetry.test-d.ts',
  './react': 'react.test-d.tsx',
}
const examples = ['custom-adapter', 'custom-store']

const compilerOptions = {
  module: 'nodenext',
  target: 'es2024',
  lib: ['es2024', 'dom', 'dom.iterable', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  allowImportingTsExtensions: true,
  jsx: 'react-jsx',
  noEmit: true,
  // So that a type that this package's declarations cannot find is an error, and not silently `any`.
  skipLibCheck: false,
}

test('every subpath has a file of typical calls', async () => {
  const { exports } = await manifestOf()
  const typed = Object.entries(exports).filter(([, target]) => typeof target !== 'string')
  // The generated modules can be written in several forms.
  const subpaths = typed.map(([subpath]) => subpath.replace(/^\.\/gen\/.*/, './gen/*'))
  expect(Object.keys(files).sort()).toEqual([...new Set(subpaths)].sort())
  const here = (await readdir(join(root, 'test/types'))).filter((name) => /\.test-d\.tsx?$/.test(name))
  expect(here.sort()).toEqual([...Object.values(files), 'service-handlers.test-d.ts'].sort())
})

test('in a project that has the package installed, typical calls, the snippets of docs/react.md and the examples compile, and the examples pass', async () => {
  const folder = await makeProject()
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'user', type: 'module' }))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*'] }))
  for (const file of Object.values(files)) await cp(join(root, 'test/types', file), join(folder, file))
  for (const example of examples) {
    await cp(join(root, 'examples', example), join(folder, example), { recursive: true })
  }
  const page = await readFromRoot('docs/react.md')
  const snippets = [...page.matchAll(/```tsx\n(?:\/\/ (\S+)\n)?([\s\S]*?)```/g)].map(([, name, text = ''], index) => ({
    name: name ?? `snippet-${index}.tsx`,
    text,
  }))
  expect(snippets.length).toBeGreaterThan(3)
  // As the compilers of bundlers take them.
  const react = join(folder, 'react')
  await mkdir(react)
  for (const { name, text } of snippets) await writeFile(join(react, name), text)
  const { allowImportingTsExtensions: _, ...options } = compilerOptions
  const bundled = { ...options, module: 'esnext', moduleResolution: 'bundler' }
  await writeFile(join(react, 'tsconfig.json'), JSON.stringify({ compilerOptions: bundled, include: ['*'] }))

  for (const cwd of [folder, react]) {
    const printed = await run(process.execPath, [tsc, '--pretty', 'false'], { cwd }).then(
      () => '',
      ({ stdout }: { stdout: string }) => stdout,
    )
    // The declarations of other packages are theirs to mend.
    const isOwn = /^(?!(\.\.\/)+(?!node_modules\/countersign\/)|node_modules\/(?!countersign\/)|\s|$)/
    expect(printed.split('\n').filter((line) => isOwn.test(line))).toEqual([])
  }

  for (const example of examples) {
    const tests = (await readdir(join(folder, example))).filter((name) => name.endsWith('.test.ts'))
    const args = ['--test', '--test-reporter=tap', ...tests.map((name) => join(folder, example, name))]
    // Without the variable that tells node:test that it runs within another test runner of Node's own.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const { stdout } = await run(process.execPath, args, { cwd: folder, env, timeout: 120_000 })
    expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(15)
    expect(stdout).toMatch(/^# fail 0$/m)
  }
}, 240_000)
