import { once } from 'node:events'
import http2 from 'node:http2'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { defaultTimeouts } from '../../src/http/port/limits.ts'
import { startService } from '../support/service.ts'

/** What came of a client that dawdles, and after how long. */
interface End {
  readonly received: string
  readonly afterMs: number
}

/** Sends bytes and waits for the server's end of the connection. */
async function dawdle(port: number, bytes: string | Buffer): Promise<End> {
  const startedAt = performance.now()
  const socket: Socket = connect({ port, host: '127.0.0.1' })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
  })
  if (bytes.length > 0) socket.write(bytes)
  await once(socket, 'close')
  return { received, afterMs: performance.now() - startedAt }
}

/** Begins a body over HTTP/2 and waits for the server's end of the stream. */
async function dawdleOverHttp2(url: string, path: string, type: string): Promise<End> {
  const startedAt = performance.now()
  const session = http2.connect(url)
  onTestFinished(() => session.destroy())
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type, te: 'trailers' })
  stream.on('error', () => {})
  stream.write('{')
  await once(stream, 'close')
  return { received: `reset with ${stream.rstCode}`, afterMs: performance.now() - startedAt }
}

const head = (path: string): string => `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n`
const rpc = '/countersign.v1.SignInService/IssueNonce'

test('a client that takes longer than ten seconds for its headers is turned away, over either version of HTTP', async () => {
  const { url } = await startService()
  const port = Number(new URL(url).port)
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const cancelled = `reset with ${http2.constants.NGHTTP2_CANCEL}`
  const cases: [string, Promise<End>, RegExp][] = [
    ['says nothing', dawdle(port, ''), /^$/],
    ['says the beginning of either version', dawdle(port, 'P'), /^$/],
    ['sends half of its headers', dawdle(port, 'GET / HTTP/1.1\r\nhost: a\r\n'), /^HTTP\/1\.1 408 /],
    [
      'sends half of a body to REST',
      dawdle(port, `${head('/api/auth/wallet/nonce')}content-length: 9\r\n\r\n{`),
      /408/,
    ],
    ['sends half of a body to an RPC', dawdle(port, `${head(rpc)}content-length: 9\r\n\r\n{`), /^HTTP\/1\.1 408 /],
    ['never ends its chunks', dawdle(port, `${head(rpc)}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n`), /408/],
    ['sends half of the preface of HTTP/2', dawdle(port, preface), /^/],
    ['sends half of a body over HTTP/2', dawdleOverHttp2(url, rpc, 'application/json'), new RegExp(cancelled)],
    ['sends half of a body of gRPC', dawdleOverHttp2(url, rpc, 'application/grpc+proto'), new RegExp(cancelled)],
  ]
  for (const [name, ending, expected] of cases) {
    const { received, afterMs } = await ending
    expect(received, name).toMatch(expected)
    // Slow, but honest: such a client still has its time.
    expect(afterMs, name).toBeGreaterThan(9_000)
    expect(afterMs, name).toBeLessThan(25_000)
  }
})

test('an idle connection is kept for a minute, as proxies expect it, and not for long beyond that', async () => {
  const { url } = await startService()
  const response = await fetch(`${url}/healthz`)
  expect(response.headers.get('keep-alive')).toBe('timeout=65')
  // One that says that it leaves is told nothing of the kind.
  const leaving = await dawdle(
    Number(new URL(url).port),
    'GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
  )
  expect(leaving.received).toMatch(/^HTTP\/1\.1 200 /)
  expect(leaving.received.toLowerCase()).not.toContain('keep-alive')
  // Longer than the 15 s between two heartbeats. To see it takes two minutes.
  expect(defaultTimeouts.idleMs).toBe(120_000)
})
