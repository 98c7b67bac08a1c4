import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folderOfFile } from '../support/temporary-folder.ts'
import { type Declaration, reachableFrom } from './declarations.ts'
import { emit, manifestOf, packagesOfBetterAuth } from './emit.ts'

const manifest = await manifestOf()

/** The package's own declarations, as `npm run build` emits them. */
const folder = folderOfFile()
await emit(folder)

/** The entries of the package that are one module each, by subpath. */
const entries = Object.entries(manifest.exports).flatMap(([subpath, target]) =>
  typeof target === 'string' || target.types.includes('*')
    ? []
    : [{ subpath, file: join(folder, target.types.replace('./dist/', '')) }],
)
const reached = new Map(entries.map(({ subpath, file }) => [subpath, reachableFrom(file)]))

function shown({ file, name }: Declaration): string {
  return `${name} of ${relative(folder, file)}`
}

/** Entries that are of no use without another one: what that one exports, its users can name. */
const buildsOn: Readonly<Record<string, readonly string[]>> = {
  './testing': ['.'],
  './approvals': ['./proof'],
  './better-auth': ['.'],
  './client/element': ['./client', './client/wallets'],
  './client/siwe': ['./client'],
  './client/wallets': ['./client'],
  './opentelemetry': ['.'],
  './backend/connect': ['./backend'],
  './backend/express': ['./backend'],
  './backend/fastify': ['./backend'],
  './backend/grpc': ['./backend'],
  './backend/hono': ['./backend'],
  './better-auth/client': ['./better-auth', '.', './client'],
  './react': ['./client', './client/element', './client/wallets'],
}

/** What the users of an entry can name. */
function nameable(subpath: string): Set<string> {
  const at = [subpath, ...(buildsOn[subpath] ?? [])]
  return new Set(at.flatMap((each) => reached.get(each)?.exported ?? []).map(shown))
}

/** Generated code has a subpath of its own, `./gen/*`. */
function isGenerated({ file }: Declaration): boolean {
  return file.startsWith(join(folder, 'gen/client/'))
}

describe.each(entries)('$subpath', ({ subpath }) => {
  const { exported, types, functions, packages } = reached.get(subpath)!

  test('exports something', () => expect(exported.length).toBeGreaterThan(0))

  test('exports every type that its exports name, or builds on an entry that does', () => {
    const names = nameable(subpath)
    expect(types.filter((type) => !isGenerated(type) && !names.has(shown(type))).map(shown)).toEqual([])
  })

  test('names no function by its type that no subpath exports', () => {
    const names = new Set([...reached.values()].flatMap((each) => each.exported.map(shown)))
    expect(functions.filter((each) => !names.has(shown(each))).map(shown)).toEqual([])
  })

  test('names no type of a package that its users may not have', async () => {
    const had = [
      ...Object.keys(manifest.dependencies),
      // The framework that its user has.
      ...(subpath === './backend/grpc' ? ['@grpc/grpc-js'] : []),
      ...(subpath === './backend/hono' ? ['hono'] : []),
      ...(subpath === './react' ? ['react'] : []),
      ...(subpath.startsWith('./better-auth')
        ? [...Object.keys(manifest.peerDependencies), ...(await packagesOfBetterAuth())]
        : []),
    ]
    expect(packages.filter((name) => !had.includes(name))).toEqual([])
  })
})
