import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import net, { type AddressInfo, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { NodeRequest } from '../../../src/http/exchange.ts'
import { type ConnectionTimeouts, maxConcurrentRequests } from '../../../src/http/port/limits.ts'
import { ListenError } from '../../../src/http/port/listen.ts'
import { type OnePortOptions, OnePortServer } from '../../../src/http/port/port.ts'
import type { NodeResponse } from '../../../src/wire/output.ts'
import { listening } from '../../support/listening.ts'
import { portHandlers } from '../../support/port-handlers.ts'
import { Http2Frames, frame as streamFrame } from '../../support/raw-http2.ts'

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const settingsFrame = frame(4)
const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'))

describe('protocols', () => {
  test('fetch, node:http and node:http2 reach one handler through one port', async () => {
    const { url } = await start(echo)
    const posted = await fetch(`${url}/a`, { method: 'POST', body: 'hello' })
    expect(await posted.text()).toBe('1.1 POST /a hello')

    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const first = await get(`${url}/b`, { agent })
    const second = await get(`${url}/c`, { agent })
    expect([first.body, second.body]).toEqual(['1.1 GET /b ', '1.1 GET /c '])
    expect(second.localPort).toBe(first.localPort)

    const session = connectHttp2(url)
    const bodies = [1, 2, 3].map(async (n) => (await ask(session, `/${n}`, { body: 'hello' })).body)
    expect(await Promise.all(bodies)).toEqual(['2.0 POST /1 hello', '2.0 POST /2 hello', '2.0 POST /3 hello'])
  })

  test('a start that arrives byte by byte is understood', async () => {
    const { port } = await start(echo)
    const slow = net.createServer((client) => {
      const server = net.connect(port, '127.0.0.1').setNoDelay(true)
      server.pipe(client)
      client.once('data', async (data: Buffer) => {
        if (server.connecting) await once(server, 'connect')
        for (const byte of data.subarray(0, preface.length)) {
          await sleep(2)
          server.write(Buffer.of(byte))
        }
        server.write(data.subarray(preface.length))
        client.pipe(server)
      })
      for (const socket of [client, server]) socket.on('error', () => {})
    })
    const url = await listening(slow)
    expect((await ask(connectHttp2(url), '/split')).body).toBe('2.0 GET /split ')
    expect((await get(`${url}/split`, { agent: false })).body).toBe('1.1 GET /split ')
    // "P" alone could become either.
    expect((await get(`${url}/split`, { agent: false, method: 'PUT' })).body).toBe('1.1 PUT /split ')
  })

  test('pipelined requests are answered in order', async () => {
    const { port } = await start((request, response) => {
      // The first answer is ready last.
      setTimeout(() => reply(response, `answer ${request.url?.slice(1)}`), request.url === '/1' ? 30 : 0)
    })
    const answers = await exchange(port, `${bare('/1')}${bare('/2')}${bare('/3', 'connection: close')}`)
    expect(answers.match(/answer \d/g)).toEqual(['answer 1', 'answer 2', 'answer 3'])
  })

  test('an offer to upgrade to h2c is passed over', async () => {
    const { port } = await start(echo)
    const upgrade = 'connection: upgrade, http2-settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk'
    expect(await exchange(port, bare('/', upgrade))).toMatch(/^HTTP\/1\.1 200 OK.*1\.1 GET \/ $/s)
  })

  test('CONNECT is refused over both protocols', async () => {
    const { url, port } = await start(echo)
    expect(await exchange(port, 'CONNECT a.example:443 HTTP/1.1\r\nhost: a.example\r\n\r\n')).toSatisfy(isRefusal(400))
    const session = connectHttp2(url)
    const stream = session.request({ ':method': 'CONNECT', ':authority': 'a.example:443' })
    const [headers] = await once(stream, 'response')
    expect(headers[':status']).toBe(405)
  })

  test('CONNECT behind an unanswered request does not overtake its answer', async () => {
    const { port } = await start(hang)
    const answers = await exchange(port, `${bare('/')}CONNECT a.example:443 HTTP/1.1\r\nhost: a.example\r\n\r\n`)
    expect(answers).toBe('')
  })

  test('Expect: 100-continue is granted, other expectations are not', async () => {
    const { url, port } = await start(echo)
    const request = http.request(url, { method: 'POST', headers: { expect: '100-continue' } })
    request.flushHeaders()
    await once(request, 'continue')
    request.end('body')
    const [response] = await once(request, 'response')
    expect(await text(response)).toBe('1.1 POST / body')
    expect(await exchange(port, bare('/', 'expect: a miracle\r\nconnection: close'))).toMatch(/^HTTP\/1\.1 417 /)

    const session = connectHttp2(url)
    const stream = session.request({ ':method': 'POST', expect: '100-continue' }, { endStream: false })
    const answer = text(stream)
    await once(stream, 'continue')
    stream.end('body')
    expect(await answer).toBe('2.0 POST / body')
    const [head] = await once(session.request({ expect: 'a miracle' }), 'response')
    expect(head[':status']).toBe(417)
  })

  test('TRACE reaches the handler', async () => {
    const { url } = await start(echo)
    expect((await get(`${url}/t`, { method: 'TRACE' })).body).toBe('1.1 TRACE /t ')
  })
})

describe('bytes that are not HTTP', () => {
  const garbage: Record<string, string | Buffer> = {
    'a TLS handshake': Buffer.from('16030100c8010000c40303', 'hex'),
    SSH: 'SSH-2.0-OpenSSH_9.2\r\n\r\n',
    'a line': 'hello\r\n\r\n',
    'a method that only begins like HTTP/2': 'PUT\r\n\r\n',
    'a bad version': 'GET / HTTP/9.9\r\n\r\n',
    'two lengths': 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    'a bad header name': bare('/', 'a b: c'),
  }
  test.each(Object.entries(garbage))('%s is answered with 400 and the end', async (_, bytes) => {
    const { url, port } = await start(echo)
    expect(await exchange(port, bytes)).toSatisfy(isRefusal(400))
    expect((await get(url)).body).toBe('1.1 GET / ')
  })

  test('what only begins like HTTP/2 is closed', async () => {
    const { url, port } = await start(echo)
    for (const bytes of ['PRIVATE / HTTP/1.1\r\n\r\n', Buffer.concat([preface, Buffer.alloc(64, 0xff)])]) {
      await exchange(port, bytes)
    }
    expect((await get(url)).body).toBe('1.1 GET / ')
  })

  test('random bytes end in a closed connection', async () => {
    const { url, port } = await start(echo)
    const starts = ['', 'P', 'PR', 'PRI', preface, Buffer.concat([preface, settingsFrame]), 'GET / HTTP/1.1\r\n']
    const rounds = Array.from({ length: 210 }, async (_, n) => {
      const bytes = Buffer.concat([Buffer.from(starts[n % starts.length] ?? ''), randomBytes((n * 37) % 2000)])
      // A random frame can announce more than comes: then the client's end is the end.
      await exchange(port, bytes, { end: true })
    })
    await Promise.all(rounds)
    expect((await get(url)).body).toBe('1.1 GET / ')
    expect((await ask(connectHttp2(url), '/')).body).toBe('2.0 GET / ')
  })

  test('a body that breaks off in garbage is answered with 400, and its handler hears of it', async () => {
    const failed = Promise.withResolvers<void>()
    const { port } = await start(
      (request) => {
        request.on('error', () => failed.resolve())
        request.resume()
      },
      { lingerMs: 3_600_000 },
    )
    const socket = open(port)
    const answer = received(socket)
    socket.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n')
    expect(await answer).toSatisfy(isRefusal(400))
    await failed.promise
  })

  test.each([
    ['CONNECT', 'CONNECT a.example:443 HTTP/1.1\r\nhost: a.example\r\n\r\n'],
    ['garbage', '\0'],
  ])('%s is answered also to a client that reads only when it has sent all', async (_, bytes) => {
    const { port } = await start(echo)
    const socket = open(port).pause()
    await new Promise<void>((resolve, reject) => {
      const written = (error?: Error | null): void => (error ? reject(error) : resolve())
      socket.write(bytes)
      socket.write(Buffer.alloc(16 * 1024 * 1024), written)
    })
    expect(await received(socket)).toSatisfy(isRefusal(400))
  })

  test('a client that was turned away but stays is cut off', async () => {
    const { port } = await start(echo, { lingerMs: 20 })
    const socket = open(port)
    socket.write('\0')
    expect(await received(socket)).toSatisfy(isRefusal(400))
    await cutOff(socket)
  })

  test('garbage behind a request lets that be answered', async () => {
    const { port } = await start((_, response) => setTimeout(() => reply(response, 'answer'), 20))
    const answer = await exchange(port, `${bare('/')}\0garbage`)
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK.*connection: close.*answer$/is)
  })

  test('garbage behind a request does not land in its half-sent answer', async () => {
    const { port } = await start((request, response) => {
      ;(response as ServerResponse).write('half')
      request.resume()
    })
    const answer = await exchange(port, 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n', {
      onceHeard: ['half', 'zz\r\n'],
    })
    expect(answer).toMatch(/half\r\n$/)
  })
})

