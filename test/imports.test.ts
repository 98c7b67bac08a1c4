import { glob, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path/posix'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Import {
  /** A path of this repository, such as src/base/token.ts, or the name of a package as it is written. */
  readonly target: string
  /** Whether the whole statement is `import type` or `export type`, which leaves nothing at run time. */
  readonly typeOnly: boolean
}

interface Room {
  readonly room: string
  readonly files: RegExp
  /** All that files of the room may import. */
  readonly may: readonly RegExp[]
  /** What they may import in addition, by `import type` only. */
  readonly mayAsTypes?: readonly RegExp[]
  readonly because: string
}

/** What Node.js has, and the check that it is new enough. */
const node = /^(node:|src\/node-version\.js$)/
const connect = /^@connectrpc\//
const protobuf = /^@bufbuild\//
const betterAuth = /^@?better-auth(\/|$)/
const domain =
  /^src\/((sign-in|order|wallet|limits)\/|audit\/(event|trail)\.ts$|tracing\/tracing\.ts$|(challenge|errors|header-text|hex|networks|observer|origin|origin-policy|record|request|return-path|token)\.ts$)/
const contracts = /^src\/(store\/store|host\/host|wallet\/(wallet|proof|verifier))\.ts$/
const sharedWithClients = /^src\/(enum-words|rest-paths|header-text)\.ts$/
const accessTokens = /^src\/access-token\//
const tokenAndErrors = /^src\/(token|errors|observer)\.ts$/
const pageTexts = /^src\/pages\/texts\/(english|texts)\.ts$/
const timing = /^src\/timing\//
const guards = /^src\/backend\/(connect|express|fastify|grpc|hono)\.ts$/
const backend = /^src\/backend\/(?!(connect|express|fastify|grpc|hono)\.ts$)/
const storeHelpers = /^src\/store\/(store|watchers|implementation|map-store)\.ts$/
const tracing = /^src\/tracing\/tracing\.ts$/
const pem = /^src\/pem\.ts$/
const settingsAndLog = /^src\/(config(\/options)?|limits\/concurrency|log)\.ts$/

