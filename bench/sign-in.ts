import { create, toBinary } from '@bufbuild/protobuf'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { GrpcConnection, pathOf } from './grpc.ts'
import { compare, inFlight, printMeasured, type Subject } from './harness.ts'
import { Http1Connection, Http1Pool } from './http1.ts'
import { hasRedis, startCountersign, startFloor } from './servers.ts'
import { makeWallets, type Wallet } from './wallets.ts'

const concurrency = 16
const issueNonce = SignInService.method.issueNonce
const issueNoncePath = pathOf(issueNonce)
const verifySignInPath = pathOf(SignInService.method.verifySignIn)
const emptyMessage = toBinary(issueNonce.input, create(issueNonce.input))

/** Direct sign-in under load, on each store. */
export async function benchSignIn(): Promise<void> {
  await benchOn('SQLite in memory', 'sqlite::memory:')
  if (!hasRedis()) return
  await using redis = await RedisServer.start()
  await benchOn('Redis', redis.url)
}

async function benchOn(storeName: string, store: string): Promise<void> {
  await using service = await startCountersign(store)
  await using floor = await startFloor('http', await nonceBytes(service.port))
  await using http2Floor = await startFloor('http2', await nonceBytes(service.port))
  using connections = await Http1Pool.open(service.port, concurrency)
  using floorConnections = await Http1Pool.open(floor.port, concurrency)
  using grpc = new GrpcConnection(service.port)
  using floorGrpc = new GrpcConnection(http2Floor.port)
  const wallets = makeWallets(256)
  let signIns = 0
  const signIn = async (worker: number): Promise<string> => {
    const connection = connections.of(worker)
    const { nonceId, message } = await connection.postJson(issueNoncePath, {})
    const wallet = wallets[signIns++ % wallets.length] as Wallet
    return (await connection.postJson(verifySignInPath, { nonceId, ...wallet.prove(message) })).token
  }
  const bearer = `authorization: Bearer ${await signIn(0)}\r\n`
  const sessionPath = pathOf(SessionService.method.getCurrentSession)

  const post =
    (path: string, contentType: string, body: string | Uint8Array, headers?: string) =>
    (worker: number): Promise<unknown> =>
      connections.of(worker).post(path, contentType, body, headers)
  const onService = (name: string, operation: (worker: number) => Promise<unknown>, floorName: string): Subject => ({
    name,
    load: inFlight(concurrency, operation),
    floor: floorName,
    cpuMicros: async () => (await service.usage('cpu')).cpuMicros,
  })
  const http1 = 'bare node:http'
  const http2 = 'bare node:http2'
  const measured = await compare([
    {
      name: http1,
      load: inFlight(concurrency, (worker) => floorConnections.of(worker).post('/', 'application/json', '{}')),
      cpuMicros: async () => (await floor.usage('cpu')).cpuMicros,
    },
    onService('IssueNonce, REST', post('/api/auth/wallet/nonce', 'application/json', '{}'), http1),
    onService('IssueNonce, Connect JSON', post(issueNoncePath, 'application/json', '{}'), http1),
    onService('IssueNonce, Connect binary', post(issueNoncePath, 'application/proto', emptyMessage), http1),
    onService('GetCurrentSession, Connect JSON', post(sessionPath, 'application/json', '{}', bearer), http1),
    onService('whole sign-in, Connect JSON', signIn, http1),
    {
      name: http2,
      load: inFlight(concurrency, () => floorGrpc.call('/', emptyMessage)),
      cpuMicros: async () => (await http2Floor.usage('cpu')).cpuMicros,
    },
    onService('IssueNonce, gRPC', () => grpc.call(issueNoncePath, emptyMessage), http2),
  ])
  printMeasured(`Sign-in, ${storeName}, ${concurrency} at once`, 'calls', measured)
}

async function nonceBytes(port: number): Promise<number> {
  using connection = await Http1Connection.open(port)
  return (await connection.post(issueNoncePath, 'application/json', '{}')).length
}
