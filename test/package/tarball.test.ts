import { readFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { expect, test } from 'vitest'
import { commitOfBuild } from '../../scripts/build-commit.ts'
import { packPackage } from '../../scripts/pack.ts'
import { version } from '../../src/base/version.ts'
import { run } from '../support/command.ts'
import { readFromRoot } from '../support/repository.ts'
import { manifestOf, root } from '../types/emit.ts'

const tarball = new Uint8Array(await readFile(await packPackage()))
const published = createPackageFromTarballData(tarball)
const folder = '/node_modules/countersign/'
/** The files of the package, by their paths in it. */
const files = published.listFiles().map((file) => file.slice(folder.length))
const read = (file: string): string => published.readFile(folder + file)

test('the package has what it is built to, definitions, documents, examples and the licence, and nothing else', async () => {
  const expected =
    /^(dist\/(src|gen)\/.*\.(js|d\.ts)|dist\/pages\.json|dist\/client\/[^/]+\.js(on)?|(gen\/)?proto\/.*\.(proto|md)|(dist\/)?gen\/openapi\.json|docs\/((decisions\/)?[^/]+\.md|texts\.en\.json)|examples\/.*\.(tsx?|[cm]?js|vue|svelte|py|go|dart|kt|swift|html|json|md|sh|rb|php|ya?ml|conf|ini|cfg|env|ext)|deploy\/.*\.(ya?ml|json|md|conf|cfg|service)|deploy\/(.*\/)?([^/]*Caddyfile|Dockerfile)|(bench|src)\/README\.md|test\/vectors\/proofs\.json|package\.json|llms\.txt|[A-Z]+\.md|LICENSE)$/
  expect(files.filter((file) => !expected.test(file))).toEqual([])
  expect(
    files.filter((file) => /(^|\/)node_modules\/|\.test\.|\.test-d\.|\.map$/.test(file) && !/^examples\//.test(file)),
  ).toEqual([])
  expect(files).toEqual(
    expect.arrayContaining([
      'dist/src/main.js',
      'dist/src/index.d.ts',
      'dist/pages.json',
      'dist/client/countersign-sign-in.js',
      'proto/countersign/v1/order_service.proto',
      'docs/client.md',
      'examples/react/app.tsx',
      'examples/next/app/.well-known/[...path]/route.ts',
      'README.md',
      'llms.txt',
    ]),
  )
  expect(read('LICENSE')).toBe(await readFromRoot('LICENSE'))
})

test('nothing in it points to source maps or to places on the machine that packed it', () => {
  const traces = [
    '\n//# sourceMappingURL=',
    root,
    join(homedir(), 'x').slice(0, -1),
    join(tmpdir(), 'countersign-package-'),
  ]
  expect(files.length).toBeGreaterThan(600)
  expect(files.filter((file) => traces.some((trace) => trace !== '/' && read(file).includes(trace)))).toEqual([])
})

test('its manifest runs no script and brings nothing that only development needs', async () => {
  const manifest = JSON.parse(read('package.json'))
  const kept = JSON.parse(await readFromRoot('package.json'))
  for (const field of ['allowScripts', 'devDependencies', 'optionalDependencies', 'scripts']) delete kept[field]
  expect(manifest).toEqual(kept)
  expect(manifest.version).toBe(version)
  expect(Object.keys(manifest.peerDependenciesMeta).sort()).toEqual(Object.keys(manifest.peerDependencies).sort())
})

test('it names the commit that it was built from, if the working tree has no changes', () => {
  const commit = commitOfBuild()
  const line = `export const commit = ${commit === undefined ? 'undefined' : `'${commit}'`};`
  expect(read('dist/src/base/version.js')).toContain(line)
})

test('npm pack in the working tree is refused and names the command that packs', async () => {
  const packing = run('npm', ['pack', '--dry-run'], { cwd: root })
  await expect(packing).rejects.toMatchObject({ stdout: expect.stringContaining('npm run package') })
})

test('the examples import the package by its name, and no file of the repository', () => {
  const programs = files.filter((file) => /^examples\/.*\.(tsx?|mjs)$/.test(file))
  expect(programs.length).toBeGreaterThan(20)
  const imported = programs.flatMap((file) => {
    const relative = [...read(file).matchAll(/\bfrom '(\.[^']+)'/g)].map(([, specifier = '']) => specifier)
    return relative.map((specifier) => posix.join(posix.dirname(file), specifier))
  })
  expect(imported.filter((file) => !file.startsWith('examples/'))).toEqual([])
  expect(read('examples/backend/connect.ts')).toContain("from 'countersign/gen/session_service_pb.js'")
  expect(read('examples/better-auth/page.ts')).toContain("from 'countersign/better-auth/client'")
})

test('every relative link of its documents leads to something in it, but for pictures', () => {
  const documents = files.filter((file) => file.endsWith('.md'))
  expect(documents.length).toBeGreaterThan(20)
  const links = documents.flatMap((file) => {
    const prose = read(file).replace(/^```[\s\S]*?^```|!\[[^\]]*\]\([^)]*\)/gm, '')
    const targets = [...prose.matchAll(/\]\(([^)\s]+)[^)]*\)|<(?:a|img)\b[^>]*\b(?:href|src)="([^"]+)"/g)]
    return targets.map(([, markdown, html]) => ({ file, target: (markdown ?? html ?? '').replace(/#.*/, '') }))
  })
  const relative = links.filter(({ target }) => target !== '' && !/^[a-z][a-z+.-]*:/.test(target))
  expect(relative.length).toBeGreaterThan(50)
  const isThere = (path: string): boolean => files.some((file) => file === path || file.startsWith(`${path}/`))
  const dead = relative.filter(
    ({ file, target }) => !isThere(posix.join(posix.dirname(file), target).replace(/\/$/, '')),
  )
  expect(dead).toEqual([])
})

test('publint has nothing to say about it, not even a suggestion', async () => {
  const { messages } = await publint({ pack: { tarball: tarball.buffer }, strict: true, level: 'suggestion' })
  expect(messages).toEqual([])
})

test('its types are those that TypeScript finds for each entry, wherever a current resolution can find them', async () => {
  const { exports } = await manifestOf()
  const generated = ['gen/sign_in_service_pb.js', 'gen/sign_in_service_pb']
  const options = {
    includeEntrypoints: generated.flatMap((name) => [name, name.replace('gen/', 'gen/countersign/v1/')]),
  }
  const result = await checkPackage(published, options)
  if (result.types === false) throw new Error('the package has no types')
  expect(Object.keys(result.entrypoints)).toEqual(expect.arrayContaining(Object.keys(exports)))
  const intended = [
    // The package is ESM only. From Node 22 on, `require` loads it all the same.
    'CJSResolvesToESM',
    // `moduleResolution: node10` knows no `exports`. TypeScript 7 no longer has it, and older ones name the cure in the
    // error.
    'NoResolution node10',
  ]
  const problems = result.problems.map(({ kind, ...problem }) => ({
    problem: [kind, kind === 'NoResolution' && 'resolutionKind' in problem ? problem.resolutionKind : '']
      .join(' ')
      .trim(),
    at: 'entrypoint' in problem ? problem.entrypoint : '',
  }))
  expect(problems.filter(({ problem }) => !intended.includes(problem))).toEqual([])
  // Each is still what it was excused for.
  expect(new Set(problems.map(({ problem }) => problem))).toEqual(new Set(intended))
})
