import { getCACertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { createClient, type Interceptor } from '@connectrpc/connect'
import { createGrpcTransport, createConnectTransport as createNodeConnectTransport } from '@connectrpc/connect-node'
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { rest } from './rest.ts'

/** A nonce challenge, as every protocol gives it. */
export interface Challenge {
  readonly nonceId: string
  readonly message: string
  readonly origin: string
}

/** A sign-in result, as every protocol gives it. */
export interface Result {
  readonly ok: boolean
  readonly token: string
  readonly cookie: string | undefined
  readonly authToken: string | undefined
  readonly address: string
}

/** A verify request. */
export interface Verification {
  readonly nonceId: string
  readonly publicKeyHex: string
  readonly signatureHex: string
  readonly address?: string
}

/** Direct sign-in over one protocol. A failure rejects with an error whose message holds the reason. */
export interface SignInClient {
  issueNonce(): Promise<Challenge>
  verify(request: Verification): Promise<Result>
}

const protoFolder = fileURLToPath(new URL('../../proto', import.meta.url))

/** How to sign in over each protocol. The origin is the service's own. */
export const signInClients: Record<string, (url: string) => SignInClient> = {
  REST: (url) => ({
    issueNonce: async () => okay(await rest(url, '/wallet/nonce', {})).json,
    async verify(request) {
      const { headers, json } = okay(await rest(url, '/wallet/verify', request))
      return result(json, headers)
    },
  }),
  'Connect JSON over HTTP/1.1': (url) => connectClient(url, (o) => createConnectTransport({ baseUrl: url, ...o })),
  'Connect binary over HTTP/1.1': (url) =>
    connectClient(url, (o) => createConnectTransport({ baseUrl: url, useBinaryFormat: true, ...o })),
  'Connect binary over HTTP/2, compressed': (url) =>
    connectClient(url, (o) =>
      createNodeConnectTransport({ baseUrl: url, httpVersion: '2', useBinaryFormat: true, compressMinBytes: 1, ...o }),
    ),
  'Connect with a deadline': (url) =>
    connectClient(url, (o) => createConnectTransport({ baseUrl: url, defaultTimeoutMs: 20_000, ...o })),
  'gRPC-Web': (url) => connectClient(url, (o) => createGrpcWebTransport({ baseUrl: url, ...o })),
  'gRPC through connect-node': (url) => connectClient(url, (o) => createGrpcTransport({ baseUrl: url, ...o })),
  'gRPC through @grpc/grpc-js': grpcJsClient,
}

function connectClient(
  _url: string,
  makeTransport: (options: { interceptors: Interceptor[] }) => ReturnType<typeof createConnectTransport>,
): SignInClient {
  const client = createClient(SignInService, makeTransport({ interceptors: [] }))
  return {
    issueNonce: () => client.issueNonce({}),
    async verify(request) {
      let headers = new Headers()
      const response = await client.verifySignIn(request, { onHeader: (received) => (headers = received) })
      return result(response, headers)
    },
  }
}

function grpcJsClient(url: string): SignInClient {
  const definition = loadSync('countersign/v1/sign_in_service.proto', { includeDirs: [protoFolder], longs: Number })
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js makes clients without types.
  const loaded = grpc.loadPackageDefinition(definition) as any
  const client = new loaded.countersign.v1.SignInService(new URL(url).host, credentialsFor(url))
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  const call = (name: string, request: object): Promise<{ response: any; headers: grpc.Metadata }> =>
    new Promise((resolve, reject) => {
      let headers = new grpc.Metadata()
      const running = client[name](request, (error: grpc.ServiceError | null, response: object) =>
        error === null ? resolve({ response, headers }) : reject(error),
      )
      running.on('metadata', (received: grpc.Metadata) => {
        headers = received
      })
    })
  return {
    issueNonce: async () => (await call('issueNonce', {})).response,
    async verify(request) {
      const { response, headers } = await call('verifySignIn', request)
      client.close()
      return result(response, new Headers(Object.entries(headers.getMap()).map(([k, v]) => [k, String(v)])))
    },
  }
}

/** With TLS, whom this process trusts is trusted: grpc-js has authorities of its own by default. */
function credentialsFor(url: string): grpc.ChannelCredentials {
  if (new URL(url).protocol === 'http:') return grpc.credentials.createInsecure()
  return grpc.credentials.createSsl(Buffer.from(getCACertificates('default').join('\n')))
}

// biome-ignore lint/suspicious/noExplicitAny: the protocols' own shapes.
function result(response: any, headers: Headers): Result {
  return {
    ok: response.ok,
    token: response.token,
    address: response.session.address,
    cookie: headers.get('set-cookie') ?? undefined,
    authToken: headers.get('set-auth-token') ?? undefined,
  }
}

function okay(answer: Awaited<ReturnType<typeof rest>>): Awaited<ReturnType<typeof rest>> {
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.json.code}: ${answer.json.message}`)
  return answer
}