describe('clients that leave', () => {
  test.each([
    ['before the first byte', ''],
    ['after one', 'P'],
    ['in the middle of headers', 'GET / HTTP/1.1\r\nho'],
    ['after the HTTP/2 preface', Buffer.concat([preface, settingsFrame])],
  ])('%s, on their side only, are let go', async (_, bytes) => {
    const { port } = await start(echo)
    await exchange(port, bytes, { end: true })
  })

  test('a request with an end right behind it is answered', async () => {
    // More than the system buffers: the end must not cut it short.
    const { port } = await start((_, response) => reply(response, `${'-'.repeat(16 * 1024 * 1024)}answer`))
    expect((await exchange(port, bare('/'), { end: true })).slice(-10)).toBe('----answer')
  })

  test('with a reset do no harm', async () => {
    const { url, port } = await start(hang)
    for (const bytes of ['', 'P', 'GET / HT', bare('/'), preface, Buffer.concat([preface, settingsFrame])]) {
      const socket = net.connect(port, '127.0.0.1')
      await new Promise<void>((written) =>
        bytes === '' ? socket.once('connect', written) : socket.write(bytes, () => written()),
      )
      await nextTurn()
      socket.resetAndDestroy()
    }
    const session = connectHttp2(url)
    await once(session, 'remoteSettings')
  })

  test('an HTTP/2 client that says goodbye but stays is cut off', async () => {
    const { port } = await start(echo, { lingerMs: 20 })
    const socket = open(port)
    socket.write(Buffer.concat([preface, settingsFrame, frame(7, Buffer.alloc(8))]))
    socket.resume()
    await once(socket, 'end')
    await cutOff(socket)
  })
})

