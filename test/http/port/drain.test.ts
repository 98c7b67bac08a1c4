import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import http2, { type ClientHttp2Session } from 'node:http2'
import net, { type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { OnePortServer } from '../../../src/http/port/port.ts'
import { frame } from '../../support/raw-http2.ts'

/** A server whose answers are "served", with what is asked of it: "/begun" begins an answer and holds its end back. */
async function start() {
  let finish = (): void => {}
  const server = new OnePortServer((request, response) => {
    const answer = response as ServerResponse
    if (request.url !== '/begun') return answer.end('served')
    answer.write('begun, ')
    finish = () => answer.end('finished')
  })
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

/** An HTTP/2 client that does not act on a GOAWAY: it goes on to open streams. */
class StubbornHttp2Client {
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #nextStream = 1

  constructor(port: number) {
    this.#socket = net.connect(port, '127.0.0.1')
    onTestFinished(() => void this.#socket.destroy())
    this.#socket.on('error', () => {})
    this.#socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
    })
    this.#socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)]))
  }

  /** Asks for `/` with headers of the static table (RFC 7541, appendix A), and waits for the answer's body. */
  async ask(): Promise<void> {
    const stream = this.#nextStream
    this.#nextStream += 2
    const headers = Buffer.from([0x82, 0x86, 0x84, 0x41, 0x01, 0x61])
    // END_STREAM and END_HEADERS.
    this.#socket.write(frame(1, 5, stream, headers))
    await expect
      .poll(() => this.frames().filter((one) => one.type === 0 && one.stream === stream).length, { interval: 5 })
      .toBeGreaterThan(0)
  }

  /** Waits until the server has sent so many GOAWAYs, and returns the last stream and the error of each. */
  async goaways(count: number): Promise<{ lastStream: number; error: number }[]> {
    const all = () =>
      this.frames()
        .filter(({ type }) => type === 7)
        .map(({ payload }) => ({ lastStream: payload.readUInt32BE(0), error: payload.readUInt32BE(4) }))
    await expect.poll(() => all().length, { interval: 5 }).toBeGreaterThanOrEqual(count)
    return all()
  }

  frames(): { type: number; stream: number; payload: Buffer }[] {
    const frames = []
    for (let at = 0; at + 9 <= this.#received.length; ) {
      const size = this.#received.readUIntBE(at, 3)
      frames.push({
        type: this.#received.readUInt8(at + 3),
        stream: this.#received.readUInt32BE(at + 5),
        payload: this.#received.subarray(at + 9, at + 9 + size),
      })
      at += 9 + size
    }
    return frames
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
  test('a client is asked to leave at once, and what it still sends is served', async () => {
    const { server, port } = await start()
    const client = new StubbornHttp2Client(port)
    await client.ask()
    server.drain()
    const notice = { lastStream: 2 ** 31 - 1, error: 0 }
    expect(await client.goaways(1)).toEqual([notice])
    await client.ask()
    await client.ask()
    expect(await client.goaways(1)).toEqual([notice])
    const closed = server.close()
    expect((await client.goaways(2)).slice(0, 2)).toEqual([notice, { lastStream: 5, error: 0 }])
    await closed
  })

  test('requests in flight finish, also those of a client that leaves', async () => {
    const { server, url, finish } = await start()
    const session = connectHttp2(url)
    const begun = session.request({ ':path': '/begun' })
    await once(begun, 'data')
    const told = once(session, 'goaway')
    server.drain()
    expect((await told)[0]).toBe(http2.constants.NGHTTP2_NO_ERROR)
    finish()
    expect(await text(begun)).toBe('finished')
    if (!session.destroyed) await once(session, 'close')
  })

  test('a new client is served, and asked to leave with its first request', async () => {
    const { server, url } = await start()
    server.drain()
    const session = connectHttp2(url)
    await once(session, 'remoteSettings')
    await sleep(50)
    const told = once(session, 'goaway')
    expect(await ask(session, '/')).toBe('served')
    await told
  })

  test('answers that are being written stay whole', async () => {
    const size = 8 * 1024 * 1024
    const server = new OnePortServer((_, response) => void (response as ServerResponse).end(Buffer.alloc(size, 'x')))
    const { port } = await server.listen(0, '127.0.0.1')
    onTestFinished(() => server.close(0))
    const session = http2.connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 2 ** 24 } })
    onTestFinished(() => session.destroy())
    session.on('connect', () => session.setLocalWindowSize(2 ** 26))
    const streams = Array.from({ length: 5 }, () => session.request({ ':path': '/' }))
    const bodies = Promise.all(streams.map((stream) => text(stream)))
    await once(streams[0]!, 'data')
    server.drain()
    for (const body of await bodies) expect(body.length).toBe(size)
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
    const sockets = Array.from({ length: 100 }, () => net.connect(port, '127.0.0.1'))
    const answers = sockets.map((socket) => {
      socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
      return text(socket).catch(String)
    })
    await Promise.race(sockets.map((socket) => once(socket, 'connect')))
    await server.close()
    for (const answer of await Promise.all(answers)) expect(answer).toContain('served')
  })
})
