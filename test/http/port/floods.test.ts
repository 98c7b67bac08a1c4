import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http, { type IncomingMessage } from 'node:http'
import net, { type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect, onTestFinished, test } from 'vitest'
import { WatchOrderRequestSchema } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { Inspector } from '../../support/inspector.ts'
import { hasPart } from '../../support/optional.ts'
import type { Holder } from '../../support/orders.ts'
import { frame } from '../../support/raw-http2.ts'
import { rest } from '../../support/rest.ts'
import { envelope } from '../../support/rpc-call.ts'
import { spawnService } from '../../support/service.ts'

/** Heap of the service that is flooded, in MiB: two bodiless requests for each KiB would fill it. */
const heapMiB = 256
/** How long a flood stands after its last connection has come, in milliseconds. */
const floodMs = 1500
/**
 * Most lines in the log after a flood. The same refusals of one address make one line a second, and here are 40
 * addresses.
 */
const maxLogLines = 2000

/** Time from the first answer to a connection that comes back over and over to its end, in milliseconds. */
const visitMs = 20
/** Files that a process may have open for the flood of connections. */
const manyFiles = '11000 open files'

const issueNonce = '/countersign.v1.SignInService/IssueNonce'
const watchOrder = '/countersign.v1.OrderService/WatchOrder'
const restNonce = '/api/auth/wallet/nonce'

/** What an attacker knows. */
interface Victim {
  readonly port: number
  /** Orders of the attacker's own, and one that does not exist. */
  readonly orders: readonly Holder[]
}

interface Flood {
  readonly name: string
  readonly connections: number
  /** Time over which the connections come, in milliseconds. Default 1000. */
  readonly arrivalMs?: number
  /** What the n-th connection sends. */
  readonly bytes: (n: number, victim: Victim) => Buffer
  /** Whether a connection leaves soon and comes back, over and over. Otherwise it stays. */
  readonly comesBack?: boolean
  /** Refusals that the log has to tell of, without a line for each. */
  readonly minRefusals?: number
  /** Settings other than the default ones. */
  readonly settings?: Readonly<Record<string, string>>
  /** What the machine needs to have for it. */
  readonly needs?: string
}

const floods: readonly Flood[] = [
  { name: 'gRPC calls without a body', connections: 36, bytes: () => http2Calls(249, (id) => grpcHeaders(id)) },
  {
    name: 'gRPC calls with half a body',
    connections: 10,
    bytes: () => http2Calls(249, (id) => Buffer.concat([grpcHeaders(id), frame(0, 0, id, Buffer.alloc(200))])),
  },
  {
    name: 'Connect calls without a body',
    connections: 2000,
    bytes: (n) => http1Call(n % 2 === 0 ? 'content-length: 100' : 'expect: 100-continue\r\ncontent-length: 100'),
  },
  { name: 'REST calls without a body', connections: 2000, bytes: () => http1Call('content-length: 100', 0, restNonce) },
  {
    name: 'REST calls with half a body',
    connections: 1000,
    bytes: () => http1Call('content-length: 60000', 30_000, restNonce),
  },
  {
    name: 'headers that do not end',
    connections: 2000,
    bytes: () => Buffer.from(`GET / HTTP/1.1\r\nhost: a\r\na: ${'b'.repeat(15_000)}\r\n`),
  },
  {
    name: 'idle connections',
    connections: 10_000,
    arrivalMs: 3000,
    bytes: (n) => [Buffer.alloc(0), opening, Buffer.from('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')][n % 3] as Buffer,
    settings: { COUNTERSIGN_MAX_CONNECTIONS: '10100' },
    needs: manyFiles,
  },
  {
    name: 'calls that are reset at once',
    connections: 10,
    bytes: () => http2Calls(1000, (id) => Buffer.concat([grpcHeaders(id), reset(id)])),
  },
  {
    name: 'HTTP/2 connections that hang up',
    connections: 200,
    bytes: () => opening,
    comesBack: true,
  },
  {
    name: 'watches over gRPC',
    connections: 12,
    arrivalMs: 3000,
    bytes: (_, victim) => http2Calls(249, (id) => grpcWatch(id, victim)),
  },
  {
    name: 'more watches over gRPC than there is room for',
    connections: 36,
    arrivalMs: 6000,
    bytes: (_, victim) => http2Calls(249, (id) => grpcWatch(id, victim)),
    minRefusals: 2000,
    // So many requests would not fit: the ceiling of streams alone has to hold.
    settings: { COUNTERSIGN_MAX_REQUESTS: '1000000' },
  },
  {
    name: 'watches over gRPC that are left at once',
    connections: 8,
    bytes: (_, victim) => http2Calls(190, (id) => Buffer.concat([grpcWatch(id, victim), reset(id)])),
    comesBack: true,
  },
  { name: 'server-sent events', connections: 2000, arrivalMs: 2000, bytes: eventsRequest },
  {
    name: 'server-sent events that are left at once',
    connections: 100,
    bytes: eventsRequest,
    comesBack: true,
  },
  {
    name: 'gRPC calls that are refused',
    connections: 8,
    bytes: () => http2Calls(190, refusedGrpcCall),
    comesBack: true,
    minRefusals: 2000,
  },
  {
    name: 'HTTP/1.1 calls that are refused',
    connections: 10,
    bytes: () => Buffer.concat(Array.from({ length: 100 }, (_, index) => refusedHttp1Call(index))),
    comesBack: true,
    minRefusals: 2000,
  },
  {
    name: 'calls beyond the rate limit',
    connections: 10,
    bytes: (n) =>
      n % 2 === 0
        ? http2Calls(190, (id) => Buffer.concat([grpcHeaders(id), frame(0, 1, id, envelope(Buffer.alloc(0)))]))
        : Buffer.concat(Array.from({ length: 100 }, () => http1Call('content-length: 2', 2))),
    comesBack: true,
    minRefusals: 2000,
    settings: { COUNTERSIGN_RATE_LIMIT: 'on' },
  },
]