describe('limits', () => {
  /** Requests whose head has about so many bytes. Node does not count all that separates its parts. */
  const heads: Record<string, (bytes: number) => string> = {
    'one field': (bytes) => bare('/', `connection: close\r\na: ${'b'.repeat(bytes - 40)}`),
    'a path and fields': (bytes) =>
      bare(`/${'p'.repeat(bytes - 15_115)}`, `connection: close${`\r\na: ${'b'.repeat(1000)}`.repeat(15)}`),
    'a long path': (bytes) => bare(`/${'p'.repeat(bytes - 40)}`, 'connection: close'),
  }
  test.each(Object.entries(heads))('headers of more than 16 KiB are answered with 431: %s', async (_, head) => {
    const { port } = await start(echo)
    expect(await exchange(port, head(16_384 - 200))).toMatch(/^HTTP\/1\.1 200 /)
    expect(await exchange(port, head(16_384 + 200))).toSatisfy(isRefusal(431))
  })

  test('even to a client that sends on and on', async () => {
    const { port } = await start(echo)
    expect(await exchange(port, bare('/', `a: ${'b'.repeat(2_000_000)}`))).toSatisfy(isRefusal(431))
  })

  test('headers of more than 16 KiB do not reach the handler over HTTP/2', async () => {
    const { url } = await start(echo)
    const session = connectHttp2(url)
    // A server's limits hold from when its client has heard of them.
    await ask(session, '/')
    await expect(ask(session, '/', { headers: { a: '~'.repeat(17_000) } })).rejects.toThrow()
    expect((await ask(session, '/', { headers: { a: '~'.repeat(15_000) } })).body).toBe('2.0 GET / ')
  })

  test.each([
    ['nothing', ''],
    ['half a preface', 'PR'],
    ['a preface without settings', preface],
  ])('a connection that sends %s is closed', async (_, bytes) => {
    const { port } = await start(echo, { openingMs: 30 })
    await exchange(port, bytes)
  })

  test('an HTTP/2 connection that has opened in time stays', async () => {
    const { url } = await start(echo, { openingMs: 500, lingerMs: 20 })
    const session = connectHttp2(url)
    await once(session, 'remoteSettings')
    await sleep(700)
    expect((await ask(session, '/')).body).toBe('2.0 GET / ')
  })

  test('headers that do not end are answered with 408', async () => {
    const { port } = await start(echo, { headersMs: 30, requestMs: 60_000 })
    expect(await exchange(port, 'GET / HTTP/1.1\r\nhost: a\r\n')).toSatisfy(isRefusal(408))
  })

  test('a request that comes in after its 408 is not served', async () => {
    const served: (string | undefined)[] = []
    const { port } = await start(({ url }) => served.push(url), { headersMs: 30, lingerMs: 150 })
    await exchange(port, 'GET /late HTTP/1.1\r\nhost: a\r\n', { onceHeard: ['408', '\r\n'] })
    expect(served).toEqual([])
  })

  test('a body that does not end is answered with 408, and its handler hears of it', async () => {
    const failed = Promise.withResolvers<void>()
    const { port } = await start(
      (request) => {
        request.on('error', () => failed.resolve())
        request.resume()
      },
      { headersMs: 30, requestMs: 30 },
    )
    expect(await exchange(port, bare('/', 'content-length: 5'))).toSatisfy(isRefusal(408))
    await failed.promise
  })

  test('a body that does not end is cancelled over HTTP/2; one that has ended may wait for its answer', async () => {
    const closed = Promise.withResolvers<void>()
    const { url } = await start(
      async (request, response) => {
        if (request.url === '/patient') {
          // Read or not: what counts is that it came.
          await sleep(500)
          return reply(response, 'at last')
        }
        request.on('close', () => closed.resolve())
        request.resume()
      },
      { headersMs: 200, requestMs: 200 },
    )
    const session = connectHttp2(url)
    const patient = ask(session, '/patient', { body: 'all of it' })
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => {})
    stream.write('some of it')
    await once(stream, 'close')
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_CANCEL)
    await closed.promise
    expect((await patient).body).toBe('at last')
  })

  test('streams outlive every limit as long as they send', async () => {
    const { url } = await start(beat(12, 50), {
      openingMs: 300,
      headersMs: 300,
      requestMs: 300,
      keepAliveMs: 300,
      idleMs: 300,
    })
    const [first, second] = await Promise.all([get(url), ask(connectHttp2(url), '/')])
    expect(first.body).toBe('beat'.repeat(12))
    expect(second.body).toBe('beat'.repeat(12))
  })

  test('an idle HTTP/2 connection ends with a GOAWAY', async () => {
    const { url } = await start(echo, { idleMs: 40 })
    const session = connectHttp2(url)
    const goaway = once(session, 'goaway')
    expect((await ask(session, '/')).body).toBe('2.0 GET / ')
    expect((await goaway)[0]).toBe(http2.constants.NGHTTP2_NO_ERROR)
    await closed(session)
  })

  test('an HTTP/2 connection on which a request hangs and nothing moves is closed', async () => {
    const { url } = await start(hang, { idleMs: 40 })
    await expect(ask(connectHttp2(url), '/')).rejects.toThrow()
  })

  test('an idle HTTP/1.1 connection is closed', async () => {
    const { port } = await start(echo, { keepAliveMs: 20 })
    expect(await exchange(port, bare('/'))).toMatch(/1\.1 GET \/ $/)
  })

  test('an HTTP/1.1 connection on which something is asked now and then stays', async () => {
    const { url } = await start(echo, { keepAliveMs: 800 })
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const ports = new Set<number | undefined>()
    for (let asked = 0; asked < 8; asked++) {
      ports.add((await get(url, { agent })).localPort)
      await sleep(150)
    }
    expect(ports.size).toBe(1)
  })

  test('a client that does not read its answer is cut off', async () => {
    const gone = Promise.withResolvers<void>()
    const { port } = await start(
      (_, response) => {
        response.on('close', () => gone.resolve())
        ;(response as ServerResponse).write(Buffer.alloc(32 * 1024 * 1024))
      },
      { idleMs: 60 },
    )
    const socket = net.connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    socket.write(bare('/'))
    await gone.promise
  })

  describe('an answer that its client does not read', () => {
    const unread = { unreadMs: 50, unreadMsPerKiB: 0 }

    test('loses its stream over HTTP/2, also on a busy connection', async () => {
      const { port, server } = await start((_, response) => reply(response, 'x'.repeat(100)), unread, {
        ceilings: { requests: 3 },
      })
      const socket = open(port)
      const client = new Http2Frames(socket)
      // SETTINGS_INITIAL_WINDOW_SIZE 0 (RFC 9113, 6.5.2): nothing of a body can be sent.
      const noWindow = streamFrame(4, 0, 0, Buffer.from('000400000000', 'hex'))
      const requests = [1, 3, 5].map((stream) => streamFrame(1, 5, stream, Buffer.from('828684410161', 'hex')))
      socket.write(Buffer.concat([preface, noWindow, ...requests]))
      const pings = setInterval(() => socket.write(streamFrame(6, 0, 0, Buffer.alloc(8))), 10)
      onTestFinished(() => clearInterval(pings))
      const used = () => server.ceilingUses().find(({ option }) => option === 'requests')?.held
      await expect.poll(() => client.ofType(1).length).toBe(3)
      await expect.poll(() => client.ofType(3).map(({ payload }) => payload.readUInt32BE(0))).toEqual([8, 8, 8])
      expect(used()).toBe(0)
      expect(client.ofType(7)).toEqual([])
    })

    test('that goes on loses its stream over HTTP/2 too', async () => {
      const { port } = await start(beat(10_000, 5), unread)
      const socket = open(port)
      const client = new Http2Frames(socket)
      const noWindow = streamFrame(4, 0, 0, Buffer.from('000400000000', 'hex'))
      const request = streamFrame(1, 5, 1, Buffer.from('828684410161', 'hex'))
      socket.write(Buffer.concat([preface, noWindow, request]))
      await expect.poll(() => client.ofType(3).length).toBe(1)
    })

    test.each([
      ['has ended', (response: ServerResponse) => response.end(Buffer.alloc(32 * 1024 * 1024))],
      ['goes on', (response: ServerResponse) => response.write(Buffer.alloc(32 * 1024 * 1024))],
    ])('and that %s loses its connection over HTTP/1.1, whatever the client sends', async (_, answer) => {
      const gone = Promise.withResolvers<void>()
      const { port } = await start((_, response) => {
        response.on('close', () => gone.resolve())
        answer(response as ServerResponse)
      }, unread)
      const socket = open(port).pause()
      socket.write(bare('/'))
      const more = setInterval(() => socket.write('G'), 10)
      onTestFinished(() => clearInterval(more))
      await gone.promise
    })

    test('keeps its stream for as long as something is read now and then', async () => {
      const { port } = await start((_, response) => reply(response, 'x'.repeat(12)), {
        unreadMs: 600,
        unreadMsPerKiB: 0,
      })
      const socket = open(port)
      const client = new Http2Frames(socket)
      const noWindow = streamFrame(4, 0, 0, Buffer.from('000400000000', 'hex'))
      const request = streamFrame(1, 5, 1, Buffer.from('828684410161', 'hex'))
      socket.write(Buffer.concat([preface, noWindow, request]))
      await expect.poll(() => client.ofType(1).length).toBe(1)
      socket.write(streamFrame(8, 0, 1, Buffer.from('00000064', 'hex')))
      await expect.poll(() => client.ofType(0).length).toBeGreaterThan(0)
      await sleep(1000)
      expect(client.ofType(3)).toEqual([])
    })
  })

  test('no more requests are open at once than allowed', async () => {
    let calls = 0
    const { url, port } = await start(() => void calls++)
    await exchange(port, bare('/').repeat(maxConcurrentRequests + 1))
    expect(calls).toBe(maxConcurrentRequests)

    const session = connectHttp2(url)
    const [settings] = await once(session, 'remoteSettings')
    expect(settings.maxConcurrentStreams).toBe(maxConcurrentRequests)

    calls = 0
    const hasty = http2.connect(url, { peerMaxConcurrentStreams: 2 * maxConcurrentRequests })
    onTestFinished(() => hasty.destroy())
    const streams = Array.from({ length: maxConcurrentRequests + 1 }, () => hasty.request({ ':path': '/' }))
    for (const stream of streams) stream.on('error', () => {})
    await new Promise((resolve) => streams.at(-1)!.once('close', resolve))
    expect(calls).toBe(maxConcurrentRequests)
  })

  test('a client that opens and resets streams in a burst is turned away', async () => {
    const { url } = await start(hang)
    const session = connectHttp2(url)
    await once(session, 'remoteSettings')
    const turnedAway = once(session, 'goaway')
    for (let n = 0; n < 1000; n++) {
      const stream = session.request({ ':path': '/' })
      stream.on('error', () => {})
      stream.close(http2.constants.NGHTTP2_CANCEL)
      if (n % 50 === 0) await nextTurn()
    }
    expect((await turnedAway)[0]).not.toBe(http2.constants.NGHTTP2_NO_ERROR)
  })

  test('as many cookies are taken over HTTP/2 as over HTTP/1.1, each in a field of its own (RFC 9113, 8.2.3)', async () => {
    const { url } = await start(echo)
    const cookies = Array.from({ length: 250 }, (_, n) => `cookie-${n}=0123456789`)
    expect((await get(url, { headers: { cookie: cookies.join('; ') } })).body).toBe('1.1 GET / ')
    const session = connectHttp2(url)
    await once(session, 'remoteSettings')
    expect(await text(session.request({ ':path': '/', cookie: cookies }))).toBe('2.0 GET / ')
    expect((await ask(session, '/')).body).toBe('2.0 GET / ')
  })

  test('a client that cancels all of its streams but one at once keeps that one', async () => {
    const { url, held } = await startHolding()
    const session = connectHttp2(url)
    await once(session, 'remoteSettings')
    const kept = ask(session, '/kept')
    const answer = await held()
    const left = Array.from({ length: maxConcurrentRequests - 1 }, () => session.request({ ':path': '/left' }))
    for (const stream of left) {
      stream.on('error', () => {})
      await held()
    }
    for (const stream of left) stream.close(http2.constants.NGHTTP2_CANCEL)
    await sleep(100)
    reply(answer, 'kept')
    expect((await kept).body).toBe('kept')
    expect(session.destroyed).toBe(false)
  })

  test('a first flight of more requests than are allowed loses none that is in progress', async () => {
    const { port } = await start((_, response) => setTimeout(() => reply(response, ''), 200))
    const socket = open(port)
    const client = new Http2Frames(socket)
    // GET / with headers of the static table (RFC 7541, appendix A), END_STREAM and END_HEADERS.
    const requests = Array.from({ length: 360 }, (_, n) =>
      streamFrame(1, 5, 2 * n + 1, Buffer.from('828684410161', 'hex')),
    )
    socket.write(Buffer.concat([preface, settingsFrame, ...requests]))
    await expect.poll(() => client.ofType(1).length + client.ofType(3).length).toBe(360)
    expect(client.ofType(1)).toHaveLength(maxConcurrentRequests)
    expect(client.ofType(3)).toHaveLength(360 - maxConcurrentRequests)
    expect(client.ofType(7)).toEqual([])
  })

  test('a proxy, whose clients come and go, cancels as many streams as it likes', async () => {
    const { url } = await start(hang, {}, { trustedProxies: 1 })
    const session = connectHttp2(url)
    await once(session, 'remoteSettings')
    const told: unknown[] = []
    session.on('goaway', (code) => told.push(code))
    for (let n = 0; n < 2000; n++) {
      const stream = session.request({ ':path': '/' })
      stream.on('error', () => {})
      stream.close(http2.constants.NGHTTP2_CANCEL)
      if (n % 50 === 0) await nextTurn()
    }
    await new Promise((resolve) => session.ping(resolve))
    expect(told).toEqual([])
  })

  test.each([
    ['PING', frame(6, Buffer.alloc(8))],
    ['SETTINGS', settingsFrame],
  ])('a flood of %s from a client that reads no answer ends its connection', async (_, flood) => {
    const { url, port } = await start(echo, { lingerMs: 50 })
    const socket = net.connect(port, '127.0.0.1').pause()
    const gone = new Promise<void>((resolve) => socket.once('error', () => resolve()))
    socket.write(Buffer.concat([preface, settingsFrame]))
    const batch = Buffer.concat(Array.from({ length: 20_000 }, () => flood))
    const pump = (): void => {
      if (socket.writable) socket.write(batch, () => setImmediate(pump))
    }
    pump()
    await gone
    expect((await get(url)).body).toBe('1.1 GET / ')
  })
})

