import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import net, { Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { NodeRequest } from '../../../src/http/exchange.ts'
import { type OnePortOptions, OnePortServer } from '../../../src/http/port/port.ts'
import { allOptions } from '../../../src/service/config.ts'
import type { NodeResponse } from '../../../src/wire/output.ts'
import { keptLog } from '../../support/log-lines.ts'
import { portHandlers } from '../../support/port-handlers.ts'

// Linux has all of 127.0.0.0/8; elsewhere there is only 127.0.0.1.
const hasManyAddresses = process.platform === 'linux'
const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'))

describe('requests whose body has not arrived', () => {
  test('are refused beyond those of all clients, over both protocols', async () => {
    const { port } = await start({ ceilings: { pendingBodies: 2 } })
    const session = await connectHttp2(port)
    const waiting = [bodiless(session), bodiless(session)]
    expect(await outcome(bodiless(session))).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await exchange(port, headersOnly())).toSatisfy(isBusy)
    // Whoever has a body to show is served, as soon as at any other time.
    expect(await post(port, 'polite')).toBe('POST polite')
    expect(await outcome(session.request({ ':method': 'POST' }).end('polite'))).toBe('POST polite')
    expect(await get(port)).toBe('GET ')
    // Those that were there first are served once they send theirs.
    for (const stream of waiting) expect(await outcome(stream.end('late'))).toBe('POST late')
  })

  test.runIf(hasManyAddresses)('are refused beyond the share of one address', async () => {
    const { port } = await start({ ceilings: { pendingBodies: 8, networkShare: 1 / 4 } })
    const session = await connectHttp2(port, '127.0.0.2')
    bodiless(session)
    const socket = open(port, '127.0.0.2')
    socket.write(headersOnly())
    await once(socket, 'connect')
    await until(async () => (await outcome(bodiless(session), 100)) === http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await exchange(port, headersOnly(), '127.0.0.2')).toSatisfy(isBusy)
    expect(await post(port, 'neighbour', '127.0.0.2')).toBe('POST neighbour')
    const other = bodiless(await connectHttp2(port, '127.0.0.3'))
    await sleep(30)
    expect(await outcome(other.end('from elsewhere'))).toBe('POST from elsewhere')
  })

  test('are counted by what a trusted proxy says of their clients', async () => {
    const { port } = await start({ ceilings: { pendingBodies: 4, networkShare: 1 / 4 }, trustedProxies: 1 })
    const session = await connectHttp2(port)
    const from = (address: string) => bodiless(session, { 'x-forwarded-for': address })
    from('192.0.2.1')
    const second = from('192.0.2.2')
    expect(await outcome(from('192.0.2.1'))).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await exchange(port, headersOnly('x-forwarded-for: 192.0.2.1'))).toSatisfy(isBusy)
    expect(await outcome(second.end('b'))).toBe('POST b')
    // One subscriber can have a whole /48.
    from('2001:db8::1')
    expect(await outcome(from('2001:db8:0:ffff::2'))).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await outcome(from('2001:db8:1::1').end('c'))).toBe('POST c')
  })

  test.runIf(hasIpv6 && hasManyAddresses)('IPv4 clients of an IPv6 socket are not one client', async () => {
    const { port } = await start({ ceilings: { pendingBodies: 4, networkShare: 1 / 4 } }, echo, '::')
    bodiless(await connectHttp2(port, '127.0.0.2'))
    const other = bodiless(await connectHttp2(port, '127.0.0.3'))
    await sleep(30)
    expect(await outcome(other.end('b'))).toBe('POST b')
  })

  test('make room when their client leaves, resets them, or takes too long', async () => {
    const { port } = await start({ ceilings: { pendingBodies: 1 }, timeouts: { headersMs: 800, requestMs: 800 } })
    const session = await connectHttp2(port)
    const room = async () => {
      const stream = bodiless(session)
      await sleep(20)
      return (await outcome(stream.end('x'))) === 'POST x'
    }
    const reset = bodiless(session)
    expect(await room()).toBe(false)
    reset.close(http2.constants.NGHTTP2_CANCEL)
    await until(room)
    const leaving = open(port)
    leaving.write(headersOnly())
    await sleep(50)
    expect(await room()).toBe(false)
    leaving.destroy()
    await until(room)
    expect(await outcome(bodiless(session))).toBe(http2.constants.NGHTTP2_CANCEL)
    await until(room)
    expect(await exchange(port, headersOnly())).toMatch(/^HTTP\/1\.1 408 /)
    await until(room)
  })

  test('make room when they are answered without their body', async () => {
    const { port } = await start({ ceilings: { pendingBodies: 1 } }, (_, response) => reply(response, 'no, thanks'))
    const session = await connectHttp2(port)
    for (let n = 0; n < 5; n++) {
      const stream = bodiless(session)
      stream.write('half a')
      expect(await outcome(stream)).toBe('no, thanks')
      stream.end()
      await once(stream, 'close')
      await sleep(10)
      expect(await exchange(port, headersOnly('connection: close'))).toMatch(/no, thanks$/)
    }
  })

  test.each([
    ['HTTP/1.1', 'at once'],
    ['HTTP/1.1', 'late'],
    ['HTTP/2', 'at once'],
    ['HTTP/2', 'late'],
  ])('make room over %s when their body has come %s, before they are answered', async (version, when) => {
    let arrived = 0
    const { port } = await start({ ceilings: { pendingBodies: 1 } }, async (request, response) => {
      const body = await text(request).catch(() => 'gone')
      arrived++
      // Those with this body are never answered.
      if (body !== 'waits') reply(response, body)
    })
    const session = await connectHttp2(port)
    for (let n = 1; n <= 5; n++) {
      const peer = version === 'HTTP/2' ? bodiless(session) : open(port)
      if (peer instanceof Socket) peer.write(headersOnly())
      if (when === 'late') await sleep(30)
      if (peer instanceof Socket) peer.write('waits')
      else peer.end('waits')
      await until(() => arrived === n)
    }
    expect(await outcome(bodiless(session), 100)).toBe('nothing')
  })

  test('are refused in order, behind the answers to earlier requests', async () => {
    const { port } = await start({ ceilings: { pendingBodies: 1 } }, (request, response) => {
      if (request.method === 'GET') setTimeout(() => reply(response, 'first'), 30)
    })
    bodiless(await connectHttp2(port))
    const answers = await exchange(port, `GET / HTTP/1.1\r\nhost: a\r\n\r\n${headersOnly()}`)
    expect(answers.match(/HTTP\/1\.1 \d+|first|SERVER_BUSY/g)).toEqual([
      'HTTP/1.1 200',
      'first',
      'HTTP/1.1 503',
      'SERVER_BUSY',
    ])
  })

  test('are refused to a client that goes on sending before it reads', async () => {
    const { port } = await start({ ceilings: { pendingBodies: 1 } })
    bodiless(await connectHttp2(port))
    const socket = open(port).pause()
    const size = 4 * 1024 * 1024
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${size}\r\n\r\n`)
    await new Promise<void>((sent) => socket.write(Buffer.alloc(size), () => sent()))
    expect(await received(socket)).toSatisfy(isBusy)
  })
})

describe('requests in progress', () => {
  const ceilings = { requests: 8, networkShare: 1 / 4 }

  /** Holds every request but those for `/polite`, which are answered. */
  const holding: Handler = ({ url }, response) => {
    if (url === '/polite') reply(response, 'polite')
  }

  test.runIf(hasManyAddresses)('of one address have a quarter of the ceiling, unread answers included', async () => {
    const { port } = await start({ ceilings }, (_, response) => reply(response, 'x'.repeat(100_000)))
    const greedy = await connectHttp2(port, '127.0.0.2', { initialWindowSize: 0 })
    for (let n = 0; n < 2; n++)
      await once(
        greedy.request().on('error', () => {}),
        'response',
      )
    expect(await outcome(greedy.request())).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await exchange(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n', '127.0.0.2')).toSatisfy(isBusy)
    expect(await outcome((await connectHttp2(port, '127.0.0.3')).request())).toMatch(/^x+$/)
  })

  test('behind a proxy have a quarter for each network that it names, a /48 at most', async () => {
    const { port } = await start({ ceilings, trustedProxies: 1 }, holding)
    const session = await connectHttp2(port)
    const ask = (address: string, path: string) => session.request({ ':path': path, 'x-forwarded-for': address })
    for (const address of ['2001:db8::1', '2001:db8:0:ff00::1']) ask(address, '/held').on('error', () => {})
    await sleep(30)
    expect(await outcome(ask('2001:db8:0:1::1', '/polite'))).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await outcome(ask('2001:db8:1::1', '/polite'))).toBe('polite')
    expect(await outcome(ask('192.0.2.1', '/polite'))).toBe('polite')
  })

  test('behind a proxy have a quarter for all clients whose address cannot be parsed', async () => {
    const { port } = await start({ ceilings, trustedProxies: 1 }, holding)
    const session = await connectHttp2(port)
    const ask = (headers: object, path: string) => session.request({ ':path': path, ...headers })
    for (const name of ['unknown', '_hidden']) ask({ 'x-forwarded-for': name }, '/held').on('error', () => {})
    await sleep(30)
    expect(await outcome(ask({ 'x-forwarded-for': '' }, '/polite'))).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await outcome(ask({ 'x-forwarded-for': '192.0.2.1' }, '/polite'))).toBe('polite')
    // A call of the proxy itself, such as a probe.
    expect(await outcome(ask({}, '/polite'))).toBe('polite')
  })

  test('are refused beyond their ceiling, and served again below it', async () => {
    const held: NodeResponse[] = []
    const { port } = await start({ ceilings: { requests: 2 } }, (_, response) => void held.push(response))
    const session = await connectHttp2(port)
    const first = outcome(session.request())
    const second = exchange(port, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    await until(() => held.length === 2)
    expect(await outcome(session.request())).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await outcome(session.request({ ':method': 'POST' }).end('x'))).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    expect(await exchange(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')).toSatisfy(isBusy)
    expect(await exchange(port, `${headersOnly()}12345`)).toSatisfy(isBusy)
    for (const response of held.splice(0)) reply(response, 'done')
    expect(await first).toBe('done')
    expect(await second).toMatch(/done$/)
    const third = outcome(session.request())
    await until(() => held.length === 1)
    reply(held[0]!, 'served')
    expect(await third).toBe('served')
  })
})

describe('over HTTP/1.1, what node would do by itself with any number of requests', () => {
  const hold: Handler = ({ url }, response) => {
    if (url !== '/held') reply(response, 'well')
  }

  test.each([
    ['without a Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['with an expectation that cannot be met', 'GET / HTTP/1.1\r\nhost: a\r\nexpect: a miracle\r\n\r\n', 417],
  ])('counts: those %s', async (_name, request, status) => {
    const { port } = await start({ ceilings: { requests: 1 } }, hold)
    expect(await exchange(port, request)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    open(port).write('GET /held HTTP/1.1\r\nhost: a\r\n\r\n')
    await until(async () => isBusy(await exchange(port, request)))
  })

  test('is little: a client that sends on and on behind a refusal is cut off', async () => {
    const { port } = await start({ ceilings: { requests: 1 } }, hold)
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`
    const socket = open(port)
    const cutOff = received(socket)
    socket.write(request('/held') + request('/'))
    // The refusal waits behind the answer that never comes.
    await until(async () => isBusy(await exchange(port, request('/'))))
    for (let n = 0; n < 10; n++) socket.write(request('/'))
    expect(await cutOff).toBe('')
  })
})

