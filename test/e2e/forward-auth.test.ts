import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { connect } from 'node:http2'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { fileWith } from '../oidc/support.ts'
import { Authority } from '../support/certificates.ts'
import { signIn } from '../support/flows.ts'
import { runNginx } from '../support/nginx.ts'
import { hasPart } from '../support/optional.ts'
import {
  Application,
  linesForRemoteUser,
  nginxOverTls,
  proxies,
  runHypercorn,
  runPhp,
  runRadicale,
  type StartProxy,
} from '../support/protected-application.ts'
import { frame } from '../support/raw-http2.ts'
import { freePort, RedisServer } from '../support/redis-server.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet } from '../support/wallet.ts'

/** A service and an application behind one proxy, which has just started. */
async function start(startProxy: StartProxy, options: CountersignOptions = {}) {
  const application = new Application()
  const { origin, service, log } = await startBefore(await application.listen(), startProxy, options)
  application.asked.length = 0
  return { origin, application, service, log }
}

/** A service and a proxy, for an application on a port. */
async function startBefore(
  application: number,
  startProxy: StartProxy,
  options: CountersignOptions = {},
  replaced: Readonly<Record<string, string>> = {},
) {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const { url: serviceUrl, service } = await startService({
    publicUrl: 'https://auth.example',
    trustedOrigins: [origin],
    trustProxy: true,
    ...options,
  })
  const { log } = await startProxy(port, Number(new URL(serviceUrl).port), application, replaced)
  return { origin, port, service, log }
}

/** Signs in on the protected host, as the sign-in page does. */
async function signedIn(origin: string, url = origin, wallet = makeWallet()) {
  const made = await signIn(url, wallet, { origin })
  expect(made.cookie).toMatch(/^__Host-countersign_session=css_/)
  return made
}

/** A request with whatever headers, which `fetch` would not send all. The body is not read yet. */
async function send(
  url: string,
  headers: OutgoingHttpHeaders = {},
  method = 'GET',
  body = '',
): Promise<IncomingMessage> {
  const call = request(url, { method, headers }).end(body)
  onTestFinished(() => void call.destroy())
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  return answer
}

async function statusOf(answer: Promise<IncomingMessage>): Promise<number | undefined> {
  const { statusCode } = (await answer).resume()
  return statusCode
}

const page = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