for (const flood of floods) {
  const { name, connections, arrivalMs = 1000, bytes, comesBack = false, minRefusals = 0, settings = {}, needs } = flood
  test.skipIf(needs !== undefined && !hasPart(needs))(
    `${name}: the service lives in ${heapMiB} MiB, other clients are answered within a second, the heap returns, the log stays small`,
    // Whatever else runs on the machine can hold an answer up too.
    { timeout: 30_000, retry: 1 },
    async () => {
      const service = await spawnService({
        COUNTERSIGN_STORE: 'sqlite::memory:',
        NODE_OPTIONS: `--max-old-space-size=${heapMiB} --inspect=127.0.0.1:0`,
        ...settings,
      })
      const inspector = await Inspector.connect(service.log())
      const port = Number(new URL(service.url).port)
      const pid = service.process.pid ?? 0
      const victim: Victim = { port, orders: await startOrders(service.url) }
      for (let n = 0; n < 20; n++) await politeCall(port, pid)
      const heapBefore = await inspector.heapUsed()

      const attackers: Attacker[] = []
      const leave = (): void => {
        for (const attacker of attackers) attacker.leave()
      }
      onTestFinished(leave)
      const answers: PoliteAnswer[] = []
      const startedAt = performance.now()
      const polite = (async () => {
        while (performance.now() - startedAt < arrivalMs + floodMs) {
          answers.push(await politeCall(port, pid))
          await sleep(20)
        }
      })()
      for (let n = 0; n < connections; n++) {
        // Not all at once: this process has the other clients to care for as well.
        const earlyMs = startedAt + (arrivalMs * n) / connections - performance.now()
        if (earlyMs > 10) await sleep(earlyMs)
        attackers.push(new Attacker(port, n, bytes(n, victim), comesBack))
      }
      await polite
      expect(service.process.exitCode, service.log()).toBe(null)
      expect(answers.length).toBeGreaterThan(1)
      expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
      expect(Math.max(...answers.map(({ durationMs }) => durationMs))).toBeLessThan(1000)

      leave()
      await expect
        .poll(() => inspector.heapUsed(), { timeout: 8000, interval: 200 })
        .toBeLessThan(heapBefore + 4_000_000)
      expect((await politeCall(port, pid)).status).toBe(200)
      const lines = service.log().split('\n')
      expect(lines.length).toBeLessThan(maxLogLines)
      expect(refusalsIn(lines)).toBeGreaterThanOrEqual(minRefusals)
      // Node waits for its debugger to leave.
      inspector.close()
      expect(await service.stop()).toBe(0)
    },
  )
}

/** Orders to watch. The last one does not exist. */
async function startOrders(url: string): Promise<Holder[]> {
  const orders: Holder[] = []
  for (let n = 0; n < 50; n++) orders.push((await rest(url, '/cross-device/start', { kind: 'login' })).json)
  return [...orders, { orderId: 'ord_aaaaaaaaaaaaaaaaaaaaaa', desktopToken: 'unknown' }]
}

/** The number of refusals that lines of the log tell of: each stands for one, or for as many as it says. */
function refusalsIn(lines: readonly string[]): number {
  const counts = lines
    .filter((line) => line.includes('"text":"request refused"'))
    .map((line) => (JSON.parse(line) as { repeated?: number }).repeated ?? 1)
  return counts.reduce((sum, count) => sum + count, 0)
}

/** What a client that behaves saw of the service. */
interface PoliteAnswer {
  /** 0 if there was none. */
  readonly status: number
  /** Time to the answer, without the time in which other processes had the processor. */
  readonly durationMs: number
}

