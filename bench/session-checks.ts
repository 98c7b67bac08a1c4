import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { pathOf } from './grpc.ts'
import { compare, inFlight, printMeasured, type Scale, type Subject } from './harness.ts'
import { Http1Connection, Http1Pool } from './http1.ts'
import { hasRedis, type ServerProcess, startBackend, startCountersign } from './servers.ts'
import { makeWallets } from './wallets.ts'

const concurrency = 16
const warmUpMs = 3000
const floorName = 'bare node:http that reads one key'

/** Requests to a backend that serves signed-in users only, on each store. */
export async function benchSessionChecks({ warmUp }: Scale): Promise<void> {
  await benchOn('memory', 'sqlite::memory:', warmUp)
  if (!hasRedis()) return
  await using redis = await RedisServer.start()
  await benchOn('Redis', redis.url, warmUp)
}

async function benchOn(storeName: string, store: string, warmUp: number): Promise<void> {
  await using service = await startCountersign(store)
  const tokens = await signIn(service.port)
  const url = `http://127.0.0.1:${service.port}`
  await using floor = await startBackend('floor', store, tokens)
  await using exact = await startBackend('verifier', url, ['0'])
  await using cached = await startBackend('verifier', url, ['5'])
  using floorConnections = new Http1Pool(floor.port)
  using exactConnections = new Http1Pool(exact.port)
  using cachedConnections = new Http1Pool(cached.port)

  const ask = (connections: Http1Pool) =>
    inFlight(concurrency, (worker) =>
      connections.of(worker).post('/', 'application/json', '{}', `authorization: Bearer ${tokens[worker]}\r\n`),
    )
  const cpuOf = (servers: readonly ServerProcess[]) => async () => {
    const used = await Promise.all(servers.map((server) => server.usage('cpu')))
    return used.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0)
  }
  const verifier = (cacheSeconds: number, connections: Http1Pool, backend: ServerProcess): Subject => ({
    name: `session verifier, cacheSeconds ${cacheSeconds}`,
    load: ask(connections),
    floor: floorName,
    // With what the service takes for its part.
    cpuMicros: cpuOf([backend, service]),
  })
  const subjects = [
    { name: floorName, load: ask(floorConnections), cpuMicros: cpuOf([floor]) },
    verifier(0, exactConnections, exact),
    verifier(5, cachedConnections, cached),
  ]
  // Node's fetch is a lot of code, which takes longer to be compiled than a round.
  for (const { load } of subjects) await load(performance.now() + warmUpMs * warmUp, [])
  const measured = await compare(subjects)
  printMeasured(`Session checks of a backend, ${storeName}, ${concurrency} at once`, 'requests', measured)
}

/** A session for each of those who ask, so that they do not share answers. */
async function signIn(port: number): Promise<string[]> {
  using connection = await Http1Connection.open(port)
  const tokens: string[] = []
  for (const wallet of makeWallets(concurrency)) {
    const { nonceId, message } = await connection.postJson(pathOf(SignInService.method.issueNonce), {})
    const proof = { nonceId, ...wallet.prove(message) }
    tokens.push((await connection.postJson(pathOf(SignInService.method.verifySignIn), proof)).token)
  }
  return tokens
}