describe.each(Object.entries(proxies))('behind %s, as docs/forward-auth.md configures it,', (name, startProxy) => {
  describe.skipIf(!hasPart(name))('an application', () => {
    test('is seen by those who have signed in: pages lead to the sign-in page and back, other requests get 401', async () => {
      const { origin, application } = await start(startProxy)
      const path = '/report?year=2026&next=%2Fa%26b'
      const away = await send(origin + path, page)
      const location = away.resume().headers.location ?? ''
      expect([away.statusCode, location]).toEqual([302, `/api/auth/sign-in?returnTo=${encodeURIComponent(path)}`])
      const refused = [
        await send(origin + path),
        await send(origin + path, { accept: 'application/json' }),
        await send(origin + path, {}, 'POST', 'x'),
        await send(origin + path, { cookie: '__Host-countersign_session=css_x.y' }),
        await send(origin + path, { authorization: 'Bearer css_x.y' }),
      ]
      for (const answer of refused) {
        expect(answer.statusCode).toBe(401)
        expect(JSON.parse(await text(answer)).code).toMatch(/^SESSION_(REQUIRED|INVALID)$/)
      }
      // A form of the application, which a browser opens as a page.
      const form = await send(origin + path, page, 'POST', 'x')
      expect([form.statusCode, form.headers.location]).toEqual([401, undefined])
      expect(await text(form)).toContain('SESSION_REQUIRED')
      expect(application.asked).toEqual([])

      const { cookie, session } = await signedIn(origin)
      const back = new URL(location, origin).searchParams.get('returnTo') ?? ''
      const answer = await send(origin + back, { ...page, cookie })
      expect([answer.statusCode, await text(answer)]).toEqual([201, expect.stringContaining('The application')])
      expect(application.asked).toEqual([`GET ${path}`])
      expect(application.headers).toMatchObject({
        'x-countersign-user': encodeURIComponent(session.userId),
        'x-countersign-address': session.address,
        'x-countersign-adapter': 'nimiq',
        'x-countersign-session': session.id,
      })
      expect(application.headers['x-countersign-groups'] ?? '').toBe('')
      expect((await rest(origin, '/sign-out', {}, { cookie, origin })).status).toBe(200)
      expect(await statusOf(send(origin + path, { cookie }))).toBe(401)
    })

    test('gets no headers of the client under these names, and no session to keep', async () => {
      const { origin, application } = await start(startProxy)
      const { cookie, token, session } = await signedIn(origin)
      const forged = Object.fromEntries(
        ['User', 'Address', 'Adapter', 'Session', 'Groups'].flatMap((part) =>
          ['X-Countersign-', 'x-countersign_', 'X_Countersign-', 'x_countersign_'].map((start) => [
            start + part,
            'admin',
          ]),
        ),
      )
      const seen = async (headers: OutgoingHttpHeaders): Promise<IncomingHttpHeaders> => {
        expect(await statusOf(send(`${origin}/`, { ...forged, ...headers }))).toBe(201)
        expect(JSON.stringify(application.headers)).not.toContain('admin')
        expect(application.headers).toMatchObject({ 'x-countersign-user': encodeURIComponent(session.userId) })
        expect(JSON.stringify(application.headers)).not.toContain(token)
        return application.headers
      }
      const basic = 'Basic YTpi'
      const both = await seen({ cookie: `a=1; ${cookie}; b=2`, authorization: basic })
      expect([both.cookie, both.authorization]).toEqual(['a=1; b=2', basic])
      expect((await seen({ cookie: `${cookie}; b=2` })).cookie).toBe('b=2')
      expect((await seen({ cookie: `a=1; ${cookie}` })).cookie).toMatch(/^a=1;?$/)
      expect((await seen({ cookie })).cookie ?? '').toBe('')
      expect((await seen({ cookie: `xcountersign_session=1; ${cookie}` })).cookie).toMatch(/^xcountersign_session=1;?$/)
      // With several cookies of the name none counts; the bearer token does, and none of them gets through.
      const authorization = `Bearer ${token}`
      await seen({ authorization, cookie: `${cookie};${cookie} ; a=1; countersign_session=${token}` })
      await seen({ authorization, cookie: [`a=1; ${cookie}`, cookie] })
      const tokenOnly = await seen({ authorization: `bearer ${token}`, cookie: `a=1; countersign_session=${token}` })
      expect([tokenOnly.cookie?.replace(/;$/, ''), tokenOnly.authorization ?? '']).toEqual(['a=1', ''])

      // Nor can the client have the proxy take a name away again.
      application.headers = {}
      const named = await statusOf(send(`${origin}/`, { cookie, connection: 'close, X-Countersign-User' }))
      const user = application.headers['x-countersign-user']
      expect([named, user]).toEqual(name === 'caddy' ? [400, undefined] : [201, encodeURIComponent(session.userId)])
    })

    test('gets the groups of the people file, and none of the client', async () => {
      const wallet = makeWallet()
      const people = fileWith({ [`nimiq:${wallet.address}`]: { groups: ['staff', 'a:b.c_d-1'] } })
      const { origin, application } = await start(startProxy, { people })
      const forged = { 'X-Countersign-Groups': 'admin', 'X-Countersign_Groups': 'admin' }
      const listed = await signedIn(origin, origin, wallet)
      expect(await statusOf(send(`${origin}/`, { ...forged, cookie: listed.cookie }))).toBe(201)
      expect(application.headers['x-countersign-groups']).toBe('staff,a:b.c_d-1')
      const { cookie } = await signedIn(origin)
      expect(await statusOf(send(`${origin}/`, { ...forged, cookie }))).toBe(201)
      expect(application.headers['x-countersign-groups'] ?? '').toBe('')
      expect(JSON.stringify(application.headers)).not.toContain('admin')
    })

    test('is out of reach of foreign pages, and gets what its own pages send', async () => {
      const { origin, application, log } = await start(startProxy)
      const { cookie, token } = await signedIn(origin)
      const from = (page: string | undefined) => (page === undefined ? { cookie } : { cookie, origin: page })
      const foreign = 'https://evil.example'
      expect(await statusOf(send(`${origin}/`, from(foreign), 'POST', 'x'))).toBe(403)
      expect(await statusOf(send(`${origin}/`, { ...from(foreign), 'x-forwarded-method': 'GET' }, 'POST', 'x'))).toBe(
        403,
      )
      expect(await statusOf(send(`${origin}/`, { ...from(undefined), 'x-forwarded-method': 'GET' }, 'POST', 'x'))).toBe(
        403,
      )
      expect(await statusOf(send(`${origin}/`, { ...from(undefined), 'x-original-method': 'GET' }, 'PUT', 'x'))).toBe(
        403,
      )
      expect(await statusOf(send(`${origin}/`, { ...from(foreign), 'x-forwarded-host': 'evil.example' }))).toBe(403)
      expect(await statusOf(send(`${origin}/`, from('null'), 'POST', 'x'))).toBe(403)
      const preflight = { origin: foreign, 'access-control-request-method': 'PUT' }
      expect(await statusOf(send(`${origin}/`, preflight, 'OPTIONS'))).toBe(401)
      expect(await statusOf(send(`${origin}/`, { ...preflight, origin }, 'OPTIONS'))).toBe(401)
      expect(application.asked, log()).toEqual([])

      const body = 'x'.repeat(300_000)
      expect(await statusOf(send(`${origin}/`, from(origin), 'POST', body))).toBe(201)
      expect(application.body.toString()).toBe(body)
      expect(await statusOf(send(`${origin}/`, { authorization: `Bearer ${token}` }, 'DELETE'))).toBe(201)
      expect(await statusOf(send(`${origin}/`, from(undefined), 'HEAD'))).toBe(201)
      expect(application.asked).toEqual(['POST /', 'DELETE /', 'HEAD /'])
    })

    test('streams events, and so does the service; it opens WebSockets for its own pages only', async () => {
      const { origin, application } = await start(startProxy)
      const { cookie } = await signedIn(origin)
      const events = await send(`${origin}/events`, { cookie, accept: 'text/event-stream' })
      for (const event of ['data: first\n\n', 'data: second\n\n']) {
        application.events?.write(event)
        expect(String(await next(events))).toBe(event)
      }
      application.events?.end('data: last\n\n')
      expect(await text(events)).toBe('data: last\n\n')

      const order = (await rest(origin, '/cross-device/start', { kind: 'login' }, { origin })).json
      const { orderId, claimToken, desktopToken } = order
      const watch = `${origin}/api/auth/cross-device/events?orderId=${orderId}`
      const watched = await send(watch, { authorization: `Bearer ${desktopToken}` })
      expect(String(await next(watched))).toContain('"created"')
      await rest(origin, '/cross-device/claim', { orderId, claimToken }, { origin })
      expect(String(await next(watched))).toContain('"claimed"')

      const upgrade = { connection: 'Upgrade', upgrade: 'websocket', cookie }
      expect(await statusOf(send(`${origin}/socket`, { ...upgrade, origin: 'https://evil.example' }))).toBe(403)
      expect(await statusOf(send(`${origin}/socket`, { ...upgrade, cookie: '', origin }))).toBe(401)
      const call = request(`${origin}/socket`, { headers: { ...upgrade, origin } }).end()
      const [answer, socket] = await once(call, 'upgrade')
      onTestFinished(() => void socket.destroy())
      expect(answer.statusCode).toBe(101)
      socket.write('ping')
      expect(String((await once(socket, 'data'))[0])).toBe('ping')
      expect(application.asked).toEqual(['GET /events', 'GET /socket'])
      expect(application.headers['x-countersign-user']).toBeDefined()
    })

    test('is not enabled by accident: without trustProxy every request is refused', async () => {
      const { origin, application } = await start(startProxy, { trustProxy: false })
      const { cookie } = await signedIn(origin)
      expect(await statusOf(send(`${origin}/`, { cookie }))).toBe(name === 'caddy' ? 404 : 503)
      expect(application.asked).toEqual([])
    })

    test.skipIf(!hasPart('redis-server'))(
      'stays closed while the store is away, and after the service has gone',
      async () => {
        await using redis = await RedisServer.start()
        const secret = 'a secret for tests and for nothing else'
        const { origin, application, service } = await start(startProxy, { store: redis.url, secret })
        const { cookie } = await signedIn(origin)
        expect(await statusOf(send(`${origin}/`, { cookie }))).toBe(201)
        await redis.kill()
        const away = await send(`${origin}/`, { ...page, cookie })
        expect([away.statusCode, away.headers.location, away.headers['retry-after']]).toEqual([503, undefined, '1'])
        const shown = await text(away)
        if (name === 'nginx') {
          expect([away.headers['content-type'], shown]).toEqual(['text/html', expect.stringContaining('<h1>Try again')])
          const call = await send(`${origin}/`, { cookie })
          expect([call.statusCode, call.headers['content-type']]).toEqual([503, 'application/json'])
          expect(JSON.parse(await text(call)).code).toBe('SERVICE_UNAVAILABLE')
        } else {
          expect([away.headers['content-type'], shown]).toEqual([
            'text/html; charset=utf-8',
            expect.stringContaining('STORE_UNAVAILABLE'),
          ])
        }
        // A token that this service did not sign needs no store to be refused.
        expect(await statusOf(send(`${origin}/`, { authorization: 'Bearer css_x.y' }))).toBe(401)
        await redis.start()
        await service.close(0)
        expect(await statusOf(send(`${origin}/`, { ...page, cookie }))).toBe(name === 'caddy' ? 502 : 503)
        expect(application.asked).toEqual(['GET /'])
      },
    )
  })
})