describe('probes of health', () => {
  const probe = (path: string, header = '') => `GET ${path} HTTP/1.1\r\nhost: a\r\n${header}\r\n`
  const closing = 'connection: close\r\n'

  test('are answered while the ceiling of requests is reached', async () => {
    const { port } = await start({ ceilings: { requests: 1 } }, busyHandler())
    const session = await connectHttp2(port)
    session.request({ ':path': '/held' })
    await until(async () => isBusy(await exchange(port, probe('/', closing))))
    for (const path of ['/healthz', '/readyz', '/healthz?verbose']) {
      expect(await exchange(port, probe(path, closing))).toMatch(/well$/)
      expect(await outcome(session.request({ ':path': path }))).toBe('well')
    }
    for (const path of ['/healthz/', '/held']) {
      expect(await exchange(port, probe(path, closing))).toSatisfy(isBusy)
      expect(await outcome(session.request({ ':path': path }))).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
    }
    // Nothing that can take its time uses their room.
    expect(await exchange(port, probe('/healthz', 'content-length: 5\r\n'))).toSatisfy(isBusy)
    expect(await outcome(bodiless(session, { ':path': '/healthz' }))).toBe(http2.constants.NGHTTP2_REFUSED_STREAM)
  })

  test('have room for a few at a time, those of readiness apart from those of liveness', async () => {
    const held: NodeResponse[] = []
    const { port } = await start({ ceilings: { requests: 1 } }, (_, response) => void held.push(response))
    const session = await connectHttp2(port)
    const ask = (count: number, path: string) => heldOf(session, count, { ':path': path })
    expect(await ask(3, '/')).toBe(1)
    expect(await ask(40, '/readyz')).toBe(16)
    expect(await ask(40, '/healthz')).toBe(32)
    expect(held).toHaveLength(49)
    for (const response of held.splice(0)) reply(response, '')
    await until(async () => (await ask(1, '/')) === 1)
  })

  test.runIf(hasManyAddresses)(
    'count for their network, which has its share of their room, by any method',
    async () => {
      const ceilings = { requests: 8, networkShare: 1 / 4 }
      const held: NodeResponse[] = []
      const { port } = await start({ ceilings }, (_, response) => void held.push(response))
      const greedy = await connectHttp2(port, '127.0.0.2')
      expect(await heldOf(greedy, 20, { ':path': '/healthz' })).toBe(2 + 8)
      expect(await heldOf(greedy, 20, { ':path': '/healthz', ':method': 'POST' })).toBe(0)
      expect(await heldOf(greedy, 20, { ':path': '/readyz' })).toBe(4)
      const other = await connectHttp2(port, '127.0.0.3')
      expect(await heldOf(other, 2, { ':path': '/' })).toBe(2)
      expect(await heldOf(other, 1, { ':path': '/healthz' })).toBe(1)
      expect(await heldOf(other, 1, { ':path': '/readyz' })).toBe(1)
    },
  )

  test('behind another request of their connection have no room of their own', async () => {
    const { port } = await start({ ceilings: { requests: 1 } }, busyHandler(50))
    const answers = await exchange(port, `${probe('/held')}${probe('/healthz')}`)
    expect(answers.match(/HTTP\/1\.1 \d+|held|well|SERVER_BUSY/g)).toEqual([
      'HTTP/1.1 200',
      'held',
      'HTTP/1.1 503',
      'SERVER_BUSY',
    ])
  })

  /** Makes requests without a body; how many are neither answered nor refused. */
  async function heldOf(session: ClientHttp2Session, count: number, headers: http2.OutgoingHttpHeaders) {
    const asked = Array.from({ length: count }, () => outcome(session.request(headers, { endStream: true }), 500))
    return (await Promise.all(asked)).filter((answer) => answer === 'nothing').length
  }

  /** Answers what is held after a while, or never, and everything else at once. */
  function busyHandler(heldMs?: number): Handler {
    return ({ url }, response) => {
      if (url !== '/held') reply(response, 'well')
      else if (heldMs !== undefined) setTimeout(() => reply(response, 'held'), heldMs)
    }
  }
})