/** Which way imports run. A new folder of src is one more row; a new arrow is a decision, to be made here. */
const rooms: readonly Room[] = [
  {
    room: 'tokens, errors and observers',
    files: tokenAndErrors,
    may: [tokenAndErrors, node],
    because: 'everything stands on them, contracts included',
  },
  {
    room: 'domain',
    files:
      /^src\/((sign-in|order|limits|wallet\/(?!(wallet|proof|verifier)\.ts$))|(challenge|hex|networks|origin|origin-policy|record|request|return-path)\.ts$)/,
    may: [domain, contracts, timing, node, /^@noble\/(hashes|curves)\//, /^@scure\/base$/, /^tweetnacl$/, /^viem$/],
    mayAsTypes: [/^src\/log\.ts$/],
    because: 'its rules hold for every protocol, store and host, so it knows none of them',
  },
  {
    room: 'audit trail',
    files: /^src\/audit\/(event|trail)\.ts$/,
    may: [/^src\/audit\/event\.ts$/, node],
    because: 'everything that happens is told through it, so it knows nothing of what that is made of',
  },
  {
    room: 'where audit events go',
    files: /^src\/audit\/(?!(event|trail)\.ts$)/,
    may: [/^src\/audit\//, /^src\/log\.ts$/, contracts, timing, node],
    mayAsTypes: [tracing],
    because: 'it knows the events, and neither calls nor what they change',
  },
  {
    room: 'access tokens',
    files: accessTokens,
    may: [accessTokens, contracts, tokenAndErrors, node, /^jose$/],
    because: 'they are made of a session and the server’s secrets, whatever host and protocol the session came from',
  },
  {
    room: 'contracts of stores, hosts and wallets',
    files: contracts,
    may: [contracts, tokenAndErrors, /^src\/request\.ts$/],
    because: 'whoever implements one reads it without the rest of the code',
  },
  {
    room: 'what stores share',
    files: /^src\/store\/(watchers|implementation|map-store)\.ts$/,
    may: [storeHelpers, tokenAndErrors, timing, node],
    because: 'it serves every store, so it knows none of them',
  },
  {
    room: 'SQLite',
    files: /^src\/store\/sqlite(-copy|-format|-batcher)?\.ts$/,
    may: [/^src\/store\/sqlite-(format|batcher)\.ts$/, storeHelpers, tokenAndErrors, node],
    mayAsTypes: [/^src\/log\.ts$/],
    because: 'a store knows its contract: neither the other stores nor what is kept in it',
  },
  {
    room: 'Redis',
    files: /^src\/store\/redis\//,
    may: [/^src\/store\/redis\//, storeHelpers, tokenAndErrors, timing, pem, node, /^redis$/],
    mayAsTypes: [/^src\/log\.ts$/],
    because: 'a store knows its contract: neither the other stores nor what is kept in it',
  },
  {
    room: 'choice of the store',
    files: /^src\/store\/open\.ts$/,
    may: [/^src\/store\//, tokenAndErrors, node],
    mayAsTypes: [/^src\/log\.ts$/],
    because: 'it is the one place that knows every store',
  },
  {
    room: 'standalone host',
    files: /^src\/host\/(?!host\.ts$)/,
    may: [
      /^src\/audit\/(event|trail)\.ts$/,
      /^src\/host\//,
      contracts,
      tokenAndErrors,
      timing,
      sharedWithClients,
      /^src\/(record|request)\.ts$/,
      node,
      /^cookie$/,
    ],
    mayAsTypes: [tracing],
    because: 'a host makes sessions of identities that are proven: sign-in and orders are behind it',
  },
  {
    room: 'RPCs',
    files: /^src\/rpc\//,
    may: [
      /^src\/rpc\//,
      /^gen\/server\//,
      domain,
      accessTokens,
      contracts,
      timing,
      sharedWithClients,
      /^src\/log\.ts$/,
      connect,
      protobuf,
      node,
    ],
    because: 'a handler runs under every transport, so it knows nothing of HTTP and sockets',
  },
  {
    room: 'HTTP',
    files: /^src\/http\//,
    may: [
      /^src\/http\//,
      /^src\/rpc\//,
      /^gen\/server\//,
      // The template of the OpenAPI document, if somebody asks for that.
      /^gen\/openapi\.json$/,
      /^src\/(errors|networks|origin|origin-policy|request|return-path)\.ts$/,
      timing,
      sharedWithClients,
      settingsAndLog,
      pem,
      pageTexts,
      connect,
      protobuf,
      node,
    ],
    // It serves their public keys.
    mayAsTypes: [accessTokens],
    because: 'it reaches sign-in and orders through the RPCs, whose limits and validation hold for every call',
  },
  {
    room: 'wallet finders and their chooser',
    files: /^src\/client\/wallets\//,
    may: [
      /^src\/client\/(wallets\/|(device|errors|sent-sign-in|wallet|wallet-answer)\.ts$)/,
      /^mipd$/,
      /^@wallet-standard\/app$/,
    ],
    // They sign in with whatever client they are given.
    mayAsTypes: [/^src\/client\/(sign-in-calls|types)\.ts$/],
    because: 'pages load them on demand: they bring the wallets to the client, which knows none of them',
  },
  {
    room: 'client',
    files: /^src\/client\/(?!wallets\/)/,
    may: [
      /^src\/client\//,
      /^gen\/client\//,
      sharedWithClients,
      /^src\/return-path\.ts$/,
      /^@connectrpc\/connect(-web)?$/,
      /^@bufbuild\/protobuf(\/|$)/,
      /^uqr$/,
    ],
    mayAsTypes: [/^src\/errors\.ts$/],
    because: 'it runs in browsers, which have neither Node nor a store, and every byte of it is downloaded',
  },
  {
    room: 'React',
    files: /^src\/react\//,
    may: [
      /^src\/react\//,
      /^src\/client\/(errors|page|element\/failure)\.ts$/,
      // On demand, and in browsers only.
      /^src\/client\/element\/element\.ts$/,
      /^react$/,
    ],
    mayAsTypes: [/^src\/client\//],
    because: 'it is given a client, and loads the element in browsers: what a server renders has neither',
  },
  {
    room: 'pages',
    files: /^src\/pages\//,
    may: [
      /^src\/(pages|client)\//,
      /^src\/(wallet\/(ed25519|ed25519-adapter|strict-ed25519|nimiq|wallet)|hex|origin|return-path)\.ts$/,
      /^@noble\/hashes\//,
      /^tweetnacl$/,
      // Of the pages only: applications bring it themselves.
      /^@nimiq\/hub-api$/,
    ],
    because: 'they run in browsers, and use the client as any page does; the demo wallet signs as the adapters verify',
  },
  {
    room: 'Better Auth plugins',
    files: /^src\/better-auth\/(?!client\/)/,
    may: [
      /^src\/better-auth\/(?!client\/)/,
      /^src\/(rpc|http\/rest)\//,
      // It serves the approval page in a way of its own.
      /^src\/http\/page-(files|headers|texts)\.ts$/,
      // Better Auth reads bodies without a limit.
      /^src\/http\/(body|fetch-body)\.ts$/,
      /^gen\/server\//,
      domain,
      contracts,
      /^src\/host\/(resolve-login|refusals)\.ts$/,
      /^src\/store\/(open|watchers|map-store)\.ts$/,
      sharedWithClients,
      settingsAndLog,
      protobuf,
      betterAuth,
      node,
    ],
    mayAsTypes: [/^src\/client\/types\.ts$/],
    because: 'Better Auth has users, sessions and a server of its own, so the standalone ones stay out',
  },
  {
    room: 'Better Auth client',
    files: /^src\/better-auth\/client\//,
    may: [/^src\/better-auth\/client\//, /^src\/client\//, sharedWithClients, /^better-auth\/client$/],
    mayAsTypes: [/^src\/better-auth\//],
    because: 'it runs in browsers; of the plugins it needs the types, from which Better Auth infers its own',
  },
  {
    room: 'proofs',
    files: /^src\/proof\//,
    may: [
      /^src\/proof\//,
      // All of it runs in browsers, which test/integrations/proof/imports.test.ts shows.
      /^src\/wallet\/(adapters|proof|verifier|wallet|strict-ed25519|ethereum\/(address|rpc))\.ts$/,
      /^src\/order\/canonical-payload\.ts$/,
      /^src\/(challenge|errors|origin)\.ts$/,
      /^@noble\/hashes\//,
      /^@scure\/base$/,
    ],
    because: 'it runs in browsers too, asks no service, and judges wallets as the service does',
  },
  {
    room: 'checks of backends',
    files: backend,
    may: [
      backend,
      /^src\/timing\/slots\.ts$/,
      sharedWithClients,
      /^src\/origin\.ts$/,
      /^@(noble\/hashes\/|scure\/base$)/,
      /^jose$/,
    ],
    because: 'it runs in other programs, on edge runtimes too, so it knows the service by its calls only',
  },
  {
    room: 'guards of backends',
    files: guards,
    may: [backend, /^@connectrpc\/connect$/, /^@grpc\/grpc-js$/],
    mayAsTypes: [/^hono$/],
    because: 'each is loaded by those who have its framework, so nothing else imports one',
  },
  {
    room: 'contract suites',
    files: /^src\/testing\//,
    may: [/^src\/testing\//, domain, contracts, node],
    because: 'they test parts that others wrote, so they know the contracts and no part that keeps them',
  },
  {
    room: 'settings',
    files: /^src\/config(\.ts$|\/)/,
    may: [
      /^src\/config\//,
      /^src\/audit\/(event|webhook-form)\.ts$/,
      domain,
      contracts,
      /^src\/store\/map-store\.ts$/,
      /^src\/log\.ts$/,
      node,
    ],
    mayAsTypes: [/^src\/host\/resolve-login\.ts$/],
    because: 'they are checked before anything is started',
  },
  {
    room: 'what server and clients share',
    files: sharedWithClients,
    may: [],
    mayAsTypes: [protobuf],
    because: 'browsers download it',
  },
  {
    room: 'timing',
    files: timing,
    may: [timing],
    because: 'it shares out the event loop among all others, so it knows none of them',
  },
  {
    room: 'log and version',
    files: /^src\/(log|version)\.ts$/,
    may: [/^src\/log\.ts$/, node],
    because: 'everything may use them, so they use nothing but the log',
  },
  {
    room: 'metrics',
    files: /^src\/metrics\//,
    may: [
      /^src\/metrics\//,
      /^src\/(errors|limits\/limits|version)\.ts$/,
      /^src\/store\/map-store\.ts$/,
      // A port is listened on in one way.
      /^src\/http\/port\/listen\.ts$/,
      timing,
      node,
      /^prom-client$/,
    ],
    mayAsTypes: [
      /^src\/(limits\/concurrency|observer)\.ts$/,
      /^src\/audit\/event\.ts$/,
      /^src\/order\/order\.ts$/,
      /^src\/rpc\/invoke\.ts$/,
    ],
    because: 'it is told of what the others do, and does nothing for them',
  },
  {
    room: 'certificates and keys in files',
    files: pem,
    may: [node],
    because: 'the port and Redis read theirs in the same way',
  },
  {
    room: 'what traces are told',
    files: tracing,
    may: [],
    mayAsTypes: [/^src\/(errors|request)\.ts$/],
    because: 'everybody can tell of a step, so it knows nothing of what steps are made of, nor of OpenTelemetry',
  },
  {
    room: 'tracing',
    files: /^src\/tracing\/(?!tracing\.ts$)/,
    may: [tracing, /^src\/store\/(store|map-store)\.ts$/, /^src\/opentelemetry\/index\.ts$/, /^@opentelemetry\/api$/],
    because: 'it puts tracing around others, and loads OpenTelemetry if a setting asks for it',
  },
  {
    room: 'OpenTelemetry',
    files: /^src\/opentelemetry\//,
    may: [/^src\/(errors|request|version)\.ts$/, /^@opentelemetry\/api$/],
    mayAsTypes: [tracing],
    because: 'it makes spans of what it is told, and is loaded by those alone who want some',
  },
  {
    room: 'composition',
    files: /^src\/(countersign|live-secrets|service-store)\.ts$/,
    may: [
      /^src\/(live-secrets|service-store)\.ts$/,
      domain,
      accessTokens,
      contracts,
      settingsAndLog,
      /^src\/(audit|store|host|http|metrics|rpc|timing|tracing)\//,
      connect,
      node,
    ],
    because: 'it is the one place that puts the parts together',
  },
  {
    room: 'entries',
    files: /^src\/((index|main|lan)\.ts|node-version\.js|commands\/.*\.ts)$/,
    may: [
      domain,
      contracts,
      settingsAndLog,
      /^src\/((countersign|service-store|lan|version)\.ts|node-version\.js|commands\/.*\.ts)$/,
      /^src\/live-secrets\.ts$/,
      // For the command `verify`, which needs no service.
      /^src\/proof\/index\.ts$/,
      // For the command `doctor`, which reads addresses as settings, asks a service as its clients do, and tries its port.
      /^src\/(config\/kinds|rest-paths|http\/port\/listen)\.ts$/,
      // For the command `admin`, which tells of changes, and drops what waits of a deleted user.
      /^src\/audit\/(trail|webhook-queue)\.ts$/,
      /^src\/(store|host)\//,
      // For workers, whose metrics the process that started them sums up.
      /^src\/(metrics\/(metrics-server|summed-metrics)|timing\/one-at-a-time)\.ts$/,
      node,
    ],
    mayAsTypes: [/^src\/http\/(app|fetch-exchange|node-request)\.ts$/],
    because: 'the command and the package have only what the composition offers, and the types of its options',
  },
]

const imports = await importsOfSources()

describe('imports run one way', () => {
  for (const { room, files, may, mayAsTypes = [], because } of rooms) {
    test(`${room}: ${because}`, () => {
      const fits = ({ target, typeOnly }: Import): boolean =>
        [...may, ...(typeOnly ? mayAsTypes : [])].some((pattern) => pattern.test(target))
      const own = [...imports].filter(([file]) => files.test(file))
      expect(own, 'the room has files').not.toEqual([])
      const breaches = own.flatMap(([file, all]) =>
        all
          .filter((one) => !fits(one))
          .map(({ target, typeOnly }) => `${file} imports ${typeOnly ? 'types of ' : ''}${target}`),
      )
      expect(breaches).toEqual([])
    })
  }
})

test('every file of src is in exactly one room', () => {
  const misplaced = [...imports.keys()].filter((file) => rooms.filter(({ files }) => files.test(file)).length !== 1)
  expect(misplaced).toEqual([])
})

test('no file of src imports itself, directly or through others, types included', () => {
  expect(circles()).toEqual([])
})

test('every import that esbuild sees is found in the text', async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [
      'src/index.ts',
      'src/main.ts',
      'src/client/index.ts',
      'src/better-auth/index.ts',
      'src/integrations/proof/index.ts',
      'src/react/index.ts',
    ],
    outdir: 'not-written',
    bundle: true,
    packages: 'external',
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
    found.set(file, [
      ...statements.map(([, type, path = '']) => ({ target: resolve(file, path), typeOnly: type !== undefined })),
      ...calls.map(([, path = '']) => ({ target: resolve(file, path), typeOnly: false })),
    ])
  }
  return found
}

function resolve(file: string, path: string): string {
  return path.startsWith('.') ? normalize(join(dirname(file), path)) : path
}

/** A circle of imports for each file that closes one. */
function circles(): string[] {
  const found: string[] = []
  const done = new Set<string>()
  const visit = (file: string, way: readonly string[]): void => {
    const start = way.indexOf(file)
    if (start !== -1) found.push([...way.slice(start), file].join(' > '))
    if (start !== -1 || done.has(file)) return
    for (const { target } of imports.get(file) ?? []) visit(target, [...way, file])
    done.add(file)
  }
  for (const file of imports.keys()) visit(file, [])
  return found
}