describe.each(Object.entries(proxies))('behind %s, as docs/forward-auth.md configures it,', (name, startProxy) => {
  const upgrades = [
    'Upgrade: h2c',
    'Upgrade: H2C, websocket',
    'Upgrade: h2c\r\nUpgrade: websocket',
    'Upgrade: websocket\r\nUpgrade: h2c',
  ]
  const withHypercorn = describe.skipIf(!hasPart(name) || !hasPart('python3-hypercorn'))
  withHypercorn('hypercorn, which upgrades to HTTP/2 when a client asks for it,', () => {
    test.each(upgrades)('gets every request through the proxy: %j', async (upgrade) => {
      const { port: hypercorn, asked } = await runHypercorn()
      const { port, origin } = await startBefore(hypercorn, startProxy)
      const { cookie, session } = await signedIn(origin)
      const before = asked.length
      const answer = await tunnel(port, [upgrade, `Cookie: ${cookie}`])
      expect(answer).not.toMatch(/^HTTP\/1.1 101/)
      expect(answer).not.toContain('usr_victim')
      for (const request of asked.slice(before)) expect(request).toBe(`GET / ${encodeURIComponent(session.userId)}`)
    })
  })

  const withPhp = describe.skipIf(!hasPart(name) || !hasPart('php'))
  withPhp('PHP, which makes one variable of many headers,', () => {
    test('sees no header of the client under any spelling of these names', async () => {
      const { port: php, asked } = await runPhp()
      const { origin } = await startBefore(php, startProxy)
      const { cookie, session } = await signedIn(origin)
      // All characters of a token but letters and digits (RFC 9110, 5.6.2).
      const forged = [..."!#$%&'*+-.^_`|~"].flatMap((sign) =>
        ['User', 'Address', 'Adapter', 'Session', 'Groups'].flatMap((part) => [
          [`X${sign}Countersign${sign}${part}`, 'admin'],
          [`x-countersign${sign}${part}`, 'admin'],
          [`X${sign}COUNTERSIGN-${part}`, 'admin'],
        ]),
      )
      const answer = await send(`${origin}/report`, { ...Object.fromEntries(forged), cookie })
      expect(answer.statusCode).toBe(200)
      const variables = await text(answer)
      expect(variables).not.toContain('admin')
      expect(JSON.parse(variables)).toMatchObject({
        HTTP_X_COUNTERSIGN_USER: encodeURIComponent(session.userId),
        HTTP_X_COUNTERSIGN_ADDRESS: session.address,
        HTTP_X_COUNTERSIGN_ADAPTER: 'nimiq',
        HTTP_X_COUNTERSIGN_SESSION: session.id,
      })
      expect(asked.at(-1)).toBe(`GET /report ${encodeURIComponent(session.userId)}`)
    })
  })

  const withRadicale = describe.skipIf(!hasPart(name) || !hasPart('radicale'))
  withRadicale('Radicale, which has users in a header of its own,', () => {
    test('keeps a calendar for each user, out of reach of another who sends that header', async () => {
      const { port: radicale } = await runRadicale()
      const { origin } = await startBefore(radicale, startProxy, {}, await linesForRemoteUser(name))
      const [ada, bob] = [await signedIn(origin), await signedIn(origin)]
      const home = `${origin}/${ada.session.userId}/`
      const calendar = `${home}calendar/`
      const sent = (url: string, method: string, headers: OutgoingHttpHeaders, body = '') =>
        statusOf(send(url, { origin, ...headers }, method, body))
      const own = { cookie: ada.cookie }
      expect(await statusOf(send(`${origin}/.web/`, { ...page, ...own }))).toBe(200)
      expect(await sent(calendar, 'MKCALENDAR', own)).toBe(201)
      expect(await sent(`${calendar}dentist.ics`, 'PUT', own, appointment)).toBe(201)
      const listed = await send(calendar, { ...own, origin, depth: '1' }, 'PROPFIND')
      expect([listed.statusCode, await text(listed)]).toEqual([207, expect.stringContaining('dentist.ics')])

      // What a program can send in place of a browser's cookie and Origin: a password, or a session's token.
      expect(await statusOf(send(calendar, { authorization: 'Basic YTpi' }, 'PROPFIND'))).toBe(401)
      expect(await statusOf(send(calendar, own, 'PROPFIND'))).toBe(403)
      expect(await statusOf(send(calendar, { authorization: `Bearer ${ada.token}` }, 'PROPFIND'))).toBe(207)

      for (const forged of ['X-Other', 'X-Remote-User', 'x-remote-user', 'X_Remote_User', 'X-Remote_User']) {
        const headers = { cookie: bob.cookie, [forged]: ada.session.userId, connection: 'close, X-Remote-User' }
        const asked = await send(`${origin}/`, { ...headers, origin }, 'PROPFIND')
        const [, user] = /<current-user-principal><href>\/(.*?)\/</.exec(await text(asked)) ?? []
        expect(user, forged).toBe(bob.session.userId)
        expect(await sent(home, 'PROPFIND', headers), forged).toBe(403)
        expect(await sent(`${calendar}dentist.ics`, 'GET', headers), forged).toBe(403)
        expect(await sent(`${calendar}dentist.ics`, 'DELETE', headers), forged).toBe(403)
      }
    })
  })
})

