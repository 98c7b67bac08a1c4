import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net, { type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import tls, { type ConnectionOptions, type TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { KeyPair } from '../../../src/base/pem.ts'
import { type OnePortOptions, OnePortServer } from '../../../src/http/port/port.ts'
import { keptLog } from '../../support/log-lines.ts'
import { hasPart } from '../../support/optional.ts'
import { portHandlers } from '../../support/port-handlers.ts'
import { trustedAuthority } from '../../support/tls.ts'

const withOpenssl = hasPart('openssl')
const authority = withOpenssl ? await trustedAuthority() : undefined
const pair = withOpenssl ? await newPair() : { cert: '', key: '' }

async function newPair(): Promise<KeyPair> {
  const { cert, key } = await authority!.issue('localhost')
  return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
}

/** A server that answers with what it knows of the connection; "/begun" begins an answer and holds its end back. */
async function start(options: OnePortOptions = {}) {
  let finish = (): void => {}
  const server = new OnePortServer(
    portHandlers((request, response) => {
      const answer = response as ServerResponse
      const { encrypted } = request.socket as TLSSocket
      if (request.url !== '/begun') return answer.end(`HTTP/${request.httpVersion}, ${encrypted ? 'TLS' : 'no TLS'}`)
      answer.write('begun, ')
      finish = () => answer.end('finished')
    }),
    { tls: pair, ...options },
  )
  const { port } = await server.listen(0, '127.0.0.1')
  onTestFinished(() => server.close(0))
  return { server, port, url: `https://localhost:${port}`, finish: () => finish() }
}

function http2Client(url: string) {
  const session = http2.connect(url)
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  return session
}

const ask = (session: http2.ClientHttp2Session, path = '/') => text(session.request({ ':path': path }))

async function get(url: string, agent: https.Agent | false = false, headers: Record<string, string> = {}) {
  const request = https.get(url, { agent, headers })
  const [response] = await once(request, 'response')
  return { status: response.statusCode, connection: response.headers.connection, body: await text(response) }
}

/** A TCP connection that has sent these bytes. */
async function raw(port: number, bytes: string | Buffer = ''): Promise<Socket> {
  const socket = net.connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(bytes)
  return socket
}

async function secured(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = tls.connect({ port, host: '127.0.0.1', servername: 'localhost', ...options })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
  socket.on('error', () => {})
  return socket
}

/** The certificate's serial number that a new connection sees. */
async function serialAt(port: number): Promise<string> {
  const socket = await secured(port)
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

/** The bytes of a client's first flight. */
async function clientHello(): Promise<Buffer> {
  const catcher = net.createServer().listen(0, '127.0.0.1')
  await once(catcher, 'listening')
  const client = tls.connect((catcher.address() as net.AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
  const [socket] = await once(catcher, 'connection')
  socket.on('error', () => {})
  const [bytes] = await once(socket, 'data')
  client.destroy()
  catcher.close()
  return bytes
}

async function closed(socket: Socket): Promise<void> {
  socket.resume()
  // Not once(), which rejects if the connection is reset.
  if (!socket.closed) await new Promise((resolve) => socket.on('close', resolve))
}

describe.skipIf(!withOpenssl)('a port with TLS', () => {
  test('speaks HTTP/2 and HTTP/1.1 as client and server agree, and HTTP/1.1 with clients that do not say', async () => {
    const { url, port } = await start()
    expect(await ask(http2Client(url))).toBe('HTTP/2.0, TLS')
    expect((await get(url)).body).toBe('HTTP/1.1, TLS')
    const offered = await Promise.all(
      [['h2', 'http/1.1'], ['http/1.1', 'h2'], ['http/1.1'], undefined].map(async (ALPNProtocols) => {
        const socket = await secured(port, ALPNProtocols && { ALPNProtocols })
        return socket.alpnProtocol
      }),
    )
    expect(offered).toEqual(['h2', 'h2', 'http/1.1', false])
    const silent = await secured(port)
    silent.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    expect(await text(silent)).toContain('HTTP/1.1, TLS')
  })

  test('speaks what was agreed on, for any first bytes', async () => {
    const { port } = await start()
    const asHttp1 = await secured(port, { ALPNProtocols: ['http/1.1'] })
    asHttp1.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    expect(await text(asHttp1)).toMatch(/^HTTP\/1\.1 400 /)
    const asHttp2 = await secured(port, { ALPNProtocols: ['h2'] })
    asHttp2.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    expect(await text(asHttp2)).not.toContain('HTTP/1.1')
  })

  test('refuses TLS 1.1, unknown protocols and a second handshake', async () => {
    const { port, url } = await start()
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    await expect(secured(port, old)).rejects.toThrow(/alert protocol version/)
    await expect(secured(port, { ALPNProtocols: ['spdy/3'] })).rejects.toThrow(/no application protocol/)
    const again = await secured(port, { maxVersion: 'TLSv1.2' })
    expect(again.getProtocol()).toBe('TLSv1.2')
    const outcome = new Promise((resolve) => {
      again.renegotiate({}, (error) => resolve(error ?? 'done'))
      again.on('error', resolve)
      again.on('close', () => resolve('closed'))
    })
    again.resume()
    expect(String(await outcome)).toMatch(/no renegotiation/)
    expect((await get(url)).status).toBe(200)
  })

  test('answers HTTP without TLS with 400, closes on all else, and lives', async () => {
    const { port, url } = await start({ timeouts: { lingerMs: 100 } })
    const plain = await raw(port, 'GET /?token=x HTTP/1.1\r\nhost: a\r\n\r\n')
    const answer = await text(plain)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*connection: close\r\n.*This port takes TLS only/s)
    const others = [
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      Buffer.concat([Buffer.from([0x16, 3, 1, 0, 5]), Buffer.from('hello')]),
      Buffer.concat([Buffer.from([0x16, 3, 1, 0xff, 0xff]), Buffer.alloc(70_000, 1)]),
      Buffer.concat([await clientHello(), Buffer.alloc(1000, 7)]),
    ]
    for (const bytes of others) await closed(await raw(port, bytes))
    const hello = await clientHello()
    const left = await Promise.all([1, 5, 100, hello.length].map((length) => raw(port, hello.subarray(0, length))))
    for (const socket of left) socket.resetAndDestroy()
    expect((await get(url)).status).toBe(200)
  })

  test('has room for others while handshakes are half open, and ends those', async () => {
    const { lines, logger } = keptLog()
    const { port, url } = await start({
      timeouts: { openingMs: 2500 },
      ceilings: { connectionsPerAddress: 50, connections: 1000 },
      log: logger,
    })
    const hello = await clientHello()
    const halves = await Promise.all(
      Array.from({ length: 40 }, (_, n) => raw(port, [hello, hello.subarray(0, 1), hello.subarray(0, 100), ''][n % 4])),
    )
    const silent = await Promise.all(Array.from({ length: 5 }, () => secured(port)))
    expect(await ask(http2Client(url))).toBe('HTTP/2.0, TLS')
    expect((await get(url)).status).toBe(200)
    const more = await Promise.all(Array.from({ length: 30 }, () => raw(port, hello)))
    await Promise.all(more.slice(10).map(closed))
    expect(lines.some(({ fields }) => fields.ceiling === 'connections of one address')).toBe(true)
    await Promise.all([...halves, ...silent, ...more].map(closed))
    await Promise.all(Array.from({ length: 20 }, async () => expect((await get(url)).status).toBe(200)))
  })

  test('limits headers, idle connections and connections without a request as one without TLS', async () => {
    const { port, url } = await start({ timeouts: { headersMs: 300 } })
    expect((await get(url, false, { big: 'x'.repeat(17_000) })).status).toBe(431)
    const slow = await secured(port)
    slow.write('GET / HTTP/1.1\r\nhost: a\r\n')
    expect(await text(slow)).toMatch(/^HTTP\/1\.1 408 /)
    const idle = http2Client((await start({ timeouts: { idleMs: 400, lingerMs: 100 } })).url)
    expect(await ask(idle)).toBe('HTTP/2.0, TLS')
    if (!idle.destroyed) await once(idle, 'close')
  })

  test('another certificate is for connections that come from then on; those that there are go on', async () => {
    const { server, port, url } = await start()
    const session = http2Client(url)
    expect(await ask(session)).toBe('HTTP/2.0, TLS')
    const before = await serialAt(port)
    const begun = Array.from({ length: 20 }, () => secured(port))
    server.replaceTls(await newPair())
    await Promise.all(begun)
    expect(await serialAt(port)).not.toBe(before)
    expect(await ask(session)).toBe('HTTP/2.0, TLS')
    expect((session.socket as TLSSocket).getPeerCertificate().serialNumber).toBe(before)
  })

  test.each([
    ['ECDHE-RSA-AES128-GCM-SHA256', true],
    ['ECDHE-RSA-CHACHA20-POLY1305', true],
    ['ECDHE-RSA-AES128-SHA', false],
    ['ECDHE-RSA-AES256-SHA384', false],
    ['AES128-GCM-SHA256', false],
  ])(
    'TLS 1.2 with %s: %s (RFC 9325, 4.2: authenticated encryption with forward secrecy)',
    async (cipher, isOffered) => {
      const { port } = await start()
      // The key of the test's certificate decides between RSA and ECDSA.
      const ciphers = [cipher, cipher.replace('-RSA-', '-ECDSA-')].join(':')
      const client = secured(port, { maxVersion: 'TLSv1.2', ciphers: `${ciphers}:@SECLEVEL=0` })
      if (isOffered) expect(ciphers).toContain((await client).getCipher().name)
      else await expect(client).rejects.toThrow(/handshake failure/i)
    },
  )

  test('in a drain, HTTP/1.1 answers end their connection', async () => {
    const { server, url } = await start()
    const agent = new https.Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    expect((await get(url, agent)).connection).toBe('keep-alive')
    server.drain()
    expect((await get(url, agent)).connection).toBe('close')
  })

  test('close serves a connection whose handshake is on its way, and does not wait for silent ones', async () => {
    const { server, port } = await start()
    await Promise.all([secured(port), raw(port, await clientHello()), raw(port)])
    const socket = tls.connect({ port, host: '127.0.0.1', servername: 'localhost' })
    const answer = text(socket)
    await once(socket, 'connect')
    const stopped = server.close(20_000)
    await once(socket, 'secureConnect')
    await sleep(20)
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    expect(await answer).toMatch(/^HTTP\/1\.1 200 OK.*connection: close.*TLS/is)
    const late = sleep(10_000, 'late', { ref: false })
    expect(await Promise.race([stopped, late])).toBeUndefined()
  })
})