describe('close', () => {
  test('lets HTTP/1.1 requests in flight finish, and closes their connections', async () => {
    const { server, url, held, port } = await startHolding()
    const agent = new http.Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const answer = get(url, { agent })
    const response = await held()
    const closing = server.close()
    reply(response, 'finished')
    expect(await answer).toMatchObject({ body: 'finished', connection: 'close' })
    await closing
    await expect(exchange(port, bare('/'))).rejects.toThrow('ECONNREFUSED')
  })

  test('lets HTTP/2 requests in flight finish, and sends a GOAWAY', async () => {
    const { server, url, held } = await startHolding()
    const session = connectHttp2(url)
    const goaway = once(session, 'goaway')
    const answer = ask(session, '/')
    const response = await held()
    const closing = server.close()
    expect((await goaway)[0]).toBe(http2.constants.NGHTTP2_NO_ERROR)
    reply(response, 'finished')
    expect((await answer).body).toBe('finished')
    await closing
  })

  test('lets streams that have begun finish', async () => {
    const { server, url, held } = await startHolding()
    const agent = new http.Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const first = get(url, { agent })
    const overHttp1 = await held()
    const second = ask(connectHttp2(url), '/')
    const overHttp2 = await held()
    for (const response of [overHttp1, overHttp2]) (response as ServerResponse).write('begun, ')
    await nextTurn()
    const closing = server.close()
    for (const response of [overHttp1, overHttp2]) reply(response, 'finished')
    expect((await first).body).toBe('begun, finished')
    expect((await second).body).toBe('begun, finished')
    await closing
  })

  test('lets every pipelined request finish, and serves no later one', async () => {
    const { server, port, held, served } = await startHolding()
    const socket = net.connect(port, '127.0.0.1')
    const answers = text(socket)
    socket.write(bare('/1') + bare('/2'))
    const responses = [await held(), await held()]
    const closing = server.close()
    socket.write(bare('/3'))
    await sleep(50)
    reply(responses[1]!, 'second')
    reply(responses[0]!, 'first')
    expect((await answers).match(/first|second|connection: close/g)).toEqual(['first', 'connection: close', 'second'])
    await closing
    expect(served).toEqual(['/1', '/2'])
  })

  test('lets an answer that is written but not yet sent reach its client', async () => {
    const size = 32 * 1024 * 1024
    const { server, port, held } = await startHolding()
    const socket = net.connect(port, '127.0.0.1').pause()
    socket.write(bare('/'))
    const response = (await held()) as ServerResponse
    response.end(Buffer.alloc(size))
    const closing = server.close()
    let received = 0
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    socket.resume()
    await once(socket, 'end')
    socket.end()
    expect(received).toBeGreaterThan(size)
    await closing
  })

  test('serves a request whose headers were arriving', async () => {
    const { server, port } = await start(echo)
    const socket = net.connect(port, '127.0.0.1')
    const answer = text(socket)
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n')
    await get(`http://127.0.0.1:${port}`)
    const closing = server.close()
    socket.write('\r\n')
    expect(await answer).toMatch(/connection: close.*1\.1 GET \/ $/is)
    await closing
  })

  test('closes connections that are idle or have sent nothing', async () => {
    const { server, url, port } = await start(echo)
    const agent = new http.Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    await get(url, { agent })
    const session = connectHttp2(url)
    await ask(session, '/')
    const silent = net.connect(port, '127.0.0.1').resume()
    silent.on('error', () => {})
    await once(silent, 'connect')
    await get(url)
    // An hour: whatever waited for the cut-off would run into the test's time limit.
    await server.close(3_600_000)
    await closed(session)
  })

  test('closes HTTP/2 connections whose clients do not', async () => {
    const { server, port } = await start(echo, { lingerMs: 20 })
    const socket = open(port)
    socket.write(Buffer.concat([preface, settingsFrame]))
    await once(socket, 'data')
    await server.close(3_600_000)
  })

  test('cuts off what still hangs after the grace', async () => {
    const { server, url, held, port } = await startHolding()
    const first = get(url)
    await held()
    const second = ask(connectHttp2(url), '/')
    await held()
    const unfinished = exchange(port, 'GET / HTTP/1.1\r\n').catch(() => '')
    const cut = Promise.allSettled([first, second])
    await server.close(20)
    expect((await cut).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await unfinished
  })

  test('can be called again, and before listening', async () => {
    const { server } = await start(echo)
    expect(server.close()).toBe(server.close())
    await server.close()
    const idle = new OnePortServer(portHandlers(echo))
    await idle.close()
    await expect(idle.listen(0, '127.0.0.1')).rejects.toThrow(ListenError)
  })
})

describe('listen', () => {
  test('a port in use is named, with what to change', async () => {
    const { port } = await start(echo)
    const error = await new OnePortServer(portHandlers(echo))
      .listen(port, '127.0.0.1')
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ListenError)
    expect((error as Error).message).toBe(
      `port ${port} on 127.0.0.1 is in use by another program. Stop it, or set another port (PORT).`,
    )
  })

  test('a host that is not of this machine is named, with what to change', async () => {
    // 203.0.113.0/24 is for documentation (RFC 5737), .invalid leads nowhere (RFC 2606).
    for (const host of ['203.0.113.1', 'countersign.invalid']) {
      await expect(new OnePortServer(portHandlers(echo)).listen(0, host)).rejects.toThrow(/^[^\n]*(HOST)[^\n]*$/)
    }
  })

  test('a port that only the administrator may open is named, with what to change', async () => {
    // Whether this user may is the machine's own setting.
    watchListen((server) => fail(server, 'EACCES'))
    await expect(new OnePortServer(portHandlers(echo)).listen(80, 'localhost')).rejects.toThrow(
      'port 80 on localhost is not open to this user. Set port (PORT) to 1024 or higher.',
    )
  })

  test('localhost is served under 127.0.0.1 and, where there is one, under ::1, on the same port', async () => {
    const server = new OnePortServer(portHandlers(echo))
    onTestFinished(() => server.close(0))
    const { port, host } = await server.listen(0, 'localhost')
    expect(host).toBe('localhost')
    for (const name of ['127.0.0.1', 'localhost', ...(hasIpv6 ? ['[::1]'] : [])]) {
      expect((await get(`http://${name}:${port}/`)).body).toBe('1.1 GET / ')
      expect((await ask(connectHttp2(`http://${name}:${port}`), '/')).body).toBe('2.0 GET / ')
    }
    await server.close()
    for (const name of ['127.0.0.1', '[::1]']) await expect(get(`http://${name}:${port}/`)).rejects.toThrow()
  })

  test.runIf(hasIpv6)('localhost does not share its port with another program on ::1', async () => {
    const other = net.createServer()
    onTestFinished(() => void other.close())
    other.listen(0, '::1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    await expect(new OnePortServer(portHandlers(echo)).listen(port, 'localhost')).rejects.toThrow(
      `port ${port} on localhost is in use`,
    )
    // Nothing is left behind on 127.0.0.1.
    await expect(exchange(port, '')).rejects.toThrow('ECONNREFUSED')
  })

  test('a machine without ::1 serves localhost under 127.0.0.1', async () => {
    watchListen((server, host) => host === '::1' && fail(server, 'EADDRNOTAVAIL'))
    const server = new OnePortServer(portHandlers(echo))
    onTestFinished(() => server.close(0))
    const { port } = await server.listen(0, 'localhost')
    expect((await get(`http://127.0.0.1:${port}/`)).body).toBe('1.1 GET / ')
  })

  test('a free port is looked for again when it turns out not to be free on ::1', async () => {
    let failures = 2
    watchListen((server, host) => host === '::1' && failures-- > 0 && fail(server, 'EADDRINUSE'))
    const server = new OnePortServer(portHandlers(echo))
    onTestFinished(() => server.close(0))
    const { port } = await server.listen(0, 'localhost')
    expect((await get(`http://localhost:${port}/`)).body).toBe('1.1 GET / ')
    expect(failures).toBeLessThan(1)
  })

  test('a connection that the system cannot accept does not end the service', async () => {
    const servers: net.Server[] = []
    watchListen((server) => servers.push(server) === 0)
    const { url } = await start(echo)
    fail(servers[0]!, 'ENOMEM')
    await nextTurn()
    expect((await get(url)).body).toBe('1.1 GET / ')
  })
})

