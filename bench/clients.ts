/** Clients of every protocol, lean enough that the load costs less than the server. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { enveloped, GrpcConnection, pathOf } from './grpc.ts'
import { type Http1Connection, Http1Pool } from './http1.ts'
import { publicUrl } from './servers.ts'
import { type EthereumWallet, makeEthereumWallets, makeWallets, type Prover, type Wallet } from './wallets.ts'

const { issueNonce, verifySignIn } = SignInService.method
const { getCurrentSession } = SessionService.method
const emptyMessage = new Uint8Array()
/** Calls in flight over HTTP/2 share this many connections. */
const http2Connections = 4

/**
 * So few that all have signed in before the measured rounds, because a first sign-in creates a user; so many that none reaches the
 * 100 sessions from which each sign-in ends one.
 */
const walletCount = 2048
const wallets = makeWallets(walletCount)
/** Made when one is first needed, because that takes a second. */
let ethereumWallets: readonly EthereumWallet[] | undefined

/** Adapter of the wallets that sign in. */
export type WalletKind = 'ed25519' | 'ethereum'

/** Sign-ins so far, by the server's port. */
const signIns = new Map<number, number>()

/** The wallet that has not signed in for longest, at a server or, without a port, at any. */
export function nextWallet(port = 0): Wallet {
  return wallets[nextNumber(port) % walletCount] as Wallet
}

/** As {@link nextWallet}, of a kind, with what a request for a nonce names of it. */
function nextSigner(port: number, kind: WalletKind = 'ed25519'): Prover & { readonly named: object } {
  if (kind === 'ed25519') return { ...nextWallet(port), named: {} }
  ethereumWallets ??= makeEthereumWallets(walletCount)
  return ethereumWallets[nextNumber(port) % walletCount] as EthereumWallet
}

function nextNumber(port: number): number {
  const number = signIns.get(port) ?? 0
  signIns.set(port, number + 1)
  return number
}

/** Calls of one protocol; `worker` is the number of the one in flight that calls. */
export interface Client {
  nonce(worker: number): Promise<unknown>
  /** Resolves with the session's token. With a wallet of the adapter ed25519 unless another kind is named. */
  signIn(worker: number, kind?: WalletKind): Promise<string>
  /** Rejects if the token has no session. */
  check(worker: number, token: string): Promise<unknown>
}

/** A protocol, and how to speak it to a server. */
export interface Protocol {
  readonly name: string
  readonly http: 'http' | 'http2'
  /** Connections join `open`, which ends them. */
  connect(port: number, open: DisposableStack): Client
}

/** One connection for each call in flight. */
function overHttp1(
  name: string,
  clientOf: (connectionOf: (worker: number) => Http1Connection, port: number) => Client,
): Protocol {
  return {
    name,
    http: 'http',
    connect(port, open) {
      const pool = open.use(new Http1Pool(port))
      return clientOf((worker) => pool.of(worker), port)
    },
  }
}

async function signInByJson(
  connection: Http1Connection,
  wallet: ReturnType<typeof nextSigner>,
  { nonce, verify }: Readonly<Record<'nonce' | 'verify', string>>,
): Promise<string> {
  const { nonceId, message } = await connection.postJson(nonce, wallet.named)
  return (await connection.postJson(verify, { nonceId, ...wallet.prove(message) })).token
}

/** Sends a protobuf message to a path, with a token if one is given, and resolves with that of the answer. */
type BinaryCall = (worker: number, path: string, message: Uint8Array, token?: string) => Promise<Uint8Array>

function byMessages(port: number, call: BinaryCall): Client {
  return {
    nonce: (worker) => call(worker, pathOf(issueNonce), emptyMessage),
    async signIn(worker, kind) {
      const wallet = nextSigner(port, kind)
      const request = toBinary(issueNonce.input, create(issueNonce.input, wallet.named))
      const { nonceId, message } = fromBinary(issueNonce.output, await call(worker, pathOf(issueNonce), request))
      const proof = create(verifySignIn.input, { nonceId, ...wallet.prove(message) })
      const answer = await call(worker, pathOf(verifySignIn), toBinary(verifySignIn.input, proof))
      return fromBinary(verifySignIn.output, answer).token
    },
    check: (worker, token) => call(worker, pathOf(getCurrentSession), emptyMessage, token),
  }
}

function bearer(token: string | undefined): string {
  return token === undefined ? '' : `authorization: Bearer ${token}\r\n`
}

/** The message of a gRPC-Web answer. A failed call is a 200, too, which begins with the trailers. */
function messageOfWeb(answer: Buffer): Uint8Array {
  if (answer[0] !== 0) throw new Error(`gRPC-Web answered ${answer}`)
  return answer.subarray(5, 5 + answer.readUInt32BE(1))
}

const rest = { nonce: '/api/auth/wallet/nonce', verify: '/api/auth/wallet/verify', session: '/api/auth/session' }

/** All protocols of the service. */
export const protocols: readonly Protocol[] = [
  overHttp1('REST', (connectionOf, port) => ({
    nonce: (worker) => connectionOf(worker).post(rest.nonce, 'application/json', '{}'),
    signIn: (worker, kind) => signInByJson(connectionOf(worker), nextSigner(port, kind), rest),
    check: (worker, token) => connectionOf(worker).get(rest.session, bearer(token)),
  })),
  overHttp1('Connect JSON', (connectionOf, port) => ({
    nonce: (worker) => connectionOf(worker).post(pathOf(issueNonce), 'application/json', '{}'),
    signIn: (worker, kind) =>
      signInByJson(connectionOf(worker), nextSigner(port, kind), {
        nonce: pathOf(issueNonce),
        verify: pathOf(verifySignIn),
      }),
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
    connect(port, open) {
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

/** The peer rewrites a user's list of sessions at each sign-in, so its lists have to stay short. */
const accountCount = 128
const accounts: ReturnType<typeof privateKeyToAccount>[] = []

/** Better Auth's sign-in with Ethereum and its session check. */
export const betterAuth: Protocol = overHttp1('Better Auth', (connectionOf, port) => ({
  nonce: (worker) => connectionOf(worker).postJson('/api/auth/siwe/nonce', {}),
  async signIn(worker) {
    const index = nextNumber(port) % accountCount
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