/** A sign-in's first call, over a connection of its own. */
async function politeCall(port: number, servicePid: number): Promise<PoliteAnswer> {
  const startedAt = performance.now() - waitedMs(servicePid)
  const request = http.request(`http://127.0.0.1:${port}${restNonce}`, {
    method: 'POST',
    agent: false,
    signal: AbortSignal.timeout(5000),
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
  return { status, durationMs: performance.now() - waitedMs(servicePid) - startedAt }
}

/**
 * Time for which the main threads of the service and of this process have waited for a processor, in milliseconds: what
 * else runs on the machine must not count as slowness of the service. 0 on systems that do not tell.
 */
function waitedMs(servicePid: number): number {
  const waits = [servicePid, process.pid].map((pid) => {
    try {
      return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1])
    } catch {
      return 0
    }
  })
  return waits.reduce((sum, ns) => sum + ns / 1e6, 0)
}

/** A client that connects, sends what it is given, and stays or comes back. */
class Attacker {
  readonly #connect: () => Socket
  #socket: Socket | undefined
  #hasLeft = false

  constructor(port: number, n: number, bytes: Buffer, comesBack: boolean) {
    // Linux has all of 127.0.0.0/8: no single client of these reaches its own ceiling first.
    const localAddress = process.platform === 'linux' ? `127.0.1.${1 + (n % 40)}` : '127.0.0.1'
    this.#connect = () => {
      const socket = net.connect({ port, host: '127.0.0.1', localAddress })
      socket.on('error', () => {})
      socket.resume()
      if (bytes.length > 0) socket.write(bytes)
      return socket
    }
    if (comesBack) void this.#comeAndGo()
    else this.#socket = this.#connect()
  }

  /**
   * Comes back once the server has had to do with it, so that no more waits to be served than so many connections can
   * send.
   */
  async #comeAndGo(): Promise<void> {
    for (let visit = 0; !this.#hasLeft; visit++) {
      const socket = this.#connect()
      this.#socket = socket
      await new Promise((resolve) => socket.once('data', resolve).once('close', resolve))
      await sleep(visitMs)
      if (visit % 2 === 0) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  leave(): void {
    this.#hasLeft = true
    this.#socket?.destroy()
  }
}

function http1Call(header: string, bodyBytes = 0, path = issueNonce): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${header}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.alloc(bodyBytes, ' ')])
}

/** Preface and SETTINGS. */
const opening = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)])

/** HEADERS of a POST that end the headers, but not the stream. */
function grpcHeaders(stream: number, path = issueNonce, authority = 'a', contentType = 'application/grpc'): Buffer {
  // POST, http, then path, authority and content type as literals with an indexed name (RFC 7541, 6.2.2).
  const headers = [
    Buffer.of(0x83, 0x86),
    literal(Buffer.of(0x04), path),
    literal(Buffer.of(0x01), authority),
    literal(Buffer.of(0x0f, 0x10), contentType),
  ]
  return frame(1, 0x4, stream, Buffer.concat(headers))
}

function literal(name: Buffer, value: string): Buffer {
  return Buffer.concat([name, Buffer.of(value.length), Buffer.from(value)])
}

/** RST_STREAM: the client has no more use for the answer. */
function reset(stream: number): Buffer {
  return frame(3, 0, stream, Buffer.of(0, 0, 0, 8))
}

/** A watch of one order after the other. */
function grpcWatch(stream: number, { port, orders }: Victim): Buffer {
  const message = create(WatchOrderRequestSchema, orders[stream % orders.length] as Holder)
  const body = envelope(toBinary(WatchOrderRequestSchema, message))
  return Buffer.concat([grpcHeaders(stream, watchOrder, `localhost:${port}`), frame(0, 1, stream, body)])
}

function eventsRequest(n: number, { port, orders }: Victim): Buffer {
  const { orderId, desktopToken } = orders[n % orders.length] as Holder
  return Buffer.from(
    `GET /api/auth/cross-device/events?orderId=${orderId} HTTP/1.1\r\nhost: localhost:${port}\r\n` +
      `authorization: Bearer ${desktopToken}\r\n\r\n`,
  )
}

/** A call to no RPC, one in no content type of an RPC, and one whose body is none. */
function refusedGrpcCall(stream: number): Buffer {
  const headers = [
    grpcHeaders(stream, '/countersign.v1.NoService/NoMethod'),
    grpcHeaders(stream, issueNonce, 'a', 'text/plain'),
    grpcHeaders(stream),
  ][stream % 3] as Buffer
  return Buffer.concat([headers, frame(0, 1, stream, Buffer.from('no message'))])
}

/** The same over HTTP/1.1, and one in another HTTP method. */
function refusedHttp1Call(index: number): Buffer {
  const [method, path, contentType] = [
    ['POST', '/nowhere', 'application/json'],
    ['POST', issueNonce, 'text/plain'],
    ['POST', issueNonce, 'application/json'],
    ['PUT', issueNonce, 'application/json'],
  ][index % 4] as [string, string, string]
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: ${contentType}\r\ncontent-length: 3\r\n\r\n{no`,
  )
}

/** An HTTP/2 connection with calls on streams of their own. */
function http2Calls(count: number, call: (stream: number) => Buffer): Buffer {
  return Buffer.concat([opening, ...Array.from({ length: count }, (_, n) => call(2 * n + 1))])
}
