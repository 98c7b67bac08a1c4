import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../gen/server/grpc/health/v1/health_pb.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { RedisServer } from '../support/redis-server.ts'
import { spawnService, startService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'

const secret = 'a secret for tests and for nothing else'
const orders = 'countersign.v1.OrderService'

/** gRPC's own health check, as a load balancer makes it. */
interface HealthClient {
  check(service: string): Promise<string | undefined>
  watch(service: string, signal: AbortSignal): AsyncIterable<string>
}

function grpcJsClient(url: string): HealthClient {
  const includeDirs = [fileURLToPath(new URL('../../proto', import.meta.url))]
  const definition = loadSync('grpc/health/v1/health.proto', { includeDirs, enums: String })
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js makes clients without types.
  const loaded = grpc.loadPackageDefinition(definition) as any
  const client = new loaded.grpc.health.v1.Health(new URL(url).host, grpc.credentials.createInsecure())
  onTestFinished(() => client.close())
  return {
    check: (service) =>
      new Promise((resolve, reject) => {
        client.check({ service }, (error: grpc.ServiceError | null, response: { status: string }) =>
          error === null ? resolve(response.status) : reject(error),
        )
      }),
    async *watch(service, signal) {
      const call: grpc.ClientReadableStream<{ status: string }> = client.watch({ service })
      signal.addEventListener('abort', () => call.cancel())
      for await (const { status } of call) yield status
    },
  }
}

function nameOf(status: ServingStatus): string {
  return Object.entries(ServingStatus).find(([, value]) => value === status)?.[0] ?? String(status)
}

function connectClient(transport: Transport): HealthClient {
  const client = createClient(Health, transport)
  return {
    check: async (service) => nameOf((await client.check({ service })).status),
    async *watch(service, signal) {
      for await (const { status } of client.watch({ service }, { signal })) yield nameOf(status)
    },
  }
}

const clients: [string, (url: string) => HealthClient][] = [
  ['gRPC through @grpc/grpc-js', grpcJsClient],
  ['gRPC through connect-node', (baseUrl) => connectClient(createGrpcTransport({ baseUrl }))],
  ['gRPC-Web', (baseUrl) => connectClient(createGrpcWebTransport({ baseUrl, httpVersion: '1.1' }))],
  ['Connect over HTTP/1.1', (baseUrl) => connectClient(createConnectTransport({ baseUrl, httpVersion: '1.1' }))],
  ['Connect over HTTP/2', (baseUrl) => connectClient(createConnectTransport({ baseUrl, httpVersion: '2' }))],
]

/** Reads a watch to its end and keeps what came. */
class Reader {
  readonly statuses: string[] = []
  /** Resolves with `end`, or with what the stream failed with. */
  readonly ended: Promise<unknown>
  readonly #leave = new AbortController()

  constructor(client: HealthClient, service: string) {
    this.ended = this.#read(client.watch(service, this.#leave.signal)).catch((error: unknown) => error)
    onTestFinished(() => this.#leave.abort())
  }

  /** Waits until exactly these statuses have come. */
  async has(...statuses: string[]): Promise<void> {
    await expect.poll(() => this.statuses, { timeout: 15_000, interval: 10 }).toEqual(statuses)
  }

  async #read(statuses: AsyncIterable<string>): Promise<'end'> {
    for await (const status of statuses) this.statuses.push(status)
    return 'end'
  }
}

test('the server and each of its services are well', async () => {
  const { check } = grpcJsClient((await startService()).url)
  expect(await check('')).toBe('SERVING')
  expect(await check(orders)).toBe('SERVING')
  await expect(check('another.Service')).rejects.toMatchObject({ code: grpc.status.NOT_FOUND })
})

test.skipIf(redisUrl === undefined)('they are not while the store is away', async () => {
  await using redis = await RedisServer.start()
  const { url } = await startService({ store: redis.url, secret })
  const { check } = grpcJsClient(url)
  expect(await check('')).toBe('SERVING')
  await redis.kill()
  expect(await check('')).toBe('NOT_SERVING')
})

describe.each(clients)('a watch over %s', (_name, connect) => {
  test('has the status at once, and ends after NOT_SERVING when the server stops', async () => {
    const service = await spawnService({ COUNTERSIGN_STORE: 'sqlite::memory:' })
    const client = connect(service.url)
    const watches = [new Reader(client, ''), new Reader(client, orders)]
    for (const watch of watches) await watch.has('SERVING')
    const startedAt = performance.now()
    expect(await service.stop('SIGTERM')).toBe(0)
    // Far less than the ten seconds after which the server cuts off what is left.
    expect(performance.now() - startedAt).toBeLessThan(6000)
    for (const watch of watches) {
      expect(await watch.ended).toBe('end')
      expect(watch.statuses).toEqual(['SERVING', 'NOT_SERVING'])
    }
  })

  test('of an unknown service says so and stays open until the server stops', async () => {
    const { url, service } = await startService()
    const watch = new Reader(connect(url), 'another.Service')
    await watch.has('SERVICE_UNKNOWN')
    expect(await Promise.race([watch.ended, pause(500, 'open')])).toBe('open')
    await service.close(2000)
    expect(await watch.ended).toBe('end')
    expect(watch.statuses).toEqual(['SERVICE_UNKNOWN'])
  })
})

describe.skipIf(redisUrl === undefined)('a watch follows the store', () => {
  test('that dies and comes back', async () => {
    await using redis = await RedisServer.start()
    const client = grpcJsClient((await startService({ store: redis.url, secret })).url)
    const watch = new Reader(client, orders)
    await watch.has('SERVING')
    await redis.kill()
    await watch.has('SERVING', 'NOT_SERVING')
    const during = new Reader(client, '')
    await during.has('NOT_SERVING')
    await redis.start()
    await watch.has('SERVING', 'NOT_SERVING', 'SERVING')
    await during.has('NOT_SERVING', 'SERVING')
  })

  test('that stops answering and goes on', async () => {
    await using redis = await RedisServer.start()
    const watch = new Reader(grpcJsClient((await startService({ store: redis.url, secret })).url), orders)
    await watch.has('SERVING')
    redis.freeze()
    await watch.has('SERVING', 'NOT_SERVING')
    redis.thaw()
    await watch.has('SERVING', 'NOT_SERVING', 'SERVING')
  })

  test('and a stop does not wait for one that does not answer', async () => {
    await using redis = await RedisServer.start()
    const { url, service } = await startService({ store: redis.url, secret })
    const client = grpcJsClient(url)
    const watch = new Reader(client, orders)
    await watch.has('SERVING')
    redis.freeze()
    const stopped = service.close(20_000)
    const startedAt = performance.now()
    expect(await watch.ended).toBe('end')
    // Before the 2.5 seconds that a call has for the store.
    expect(performance.now() - startedAt).toBeLessThan(2400)
    expect(watch.statuses).toEqual(['SERVING', 'NOT_SERVING'])
    redis.thaw()
    await stopped
  })
})

test('a watch ends with deadline_exceeded at the deadline of its caller', async () => {
  const { url } = await startService()
  const message = Buffer.from('{}')
  const envelope = Buffer.alloc(5)
  envelope.writeUInt32BE(message.length, 1)
  const response = await fetch(`${url}/grpc.health.v1.Health/Watch`, {
    method: 'POST',
    headers: { 'content-type': 'application/connect+json', 'connect-timeout-ms': '300' },
    body: Buffer.concat([envelope, message]),
  })
  const body = await response.text()
  expect(body).toContain('SERVING')
  expect(body).toContain('"code":"deadline_exceeded"')
})

// gRPC's C core crashes on it while it checks health; see src/rpc/health.ts.
test('a watch names no compression', async () => {
  const { url } = await startService()
  const response = await fetch(`${url}/grpc.health.v1.Health/Watch`, {
    method: 'POST',
    headers: { 'content-type': 'application/grpc-web+proto', 'grpc-accept-encoding': 'gzip', 'grpc-timeout': '300m' },
    body: Buffer.alloc(5),
  })
  expect(response.headers.get('grpc-encoding')).toBe(null)
  const body = Buffer.from(await response.arrayBuffer())
  expect(body.subarray(0, 7)).toEqual(Buffer.from([0, 0, 0, 0, 2, 8, ServingStatus.SERVING]))
})

describe.skipIf(!hasPart('python3-grpcio'))('a client that checks health by itself', () => {
  /** Runs the Python client; `lines` grows with what it prints. */
  function startPythonClient(url: string): { readonly lines: readonly string[] } {
    const script = fileURLToPath(new URL('health-checking-client.py', import.meta.url))
    const child = spawn(systemPython, [script, new URL(url).host, 'countersign.v1.SignInService'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const lines: string[] = []
    createInterface(child.stdout).on('line', (line) => lines.push(line))
    child.on('exit', (code, signal) => lines.push(`exit ${code ?? signal}`))
    return { lines }
  }

  const options = { timeout: 15_000, interval: 20 }

  test('connects, and leaves a server that stops', async () => {
    const service = await spawnService({ COUNTERSIGN_STORE: 'sqlite::memory:' })
    const client = startPythonClient(service.url)
    // The client tells of its state and of its call from two threads.
    await expect.poll(() => client.lines, options).toEqual(expect.arrayContaining(['READY', 'answered']))
    expect(await service.stop('SIGTERM')).toBe(0)
    await expect.poll(() => client.lines.at(-1), options).not.toBe('READY')
    expect(client.lines.filter((line) => line.startsWith('exit'))).toEqual([])
  })

  test.skipIf(redisUrl === undefined)('avoids a server whose store is away, and comes back', async () => {
    await using redis = await RedisServer.start()
    const { url } = await startService({ store: redis.url, secret })
    const client = startPythonClient(url)
    await expect.poll(() => client.lines, options).toEqual(expect.arrayContaining(['READY', 'answered']))
    await redis.kill()
    await expect.poll(() => client.lines.at(-1), options).toBe('TRANSIENT_FAILURE')
    await redis.start()
    await expect.poll(() => client.lines.at(-1), options).toBe('READY')
  })
})
