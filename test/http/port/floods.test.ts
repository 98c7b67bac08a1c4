import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import net, { type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect, onTestFinished, test } from 'vitest'
import { WatchOrderRequestSchema } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { Inspector } from '../../support/inspector.ts'
import { orderClients } from '../../support/orders.ts'
import { envelope } from '../../support/rpc-call.ts'
import { spawnService } from '../../support/service.ts'

/** Heap of the service that is flooded, in MiB: two bodiless requests for each KiB would fill it. */
const heapMiB = 256
/** How long a flood stands, in milliseconds. */
const floodMs = 2500

const issueNonce = '/countersign.v1.SignInService/IssueNonce'
const watchOrder = '/countersign.v1.OrderService/WatchOrder'

/** Floods: each makes the bytes that its n-th connection sends. */
const floods: readonly [name: string, connections: number, bytes: (n: number) => Buffer][] = [
  ['gRPC calls without a body', 36, () => http2Calls(249, grpcHeaders)],
  [
    'gRPC calls with half a body',
    10,
    () => http2Calls(249, (id) => Buffer.concat([grpcHeaders(id), frame(0, 0, id, Buffer.alloc(200))])),
  ],
  [
    'Connect calls without a body',
    2000,
    (n) => http1Call(n % 2 === 0 ? 'content-length: 100' : 'expect: 100-continue\r\ncontent-length: 100'),
  ],
  ['REST calls with half a body', 1000, () => http1Call('content-length: 60000', 30_000)],
  ['headers that do not end', 2000, () => Buffer.from(`GET / HTTP/1.1\r\nhost: a\r\na: ${'b'.repeat(15_000)}\r\n`)],
  [
    'idle connections',
    2000,
    (n) => [Buffer.alloc(0), opening, Buffer.from('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')][n % 3] as Buffer,
  ],
  [
    'calls that are reset at once',
    10,
    () => http2Calls(1000, (id) => Buffer.concat([grpcHeaders(id), frame(3, 0, id, Buffer.of(0, 0, 0, 8))])),
  ],
]

test.each(floods)(
  `%s: the service lives in ${heapMiB} MiB, other clients are answered within a second, the heap returns`,
  // Whatever else runs on the machine can hold an answer up too.
  { timeout: 30_000, retry: 1 },
  async (_, connections, bytes) => {
    const { service, port, sockets, end } = await startSmall()
    const answers: { status: number; durationMs: number }[] = []
    const until = performance.now() + floodMs
    const polite = (async () => {
      while (performance.now() < until) {
        answers.push(await politeCall(port))
        await sleep(20)
      }
    })()
    for (let n = 0; n < connections; n++) {
      sockets.push(attacker(port, n, bytes(n)))
      // Over a second in all: this process has the other clients to care for as well.
      if (n % Math.ceil(connections / 100) === 0) await sleep(10)
    }
    await polite
    expect(service.process.exitCode, service.log()).toBe(null)
    expect(answers.length).toBeGreaterThan(5)
    expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
    expect(Math.max(...answers.map(({ durationMs }) => durationMs))).toBeLessThan(1000)

    await end()
  },
)

test(`watchers: the service lives in ${heapMiB} MiB however many come, and the heap returns`, async () => {
  // So many requests would not fit: the ceiling of streams alone has to hold.
  const { service, port, sockets, end } = await startSmall({ COUNTERSIGN_MAX_REQUESTS: '1000000' })
  const order = await orderClients.REST!(service.url).start('sign')
  const message = envelope(toBinary(WatchOrderRequestSchema, create(WatchOrderRequestSchema, order)))
  const watch = (id: number) => Buffer.concat([grpcHeaders(id, watchOrder), frame(0, 1, id, message)])
  for (let n = 0; n < 36; n++) {
    sockets.push(
      attacker(
        port,
        n,
        http2Calls(249, (id) => watch(id)),
      ),
    )
    // To open a stream takes time, which is not what this is about.
    expect((await politeCall(port, 10_000)).status, service.log()).toBe(200)
  }
  expect(service.log()).toContain('COUNTERSIGN_MAX_STREAMS')
  await end()
}, 60_000)