/** Lets a test see, and with `true` take over, every server's call of listen. */
function watchListen(watch: (server: net.Server, host: string | undefined) => boolean): void {
  const { listen } = net.Server.prototype
  onTestFinished(() => {
    net.Server.prototype.listen = listen
  })
  net.Server.prototype.listen = function (this: net.Server, options: net.ListenOptions, callback: () => void) {
    return watch(this, options.host) ? this : listen.call(this, options, callback)
  } as typeof listen
}

/** What a server does when the system refuses something. */
function fail(server: net.Server, code: string): boolean {
  setImmediate(() => server.emit('error', Object.assign(new Error(code), { code })))
  return true
}

type Handler = (request: NodeRequest, response: NodeResponse) => unknown

async function start(handler: Handler, timeouts: Partial<ConnectionTimeouts> = {}, options: OnePortOptions = {}) {
  const server = new OnePortServer(portHandlers(handler), { timeouts, ...options })
  const { port } = await server.listen(0, '127.0.0.1')
  onTestFinished(() => server.close(0))
  return { server, port, url: `http://127.0.0.1:${port}` }
}

/** A server whose responses the test writes; `held` gives them in the order of their requests. */
async function startHolding() {
  const responses: NodeResponse[] = []
  const served: (string | undefined)[] = []
  let arrived = Promise.withResolvers<void>()
  const started = await start((request, response) => {
    served.push(request.url)
    responses.push(response)
    arrived.resolve()
    arrived = Promise.withResolvers()
  })
  const held = async (): Promise<NodeResponse> => {
    while (responses.length === 0) await arrived.promise
    return responses.shift()!
  }
  return { ...started, held, served }
}

