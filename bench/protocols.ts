import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { enveloped, GrpcConnection, pathOf } from './grpc.ts'
import { type Http1Connection, Http1Pool } from './http1.ts'
import { restPaths } from './rest.ts'
import { publicUrl } from './servers.ts'
import { makeWallets, type Wallet } from './wallets.ts'

const { issueNonce, verifySignIn } = SignInService.method
const { getCurrentSession } = SessionService.method
const emptyMessage = new Uint8Array()
/** The calls in flight over HTTP/2 are spread over so many connections. */
const http2Connections = 4

/** Most sessions of a user. Beyond it, each sign-in ends one too, which floors do not. */
const mostSessions = 100
/**
 * Few enough that all have signed in at a server before it is measured, as most people have; and so many that none has too many
 * sessions: a quick machine asks a server for 300,000 sign-ins, most of them in turns that do not count.
 */
const wallets = makeWallets(8192)
/** How many sign-ins each server was asked for, by its port. */
const signInsAt = new Map<number, number>()

/** The wallet that has not signed in for longest, at a server or, without a port, at any. */
export function nextWallet(port = 0): Wallet {
  return wallets[nextAt(port) % wallets.length] as Wallet
}

/** Whether a server was asked to sign in everybody who will ask it. */
export function knowsAll(port: number, isPeer: boolean): boolean {
  return (signInsAt.get(port) ?? 0) >= (isPeer ? accountCount : wallets.length)
}

/** Forgets a server that has ended. */
export function forgetSignIns(port: number): void {
  if ((signInsAt.get(port) ?? 0) > mostSessions * wallets.length) {
    console.log(`\nNOT COMPARABLE: wallets had more than ${mostSessions} sessions, so sign-ins ended sessions too`)
  }
  signInsAt.delete(port)
}

function nextAt(port: number): number {
  const before = signInsAt.get(port) ?? 0
  signInsAt.set(port, before + 1)
  return before
}

/** What is asked of a server; `worker` says which of those in flight asks. */
export interface Client {
  /** Signs in and resolves with the session's token. */
  signIn(worker: number): Promise<string>
  /** Asks for the session of a token; rejects if there is none. */
  check(worker: number, token: string): Promise<unknown>
}

/** One of the ways to speak to a server. */
export interface Protocol {
  readonly name: string
  readonly http: 'http' | 'http2'
  /** Connects for so many in flight. Connections join `open`. */
  connect(port: number, concurrency: number, open: DisposableStack): Promise<Client>
}

/** Asks over HTTP/1.1, a connection for each in flight. */
function overHttp1(
  name: string,
  clientOf: (connectionOf: (worker: number) => Http1Connection, port: number) => Client,
): Protocol {
  return {
    name,
    http: 'http',
    async connect(port, _concurrency, open) {
      const pool = open.use(new Http1Pool(port))
      return clientOf((worker) => pool.of(worker), port)
    },
  }
}

async function signInByJson(
  connection: Http1Connection,
  port: number,
  noncePath: string,
  verifyPath: string,
): Promise<string> {
  const { nonceId, message } = await connection.postJson(noncePath, {})
  const proof = { nonceId, ...nextWallet(port).prove(message) }
  return (await connection.postJson(verifyPath, proof)).token
}

/** Sends a protobuf message to a path, with a token if one is given, and returns that of the answer. */
type BinaryCall = (worker: number, path: string, message: Uint8Array, token?: string) => Promise<Uint8Array>

function byMessages(port: number, call: BinaryCall): Client {
  return {
    async signIn(worker) {
      const challenge = await call(worker, pathOf(issueNonce), emptyMessage)
      const { nonceId, message } = fromBinary(issueNonce.output, challenge)
      const proof = create(verifySignIn.input, { nonceId, ...nextWallet(port).prove(message) })
      const answer = await call(worker, pathOf(verifySignIn), toBinary(verifySignIn.input, proof))
      return fromBinary(verifySignIn.output, answer).token
    },
    check: (worker, token) => call(worker, pathOf(getCurrentSession), emptyMessage, token),
  }
}

function bearer(token: string | undefined): string {
  return token === undefined ? '' : `authorization: Bearer ${token}\r\n`
}

/** The message of a gRPC-Web answer. A failed call is a 200 too, which begins with the trailers. */
function messageOfWeb(answer: Buffer): Uint8Array {
  if (answer[0] !== 0) throw new Error(`gRPC-Web answered ${answer}`)
  return answer.subarray(5, 5 + answer.readUInt32BE(1))
}

/** The ways to speak to Countersign, and to the floors. */
export const protocols: readonly Protocol[] = [
  overHttp1('REST', (connectionOf, port) => ({
    signIn: (worker) => signInByJson(connectionOf(worker), port, restPaths.nonce, restPaths.verify),
    check: (worker, token) => connectionOf(worker).get(restPaths.session, bearer(token)),
  })),
  overHttp1('Connect JSON', (connectionOf, port) => ({
    signIn: (worker) => signInByJson(connectionOf(worker), port, pathOf(issueNonce), pathOf(verifySignIn)),
    check: (worker, token) =>
      connectionOf(worker).post(pathOf(getCurrentSession), 'application/json', '{}', bearer(token)),
  })),
  overHttp1('Connect binary', (connectionOf, port) =>
    byMessages(port, (worker, path, message, token) =>
      connectionOf(worker).post(path, 'application/proto', message, bearer(token)),
    ),
  ),
  overHttp1('gRPC-Web', (connectionOf, port) =>
    byMessages(port, async (worker, path, message, token) =>
      messageOfWeb(
        await connectionOf(worker).post(path, 'application/grpc-web+proto', enveloped(message), bearer(token)),
      ),
    ),
  ),
  {
    name: 'gRPC',
    http: 'http2',
    async connect(port, _concurrency, open) {
      const connections = Array.from({ length: http2Connections }, () => open.use(new GrpcConnection(port)))
      return byMessages(port, (worker, path, message, token) =>
        (connections[worker % http2Connections] as GrpcConnection).call(
          path,
          message,
          token === undefined ? undefined : { authorization: `Bearer ${token}` },
        ),
      )
    },
  },
]

/** So many that the lists of sessions stay short, which the peer writes anew at each sign-in, and so few that all sign in soon. */
const accountCount = 128
const accounts: ReturnType<typeof privateKeyToAccount>[] = []

/** Better Auth's sign-in with Ethereum, and its session check. */
export const betterAuth: Protocol = overHttp1('Better Auth', (connectionOf, port) => ({
  async signIn(worker) {
    const index = nextAt(port) % accountCount
    accounts[index] ??= privateKeyToAccount(generatePrivateKey())
    const account = accounts[index]
    const { nonce } = await connectionOf(worker).postJson('/api/auth/siwe/nonce', {})
    const message = createSiweMessage({
      domain: new URL(publicUrl).host,
      address: account.address,
      uri: publicUrl,
      version: '1',
      chainId: 1,
      nonce,
    })
    const signature = await account.signMessage({ message })
    return (await connectionOf(worker).postJson('/api/auth/siwe/verify', { message, signature })).token
  },
  async check(worker, token) {
    const answer = await connectionOf(worker).get('/api/auth/get-session', bearer(token))
    if (answer.toString() === 'null') throw new Error('there is no such session')
  },
}))
