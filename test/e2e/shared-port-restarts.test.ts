import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import * as grpc from '@grpc/grpc-js'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/redis-server.ts'
import { type ServiceProcess, spawnService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'

const restarts = 10
/** Calls of each kind in flight at any time. */
const inFlight = 8

/** Calls of one kind, and the most of them that may fail. */
interface Load {
  readonly name: string
  /** The kernel resets connections that wait in a listener as it is closed. */
  readonly mostFailures: number
  readonly call: (port: number) => Promise<void>
}

const same = (bytes: Buffer): Buffer => bytes
const issueNonce = '/countersign.v1.SignInService/IssueNonce'

function restCall(port: number, agent: Agent | false): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const options = { host: '127.0.0.1', port, path: '/api/auth/wallet/nonce', method: 'POST', headers, agent }
    const sent = request(options, (response) => {
      response.resume()
      response.on('error', reject)
      response.on('end', () => (response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`))))
    })
    sent.on('error', reject)
    sent.end('{}')
  })
}

function grpcCall(client: grpc.Client): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { deadline: Date.now() + 10_000 }
    client.makeUnaryRequest(issueNonce, same, same, Buffer.alloc(0), options, (error) =>
      error === null ? resolve() : reject(error),
    )
  })
}

const clientOf = (port: number): grpc.Client =>
  new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })

function loads(port: number): readonly Load[] {
  const agent = new Agent({ keepAlive: true })
  const clients = Array.from({ length: inFlight }, () => clientOf(port))
  onTestFinished(() => {
    agent.destroy()
    for (const client of clients) client.close()
  })
  let turn = 0
  return [
    { name: 'HTTP/1.1, kept connections', mostFailures: 0, call: () => restCall(port, agent) },
    { name: 'HTTP/1.1, a connection for each call', mostFailures: 20, call: () => restCall(port, false) },
    { name: 'gRPC, kept connections', mostFailures: 0, call: () => grpcCall(clients[turn++ % inFlight]!) },
    {
      name: 'gRPC, a connection for each call',
      mostFailures: 20,
      async call() {
        const client = clientOf(port)
        await grpcCall(client).finally(() => client.close())
      },
    },
  ]
}

test.skipIf(redisUrl === undefined)(
  'nearly no call fails while one of three instances on a port is restarted ten times',
  { timeout: 300_000 },
  async () => {
    const port = await freePort()
    const environment = {
      PORT: String(port),
      COUNTERSIGN_STORE: (await redisUrl?.()) ?? '',
      COUNTERSIGN_KEY_PREFIX: `shared-port-${process.pid}`,
      COUNTERSIGN_SECRET: 'a secret for tests and for nothing else',
      COUNTERSIGN_REUSE_PORT: 'on',
      COUNTERSIGN_DRAIN_SECONDS: '2',
    }
    const instances: ServiceProcess[] = []
    for (let n = 0; n < 3; n++) instances.push(await spawnService(environment))
    let isLoaded = true
    const counts = loads(port).map((load) => ({ ...load, calls: 0, failures: [] as string[] }))
    const load = counts.flatMap((count) =>
      Array.from({ length: inFlight }, async () => {
        while (isLoaded) {
          await count.call(port).catch((error) => count.failures.push(error.message))
          count.calls++
        }
      }),
    )
    await sleep(500)
    for (let n = 0; n < restarts; n++) {
      expect(await instances[0]!.stop()).toBe(0)
      instances[0] = await spawnService(environment)
      await sleep(500)
    }
    isLoaded = false
    await Promise.all(load)
    for (const { name, mostFailures, calls, failures } of counts) {
      console.log(`${name}: ${failures.length} of ${calls} calls failed`, [...new Set(failures)])
      expect(failures.length, name).toBeLessThanOrEqual(mostFailures)
    }
  },
)