const appointment = [
  ...['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:a test', 'BEGIN:VEVENT', 'UID:1', 'DTSTAMP:20260101T000000Z'],
  ...['DTSTART:20260102T080000Z', 'SUMMARY:Dentist', 'END:VEVENT', 'END:VCALENDAR', ''],
].join('\r\n')

const withTls = test.skipIf(!hasPart('nginx') || !hasPart('openssl'))
withTls('nginx speaks HTTP/2 with browsers, so pages that wait do not take all connections to a host', async () => {
  const folder = temporaryFolder()
  const authority = await Authority.create(folder, 'authority')
  const port = await freePort()
  const application = new Application()
  const { url } = await startService({
    publicUrl: 'https://auth.example',
    trustedOrigins: [`https://localhost:${port}`],
    trustProxy: true,
  })
  const { cookie } = await signedIn(`https://localhost:${port}`, url)
  const upstream = Number(new URL(url).port)
  await nginxOverTls(await authority.issue('localhost'))(port, upstream, await application.listen())
  const session = connect(`https://localhost:${port}`, { ca: await readFile(authority.cert) })
  onTestFinished(() => void session.destroy())
  // A browser sends each cookie as a field of its own (RFC 9113, 8.2.3).
  const stream = session.request({ ':path': '/', cookie: ['a=1', cookie, 'b=2'] })
  const [answer] = await once(stream, 'response')
  expect([session.alpnProtocol, answer[':status']]).toEqual(['h2', 201])
  expect(application.headers.cookie).toBe('a=1; b=2')
})