async function echo(request: NodeRequest, response: NodeResponse): Promise<void> {
  try {
    const body = await text(request)
    reply(response, `${request.httpVersion} ${request.method} ${request.url} ${body}`)
  } catch {
    // The client has gone.
  }
}

function hang(): void {}

/** Sends "beat" `count` times, every `everyMs`. */
function beat(count: number, everyMs: number): Handler {
  return (_, response) => {
    let left = count
    const timer = setInterval(() => {
      ;(response as ServerResponse).write('beat')
      if (--left > 0) return
      clearInterval(timer)
      ;(response as ServerResponse).end()
    }, everyMs)
  }
}

function reply(response: NodeResponse, body: string): void {
  ;(response as ServerResponse).end(body)
}

/** A bare HTTP/1.1 request. */
function bare(path: string, headers = ''): string {
  return `GET ${path} HTTP/1.1\r\nhost: a\r\n${headers === '' ? '' : `${headers}\r\n`}\r\n`
}

/** A bare HTTP/2 frame of stream 0. */
function frame(type: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(9)
  header.writeUIntBE(payload.length, 0, 3)
  header.writeUInt8(type, 3)
  return Buffer.concat([header, payload])
}

/** A bare connection that stays open on the client's side until the test is over. */
function open(port: number): Socket {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return socket
}

