import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { RedisServer } from '../test/support/redis-server.ts'
import { pathOf } from './grpc.ts'
import { compare, type Load, paced, printMeasured } from './harness.ts'
import { Http1Pool } from './http1.ts'
import { hasRedis, startCountersign } from './servers.ts'

const concurrency = 4
/** Calls of all clients in a second. */
const callsPerSecond = 200
const floodConcurrency = 8
/** Calls of the one that floods in a second. It has an allowance of four. */
const floodPerSecond = 1000
const aloneName = 'IssueNonce, alone'

/** What clients have of a service while another one floods it, on each store. */
export async function benchFlood(): Promise<void> {
  await benchOn('memory', 'sqlite::memory:')
  if (!hasRedis()) return
  await using redis = await RedisServer.start()
  await benchOn('Redis', redis.url)
}

async function benchOn(storeName: string, store: string): Promise<void> {
  await using service = await startCountersign(store, { limited: true })
  using connections = new Http1Pool(service.port)
  using flooding = new Http1Pool(service.port)
  const path = pathOf(SignInService.method.issueNonce)
  let client = 0
  // A call that is refused rejects, and ends the run.
  const calls = paced(concurrency, callsPerSecond, (worker) => {
    client++
    const address = `10.${(client >> 16) & 255}.${(client >> 8) & 255}.${client & 255}`
    return connections.of(worker).post(path, 'application/json', '{}', `x-forwarded-for: ${address}\r\n`)
  })
  let refused = 0
  const flood = paced(floodConcurrency, floodPerSecond, (worker) =>
    flooding
      .of(worker)
      .post(path, 'application/json', '{}', 'x-forwarded-for: 192.0.2.1\r\n')
      .catch(() => refused++),
  )
  const beside: Load = async (endsAt, times) => {
    await Promise.all([calls(endsAt, times), flood(endsAt, [])])
  }
  const measured = await compare(
    [
      { name: aloneName, load: calls },
      { name: 'IssueNonce, beside a flood', load: beside, floor: aloneName },
    ],
    { rounds: 8, roundMs: 1000 },
  )
  printMeasured(`Calls of clients while another one floods, ${storeName}, ${refused} calls refused`, 'calls', measured)
}