/**
 * What comes back for a request that asks for an upgrade, followed by HTTP/2's preface and a request of stream 3 that a
 * victim is named in, until the connection is closed or that request is answered.
 */
async function tunnel(port: number, headers: readonly string[]): Promise<string> {
  const socket = createConnection(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let received = ''
  const answered = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (received.includes('for usr_victim')) resolve()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve())
  })
  const settings = ['Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAAQAAP__']
  const request = ['GET / HTTP/1.1', `Host: 127.0.0.1:${port}`, ...settings, ...headers, '', '']
  socket.write(request.join('\r\n'))
  await vi.waitUntil(() => received.includes('\r\n\r\n'), { timeout: 5000 })
  const fields = { ':method': 'GET', ':scheme': 'http', ':authority': 'app', ':path': '/admin' }
  const block = Buffer.concat(
    Object.entries({ ...fields, 'x-countersign-user': 'usr_victim' }).map(([name, value]) =>
      // A literal field without indexing (RFC 7541, 6.2.2).
      Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]),
    ),
  )
  const endOfHeadersAndStream = 0x5
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  socket.write(Buffer.concat([frame(4, 0, 0), frame(1, endOfHeadersAndStream, 3, block)]))
  await answered
  return received
}

/** The next piece of a stream. */
async function next(stream: IncomingMessage): Promise<unknown> {
  const chunk = stream.read()
  if (chunk !== null) return chunk
  await once(stream, 'readable')
  return stream.read()
}

const countersignNames = ['countersign-shared.conf', 'countersign.conf', 'forward-auth.conf']
withTls.each([[countersignNames], [countersignNames.toReversed()]])(
  'nginx starts with %j in one folder',
  async (names) => {
    const folder = fileURLToPath(new URL('../../deploy/nginx/', import.meta.url))
    expect((await readdir(folder)).sort()).toEqual(countersignNames)
    const made = temporaryFolder()
    const authority = await Authority.create(made, 'authority')
    const { cert, key } = await authority.issue('localhost')
    const [port, plainPort] = [await freePort(), await freePort()]
    const files = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
    const all = files
      .join('\n')
      .replaceAll(/\/etc\/ssl\/\w+\.example\.crt/g, cert)
      .replaceAll(/\/etc\/ssl\/\w+\.example\.key/g, key)
      .replaceAll('listen 443 ', `listen 127.0.0.1:${port} `)
      .replaceAll('listen 80;', `listen 127.0.0.1:${plainPort};`)
    await runNginx(plainPort, all)
  },
)