describe('connections', () => {
  test('are closed beyond those of all clients, and accepted again below', async () => {
    const { port } = await start({ ceilings: { connections: 2 } })
    const session = await connectHttp2(port)
    const socket = open(port)
    await once(socket, 'connect')
    await until(async () => (await exchange(port, '')) === '')
    expect(await exchange(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')).toBe('')
    // Whoever has a connection is served.
    expect(await outcome(session.request())).toBe('GET ')
    socket.destroy()
    await until(async () => (await get(port).catch(() => '')) === 'GET ')
  })

  test.runIf(hasManyAddresses)('are closed beyond those of one address', async () => {
    const { port } = await start({ ceilings: { connectionsPerAddress: 2 } })
    await connectHttp2(port, '127.0.0.2')
    await connectHttp2(port, '127.0.0.2')
    expect(await exchange(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n', '127.0.0.2')).toBe('')
    expect(await get(port)).toBe('GET ')
  })

  test.runIf(hasManyAddresses)('of one address have a quarter of the ceiling', async () => {
    const { port } = await start({ ceilings: { connections: 8, networkShare: 1 / 4 } })
    for (let n = 0; n < 2; n++) await connectHttp2(port, '127.0.0.2')
    expect(await exchange(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n', '127.0.0.2')).toBe('')
    for (let n = 3; n < 8; n++) expect(await get(port)).toBe('GET ')
  })

  test('of one address have no ceiling of their own behind a proxy', async () => {
    const ceilings = { connections: 4, connectionsPerAddress: 1, networkShare: 1 / 4 }
    const { port } = await start({ ceilings, trustedProxies: 1 })
    for (let n = 0; n < 3; n++) await connectHttp2(port)
    expect(await get(port)).toBe('GET ')
  })
})

test('HTTP/2 requests that are answered without their body being read close', async () => {
  let open = 0
  const { port } = await start({}, (request, response) => {
    open++
    request.once('close', () => open--)
    reply(response, 'no, thanks')
  })
  const session = await connectHttp2(port)
  for (let n = 0; n < 20; n++) {
    const stream = bodiless(session)
    stream.end('x'.repeat(n * 1000))
    expect(await outcome(stream)).toBe('no, thanks')
  }
  await until(() => open === 0)
})

test('an HTTP/2 client that is refused again and again opens no further stream, unless it is a proxy', async () => {
  for (const trustedProxies of [0, 1]) {
    const { port } = await start({ ceilings: { pendingBodies: 1 }, trustedProxies })
    const session = await connectHttp2(port)
    const inProgress = bodiless(session)
    const goaways: number[] = []
    session.on('goaway', (code) => goaways.push(code))
    for (let round = 0; round < 6; round++) {
      const streams = Array.from({ length: 200 }, () => {
        // A client that has read the GOAWAY cannot even try.
        try {
          return outcome(bodiless(session))
        } catch {
          return undefined
        }
      })
      const codes = await Promise.all(streams)
      if (round < 4) expect(new Set(codes)).toEqual(new Set([http2.constants.NGHTTP2_REFUSED_STREAM]))
    }
    expect(goaways).toEqual(trustedProxies === 0 ? [http2.constants.NGHTTP2_NO_ERROR] : [])
    expect(await outcome(inProgress.end('in progress'))).toBe('POST in progress')
    expect(await post(port, 'polite')).toBe('POST polite')
  }
})

test('a ceiling that is reached is logged at once, and then once a second with a count', async () => {
  const { logger, lines } = keptLog()
  const { port } = await start({ ceilings: { pendingBodies: 4, networkShare: 1 / 4 }, log: logger })
  const session = await connectHttp2(port)
  bodiless(session)
  for (let n = 0; n < 4; n++) await outcome(bodiless(session))
  const line = (refused: number) => ({
    level: 'warn',
    text: 'ceiling reached',
    fields: {
      ceiling: 'requests whose body has not arrived',
      setting: 'COUNTERSIGN_MAX_PENDING_BODIES',
      most: 1,
      refused,
      lastRefused: '127.0.0.1',
    },
  })
  expect(lines).toEqual([line(1)])
  await expect.poll(() => lines).toEqual([line(1), line(3)])
})

test.each(['connections', 'connectionsPerAddress', 'requests', 'pendingBodies'] as const)(
  'the log names the variable that sets %s',
  async (option) => {
    const { logger, lines } = keptLog()
    const { port } = await start({ ceilings: { [option]: 1 }, log: logger })
    const sockets = Array.from({ length: 3 }, () => open(port))
    for (const socket of sockets) socket.write(headersOnly())
    await until(() => lines.length > 0)
    const setting = `limits.${option.replace(/^max(.)/, (_, first: string) => first.toLowerCase())}`
    expect(lines[0]?.fields.setting).toBe(allOptions.find(({ name }) => name === setting)?.option.variable)
  },
)

type Handler = (request: NodeRequest, response: NodeResponse) => unknown

async function start(options: OnePortOptions, handler: Handler = echo, host = '127.0.0.1') {
  const server = new OnePortServer(portHandlers(handler), options)
  const { port } = await server.listen(0, host)
  onTestFinished(() => server.close(0))
  return { port }
}

async function echo(request: NodeRequest, response: NodeResponse): Promise<void> {
  try {
    reply(response, `${request.method} ${await text(request)}`)
  } catch {
    // The client has gone.
  }
}

function reply(response: NodeResponse, body: string): void {
  ;(response as ServerResponse).end(body)
}

/** The headers of an HTTP/1.1 request with a body of five bytes. */
function headersOnly(header?: string): string {
  return `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n${header === undefined ? '' : `${header}\r\n`}\r\n`
}

async function connectHttp2(
  port: number,
  localAddress = '127.0.0.1',
  settings: http2.Settings = {},
): Promise<ClientHttp2Session> {
  const options = { localAddress, settings } as http2.ClientSessionOptions
  const session = http2.connect(`http://127.0.0.1:${port}`, options)
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  await once(session, 'remoteSettings')
  return session
}

/** A POST whose headers have been sent and whose body has not. */
function bodiless(session: ClientHttp2Session, headers: Record<string, string> = {}): ClientHttp2Stream {
  const stream = session.request({ ':method': 'POST', ...headers }, { endStream: false })
  stream.on('error', () => {})
  return stream
}

/** What a stream is answered, or the code that it is reset with; 'nothing' if neither comes in time. */
async function outcome(stream: ClientHttp2Stream, timeoutMs = 3000): Promise<string | number> {
  stream.on('error', () => {})
  const answered = new Promise<string | number>((resolve) => {
    let body = ''
    stream.on('data', (chunk: Buffer) => {
      body += chunk
    })
    stream.on('end', () => {
      if (stream.rstCode === 0) resolve(body)
    })
    stream.on('close', () => resolve(stream.rstCode === 0 ? body : stream.rstCode))
  })
  return await Promise.race([answered, sleep(timeoutMs, 'nothing')])
}

async function post(port: number, body: string, localAddress = '127.0.0.1'): Promise<string> {
  return await ask(port, { method: 'POST', localAddress }, body)
}

async function get(port: number): Promise<string> {
  return await ask(port, {})
}

async function ask(port: number, options: http.RequestOptions, body?: string): Promise<string> {
  const request = http.request(`http://127.0.0.1:${port}`, { agent: false, ...options }).end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return await text(response)
}

function open(port: number, localAddress = '127.0.0.1'): Socket {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return socket
}

/** Sends bytes over a connection of their own; all that comes back until the server ends it. */
async function exchange(port: number, bytes: string, localAddress?: string): Promise<string> {
  const socket = open(port, localAddress)
  if (bytes !== '') socket.write(bytes)
  const answer = await Promise.race([received(socket), sleep(3000, 'nothing')])
  socket.destroy()
  return answer
}

/** All that comes until the server ends or resets the connection. */
function received(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let all = ''
    socket.on('data', (chunk: Buffer) => {
      all += chunk.toString('latin1')
    })
    socket.once('end', () => resolve(all))
    socket.once('close', () => resolve(all))
    socket.resume()
  })
}

/** Whether an answer is the refusal beyond a ceiling, complete. */
function isBusy(answer: string): boolean {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 503 /)
  expect(head).toContain('retry-after: 1')
  expect(head).toContain('connection: close')
  expect(head).toContain(`content-length: ${body.length}`)
  expect(JSON.parse(body)).toEqual({ code: 'SERVER_BUSY', message: expect.any(String) })
  return true
}

async function until(done: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 5000
  while (!(await done())) {
    if (performance.now() > deadline) throw new Error('it did not happen')
    await sleep(5)
  }
}