/**
 * A service with a small heap, and the attackers' sockets. `end` closes these, and expects that the heap returns and the
 * service stops in order.
 */
async function startSmall(environment: Record<string, string> = {}) {
  const service = await spawnService({
    COUNTERSIGN_STORE: 'sqlite::memory:',
    NODE_OPTIONS: `--max-old-space-size=${heapMiB} --inspect=127.0.0.1:0`,
    ...environment,
  })
  const inspector = await Inspector.connect(service.log())
  const port = Number(new URL(service.url).port)
  for (let n = 0; n < 20; n++) await politeCall(port)
  const heapBefore = await inspector.heapUsed()
  const sockets: Socket[] = []
  const hangUp = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(hangUp)
  const end = async (): Promise<void> => {
    hangUp()
    await expect.poll(() => inspector.heapUsed(), { timeout: 8000, interval: 200 }).toBeLessThan(heapBefore + 4_000_000)
    expect((await politeCall(port)).status).toBe(200)
    // Node waits for its debugger to leave.
    inspector.close()
    expect(await service.stop()).toBe(0)
  }
  return { service, port, sockets, end }
}

/** A sign-in's first call, over a connection of its own. Status 0 if it is not answered in time. */
async function politeCall(port: number, timeoutMs = 2000): Promise<{ status: number; durationMs: number }> {
  const startedAt = performance.now()
  const request = http.request(`http://127.0.0.1:${port}/api/auth/wallet/nonce`, {
    method: 'POST',
    agent: false,
    signal: AbortSignal.timeout(timeoutMs),
    headers: { 'content-type': 'application/json', origin: `http://localhost:${port}` },
  })
  let status = 0
  try {
    const answered = once(request, 'response') as Promise<[IncomingMessage]>
    request.end('{}')
    const [response] = await answered
    await text(response)
    status = response.statusCode ?? 0
  } catch {
    // Not answered.
  }
  return { status, durationMs: performance.now() - startedAt }
}

/** A connection that sends what it is given and then stays. */
function attacker(port: number, n: number, bytes: Buffer): Socket {
  // Linux has all of 127.0.0.0/8: no single client of these reaches its own ceiling first.
  const localAddress = process.platform === 'linux' ? `127.0.1.${1 + (n % 40)}` : '127.0.0.1'
  const socket = net.connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => {})
  socket.resume()
  if (bytes.length > 0) socket.write(bytes)
  return socket
}

function http1Call(header: string, bodyBytes = 0): Buffer {
  const head = `POST ${issueNonce} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${header}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.alloc(bodyBytes, ' ')])
}

/** An HTTP/2 frame (RFC 9113, 4.1). */
function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Preface and SETTINGS. */
const opening = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)])

/** POST, http, then path, authority and content type as literals with an indexed name (RFC 7541, 6.2.2). */
function headerBlock(path: string): Buffer {
  return Buffer.concat([
    Buffer.of(0x83, 0x86),
    literal(Buffer.of(0x04), path),
    literal(Buffer.of(0x01), 'a'),
    literal(Buffer.of(0x0f, 0x10), 'application/grpc'),
  ])
}

function literal(name: Buffer, value: string): Buffer {
  return Buffer.concat([name, Buffer.of(value.length), Buffer.from(value)])
}

/** HEADERS that end the headers, but not the stream. */
function grpcHeaders(stream: number, path = issueNonce): Buffer {
  return frame(1, 0x4, stream, headerBlock(path))
}

/** An HTTP/2 connection with calls on streams of their own. */
function http2Calls(count: number, call: (stream: number) => Buffer): Buffer {
  return Buffer.concat([opening, ...Array.from({ length: count }, (_, n) => call(2 * n + 1))])
}
