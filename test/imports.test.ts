import { glob, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path/posix'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** A folder of src. `may`: the rooms and packages that its files may import. `types`: by `import type` only. */
interface Room {
  readonly may: readonly string[]
  readonly types?: readonly string[]
  /** Single files that import more, each with what it imports. */
  readonly except?: Readonly<Record<string, readonly string[]>>
}

const protobuf = ['@bufbuild/protobuf', 'gen/server']
const domain = ['shared', 'base', 'limits', 'core', 'core/order/kinds']
const server = [...domain, 'store', 'rpc', 'observe', 'wire', 'http', 'node:']

/** Which way imports run. A new folder of src is one more row; a new entry of a row is a decision, to be made here. */
const rooms: Readonly<Record<string, Room>> = {
  // Server and browser both need it, so it stands on nothing of either.
  shared: { may: ['@noble/hashes'], types: ['@bufbuild/protobuf'] },
  base: { may: ['shared', '@noble/curves', 'node:'] },
  // A store knows its contract only, and nothing of nonces, orders or sessions.
  store: { may: ['shared', 'base', 'redis', 'pg', 'node:'] },
  limits: { may: ['shared', 'base', 'node:'], types: ['store'] },
  // The rules hold for every protocol, store and host, so they name none of them.
  core: {
    may: [...domain, '@noble/curves', '@noble/hashes', '@scure/base', 'jose', 'tweetnacl', 'node:'],
    types: ['store'],
  },
  // The state machine asks the recipes, so these import nothing of the state machine.
  'core/order/kinds': {
    may: ['shared', 'base', 'node:'],
    types: ['core', 'limits', 'store'],
    except: { 'link.ts': ['core'] },
  },
  rpc: {
    may: [...domain, ...protobuf, '@connectrpc/connect'],
    except: { 'rules.ts': ['node:'] },
  },
  // A server of Connect, gRPC and gRPC-Web by itself: it is given the RPCs, as connect-node's adapter is given routes.
  wire: { may: ['@bufbuild/protobuf', '@connectrpc/connect', 'node:'] },
  observe: {
    may: ['shared', 'base', 'limits', 'store', 'prom-client', 'node:'],
    types: ['rpc', 'core', '@opentelemetry/api'],
    // Its own subpath: nothing of the package loads without the import.
    except: { 'opentelemetry/index.ts': ['@opentelemetry/api'] },
  },
  http: {
    may: [...domain, ...protobuf, 'rpc', 'wire', '@connectrpc/connect', 'gen/openapi.json', '#pages', 'node:'],
  },
  // The issuer is a part with a seam. Only its own folder names the library. The rest reaches that folder at two places:
  // a service by `import()`, once there is a clients file, and commands without the library.
  oidc: {
    may: ['shared', 'base', 'limits', 'store', 'observe', 'wire', 'http', 'oidc-provider', 'jose', 'node:'],
    types: ['core', 'rpc'],
  },
  service: {
    may: [...server, '@connectrpc/connect'],
    types: ['gen/options.ts'],
    except: { 'countersign.ts': ['oidc'], 'start-checks.ts': ['@opentelemetry/api'] },
  },
  commands: {
    may: [...domain, 'store', 'observe', 'http', 'service', 'node:', 'integrations/proof'],
    except: { 'oidc.ts': ['oidc'] },
  },
  'better-auth': {
    may: [...server, ...protobuf, 'service', '@better-auth/core', 'better-auth'],
    types: ['browser/client'],
  },
  // What a browser imports reaches no node:, Redis or SQLite.
  'browser/client': {
    may: ['shared', 'gen/client', '@bufbuild/protobuf', '@connectrpc/connect'],
  },
  'browser/wallets': {
    may: ['shared', 'browser/client'],
    except: {
      'demo-wallet.ts': ['core', 'tweetnacl', '@noble/hashes'],
      'ethereum-wallet.ts': ['mipd'],
      'solana-wallet.ts': ['@wallet-standard/app'],
    },
  },
  'browser/element': { may: ['shared', 'browser/client', 'browser/wallets', 'uqr'] },
  'browser/pages': {
    may: ['shared', 'browser/client', 'browser/wallets', 'browser/element', '@nimiq/hub-api'],
    except: {
      // One page keeps to the generated clients.
      'demo.ts': ['@connectrpc/connect-web'],
      'demo-sign.ts': ['core', 'tweetnacl', '@noble/hashes'],
      'signing.ts': ['core', '@noble/hashes'],
    },
  },
  'browser/react': { may: ['browser/client', 'browser/element', 'react'], types: ['browser/wallets'] },
  'browser/better-auth': { may: ['shared', 'browser/client', 'better-auth'] },
  // Backends on edge runtimes have no node:.
  'integrations/backend': {
    may: ['shared', '@noble/hashes', '@scure/base', 'jose', '@connectrpc/connect', '@grpc/grpc-js', 'hono'],
    types: ['base', 'service', 'node:'],
    except: { 'introspection.ts': ['base'] },
  },
  // No store, and nothing of Node.js: it runs where WebCrypto does.
  'integrations/core': { may: ['shared', 'core', '@scure/base'] },
  'integrations/proof': { may: ['shared', 'core', '@noble/hashes', '@scure/base'] },
  'integrations/approvals': {
    may: ['shared', 'core', 'integrations/proof', '@scure/base'],
    types: ['integrations/backend'],
  },
  'integrations/testing': { may: ['shared', 'core', 'node:'], types: ['base', 'store'] },
  'index.ts': { may: server.concat('service') },
  'main.ts': { may: ['base', 'commands'] },
}

interface Import {
  /** A path of this repository, such as src/base/token.ts, or the name of a package as it is written. */
  readonly target: string
  /** Whether the whole statement is `import type` or `export type`, which leaves nothing at run time. */
  readonly typeOnly: boolean
}

const imports = await importsOfSources()

function roomOf(file: string): string {
  if (file.startsWith('src/core/order/kinds/')) return 'core/order/kinds'
  const [, room = '', inner = ''] = file.split('/')
  return room === 'integrations' || room === 'browser' ? `${room}/${inner}` : room
}

/** What a row calls a target: a room, a folder of gen, or a package. */
function nameOf(target: string): string {
  if (target.startsWith('src/')) return roomOf(target)
  if (target.startsWith('gen/')) return target.split('/', 2).join('/')
  if (target.startsWith('node:')) return 'node:'
  return /^(@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? target
}

test.each(Object.entries(rooms))('src/%s imports what its row says', (room, { may, types = [], except = {} }) => {
  const own = [...imports].filter(([file]) => roomOf(file) === room)
  expect(own, 'the room has files').not.toEqual([])
  const breaches = own.flatMap(([file, all]) => {
    const more = except[file.slice(`src/${room}/`.length)] ?? []
    const allowed = (typeOnly: boolean): readonly string[] => [room, ...may, ...more, ...(typeOnly ? types : [])]
    return all
      .filter(({ target, typeOnly }) => !allowed(typeOnly).includes(nameOf(target)))
      .map(({ target, typeOnly }) => `${file} imports ${typeOnly ? 'types of ' : ''}${target}`)
  })
  expect(breaches).toEqual([])
})

test('every file of src is in a room', () => {
  expect([...imports.keys()].filter((file) => rooms[roomOf(file)] === undefined)).toEqual([])
})

test('no two files import each other, not even by way of others or for types only', () => {
  const targetsOf = (file: string): string[] => (imports.get(file) ?? []).map(({ target }) => target)
  const reachesItself = (file: string): boolean => {
    const reached = new Set(targetsOf(file))
    // A set also yields what is added meanwhile.
    for (const other of reached) for (const target of targetsOf(other)) reached.add(target)
    return reached.has(file)
  }
  expect([...imports.keys()].filter(reachesItself)).toEqual([])
})

test('every import that esbuild sees is found in the text', async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [
      'index',
      'main',
      'browser/client/index',
      'better-auth/index',
      'integrations/approvals/index',
      'integrations/proof/index',
      'browser/react/index',
    ].map((entry) => `src/${entry}.ts`),
    outdir: 'not-written',
    bundle: true,
    packages: 'external',
    // Built, and not a source.
    external: ['#pages'],
    format: 'esm',
    platform: 'node',
    metafile: true,
    write: false,
  })
  const missed = Object.entries(metafile.inputs).flatMap(([file, input]) => {
    const found = new Set(imports.get(file)?.map(({ target }) => target))
    return input.imports
      .filter(({ path }) => file.startsWith('src/') && !found.has(path))
      .map(({ path }) => `${file} imports ${path}`)
  })
  expect(missed).toEqual([])
})

/** What each file of src imports, types included: bundlers drop those, so the text is read. */
async function importsOfSources(): Promise<ReadonlyMap<string, readonly Import[]>> {
  const found = new Map<string, readonly Import[]>()
  for await (const file of glob('src/**/*.{ts,js}', { cwd: root })) {
    const text = await readFile(join(root, file), 'utf8')
    const statements = [...text.matchAll(/^(?:import|export)\s+(type\s+)?(?:[\w$*{},\s]+?\sfrom\s+)?'([^']+)'/gm)]
    const calls = [...text.matchAll(/\bimport\(\s*'([^']+)'/g)]
    const resolve = (path: string): string => (path.startsWith('.') ? normalize(join(dirname(file), path)) : path)
    found.set(file, [
      ...statements.map(([, type, path = '']) => ({ target: resolve(path), typeOnly: type !== undefined })),
      ...calls.map(([, path = '']) => ({ target: resolve(path), typeOnly: false })),
    ])
  }
  return found
}