/**
 * Sends bytes over a connection of their own and gives all that comes back once the server has ended it. `onceHeard`
 * waits for its first text before it sends the second; `end` closes the client's side behind the bytes.
 */
function exchange(
  port: number,
  bytes: string | Buffer,
  options: { end?: boolean; onceHeard?: readonly [string, string] } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    let received = ''
    let next = options.onceHeard
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (next === undefined || !received.includes(next[0])) return
      socket.write(next[1])
      next = undefined
    })
    socket.on('end', () => {
      socket.end()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') reject(error)
    })
    socket.on('close', () => resolve(received))
    if (options.end === true) socket.end(bytes)
    else if (bytes.length > 0) socket.write(bytes)
  })
}

/** All that comes until the server ends its side. The client's stays open. */
function received(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let all = ''
    socket.on('data', (chunk: Buffer) => {
      all += chunk.toString('latin1')
    })
    socket.once('end', () => resolve(all))
    socket.resume()
  })
}

/** Whether an answer is one that the server gives by itself, complete. */
function isRefusal(status: number): (answer: string) => boolean {
  return (answer) => {
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*connection: close`, 's'))
    expect(head).toContain(`content-length: ${body.length}`)
    expect(JSON.parse(body)).toEqual({ code: 'INVALID_REQUEST', message: expect.any(String) })
    return true
  }
}

/** Resolves when the server has let go of a connection for good: it answers what is sent then with a reset. */
async function cutOff(socket: Socket): Promise<void> {
  const gone = new Promise<void>((resolve) => socket.once('error', () => resolve()))
  const probe = setInterval(() => socket.write('x'), 10)
  await gone
  clearInterval(probe)
}

async function get(url: string, options: http.RequestOptions = {}) {
  const request = http.request(url, options).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const { localPort } = response.socket
  return { body: await text(response), connection: response.headers.connection, localPort }
}

function connectHttp2(url: string): ClientHttp2Session {
  const session = http2.connect(url)
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  return session
}

async function ask(
  session: ClientHttp2Session,
  path: string,
  { body, headers }: { body?: string; headers?: Record<string, string> } = {},
): Promise<{ body: string }> {
  const stream: ClientHttp2Stream = session.request({
    ':method': body === undefined ? 'GET' : 'POST',
    ':path': path,
    ...headers,
  })
  stream.end(body)
  const received = text(stream)
  const answered = new Promise<void>((resolve, reject) => {
    stream.on('response', () => resolve())
    stream.on('close', () => reject(new Error('the stream was closed without a response')))
  })
  const [all] = await Promise.all([received, answered])
  return { body: all }
}

async function closed(session: ClientHttp2Session): Promise<void> {
  if (!session.destroyed) await once(session, 'close')
}
