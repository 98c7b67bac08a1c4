import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import http2, { type ClientHttp2Session } from 'node:http2'
import net, { type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type OnePortOptions, OnePortServer } from '../../../src/http/port/port.ts'
import { hasPart } from '../../support/optional.ts'
import { portHandlers } from '../../support/port-handlers.ts'
import { frame, Http2Frames } from '../../support/raw-http2.ts'
import { trustedAuthority } from '../../support/tls.ts'

/** A server whose answers are "served", with what is asked of it: "/begun" begins an answer and holds its end back. */
async function start(options: OnePortOptions = {}) {
  let finish = (): void => {}
  const server = new OnePortServer(
    portHandlers((request, response) => {
      const answer = response as ServerResponse
      if (request.url !== '/begun') return answer.end('served')
      answer.write('begun, ')
      finish = () => answer.end('finished')
    }),
    options,
  )
  const { port } = await server.listen(0, '127.0.0.1')
  onTestFinished(() => server.close(0))
  return { server, port, url: `http://127.0.0.1:${port}`, finish: () => finish() }
}

function keepAlive(): http.Agent {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  return agent
}

async function get(url: string, agent: http.Agent | false) {
  const request = http.get(url, { agent })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const { localPort } = response.socket
  return { connection: response.headers.connection, localPort, body: text(response) }
}

/** An HTTP/2 client that would not act on a GOAWAY: it goes on to open streams. */
class Http2Client {
  readonly #socket: Socket
  readonly #frames: Http2Frames
  #nextStream = 1

  constructor(port: number) {
    this.#socket = net.connect(port, '127.0.0.1')
    onTestFinished(() => void this.#socket.destroy())
    this.#socket.on('error', () => {})
    this.#frames = new Http2Frames(this.#socket)
    this.#socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)]))
  }

  /** Asks for `/` with headers of the static table (RFC 7541, appendix A), and waits for the answer's body. */
  async ask(): Promise<void> {
    const stream = this.#nextStream
    this.#nextStream += 2
    // END_STREAM and END_HEADERS.
    this.#socket.write(frame(1, 5, stream, Buffer.from('828684410161', 'hex')))
    const answers = () => this.#frames.ofType(0).filter((one) => one.stream === stream)
    await expect.poll(() => answers().length, { interval: 5 }).toBeGreaterThan(0)
  }

  /** The last stream and the error of each GOAWAY that has come. */
  goaways(): { lastStream: number; error: number }[] {
    return this.#frames
      .ofType(7)
      .map(({ payload }) => ({ lastStream: payload.readUInt32BE(0), error: payload.readUInt32BE(4) }))
  }
}

function connectHttp2(url: string): ClientHttp2Session {
  const session = http2.connect(url)
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  return session
}

function ask(session: ClientHttp2Session, path: string): Promise<string> {
  return text(session.request({ ':path': path }))
}

describe('HTTP/1.1 in a drain', () => {
  test('a kept connection serves one more request, whose answer ends it', async () => {
    const { server, url } = await start()
    const agent = keepAlive()
    const first = await get(url, agent)
    await first.body
    server.drain()
    await sleep(50)
    const second = await get(url, agent)
    expect(await second.body).toBe('served')
    expect([first.connection, second.connection]).toEqual(['keep-alive', 'close'])
    expect(second.localPort).toBe(first.localPort)
    const third = await get(url, agent)
    expect([await third.body, third.connection]).toEqual(['served', 'close'])
    expect(third.localPort).not.toBe(first.localPort)
  })

  test('a connection whose answer has begun stays for one more request', async () => {
    const { server, url, finish } = await start()
    const agent = keepAlive()
    const begun = await get(`${url}/begun`, agent)
    server.drain()
    finish()
    expect(await begun.body).toBe('begun, finished')
    // Time for the end of the connection, if it came.
    await sleep(50)
    const next = await get(url, agent)
    expect([await next.body, next.connection]).toEqual(['served', 'close'])
    expect(next.localPort).toBe(begun.localPort)
  })

  test('a new connection is served, until the server closes', async () => {
    const { server, url } = await start()
    server.drain()
    expect((await get(url, false)).connection).toBe('close')
    await server.close()
    await expect(get(url, false)).rejects.toThrow('ECONNREFUSED')
  })
})

describe('HTTP/2 in a drain', () => {
  test('a client is sent nothing, and what it sends is served, until the server closes', async () => {
    const { server, port } = await start()
    const client = new Http2Client(port)
    await client.ask()
    server.drain()
    await client.ask()
    await client.ask()
    expect(client.goaways()).toEqual([])
    await server.close()
    // Of a graceful shutdown (RFC 9113, 6.8): the last stream that was served, and no error.
    await expect.poll(() => client.goaways()).toContainEqual({ lastStream: 5, error: 0 })
  })

  test.skipIf(!hasPart('openssl'))('over TLS, a client is sent nothing, and what it sends is served', async () => {
    const { cert, key } = await (await trustedAuthority()).issue('localhost')
    const tls = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
    const { server, port } = await start({ tls })
    const session = connectHttp2(`https://localhost:${port}`)
    const told: unknown[] = []
    session.on('goaway', (code) => told.push(code))
    expect(await ask(session, '/')).toBe('served')
    server.drain()
    for (let n = 0; n < 5; n++) expect(await ask(session, '/')).toBe('served')
    expect(told).toEqual([])
    const goaway = once(session, 'goaway')
    const closed = server.close()
    expect((await goaway)[0]).toBe(http2.constants.NGHTTP2_NO_ERROR)
    await closed
  })

  test('a new client is served', async () => {
    const { server, url } = await start()
    server.drain()
    expect(await ask(connectHttp2(url), '/')).toBe('served')
  })
})

describe('close', () => {
  test('serves a connection whose first bytes are on their way', async () => {
    const { server, port } = await start()
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    const answer = text(socket)
    const closed = server.close()
    await sleep(50)
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    expect(await answer).toMatch(/^HTTP\/1\.1 200 OK.*connection: close.*served/is)
    await closed
  })

  test('serves every connection that the system has completed', async () => {
    const { server, port } = await start()
    // One is accepted in a turn of the event loop, and all of them have a second.
    const sockets = Array.from({ length: 20 }, () => net.connect(port, '127.0.0.1'))
    const answers = sockets.map((socket) => {
      socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
      return text(socket).catch(String)
    })
    await Promise.race(sockets.map((socket) => once(socket, 'connect')))
    await server.close()
    for (const answer of await Promise.all(answers)) expect(answer).toContain('served')
  })
})
