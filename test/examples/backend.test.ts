import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import * as grpc from '@grpc/grpc-js'
import { describe, expect, test } from 'vitest'
import { SessionService } from '../../gen/client/countersign/v1/session_service_pb.ts'
import { signIn } from '../integrations/backend/support.ts'
import { connect, fileWith, shop } from '../oidc/support.ts'
import { killAtEnd } from '../support/command.ts'
import { startService } from '../support/service.ts'

/** Runs one of the examples, as its first lines say, and resolves with its address and what it writes to its log. */
async function startBackend(name: string, countersignUrl: string, settings: Record<string, string> = {}) {
  const file = fileURLToPath(new URL(`../../examples/backend/${name}.ts`, import.meta.url))
  const environment = { PATH: process.env.PATH, COUNTERSIGN_URL: countersignUrl, PORT: '0', ...settings }
  const child = spawn(process.execPath, [file], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  child.stderr.on('data', (text) => (log += text))
  killAtEnd(child)
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { backend: line.toString().trim(), log: () => log }
}

/** An answer of a backend: 200 with the user, 401, 403 or 503. */
interface Answer {
  readonly status: number
  readonly body: unknown
}

type Ask = (backend: string, headers: Record<string, string>, method: 'GET' | 'POST') => Promise<Answer>

/**
 * Asks over a connection of its own. One that is kept is closed by the backend after five seconds, of which a test that
 * a busy machine holds up learns only by the failure of its next question.
 */
const askHttp: Ask = async (backend, headers, method) => {
  const sent = httpRequest(`${backend}/me`, { method, headers, agent: false }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  expect(response.headers['content-type']).toContain('application/json')
  if (response.statusCode !== 200) expect(response.headers['cache-control']).toBe('no-store')
  return { status: response.statusCode ?? 0, body: await json(response) }
}

const askConnect: Ask = async (backend, headers) => {
  const client = createClient(SessionService, createConnectTransport({ baseUrl: backend, httpVersion: '1.1' }))
  try {
    const { session } = await client.getCurrentSession({}, { headers })
    return { status: 200, body: { userId: session?.userId, address: session?.address } }
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error)
    const status =
      {
        [Code.Unauthenticated as number]: 401,
        [Code.PermissionDenied as number]: 403,
        [Code.Unavailable as number]: 503,
      }[code] ?? 500
    return { status, body: { code: houseCode[status], message: rawMessage } }
  }
}

const askGrpc: Ask = async (backend, headers) => {
  const client = new grpc.Client(new URL(backend).host, grpc.credentials.createInsecure())
  const metadata = new grpc.Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  try {
    return await new Promise<Answer>((resolve) => {
      const read = (bytes: Buffer): object => JSON.parse(bytes.toString())
      const sent = (message: object): Buffer => Buffer.from(JSON.stringify(message))
      client.makeUnaryRequest('/example.Users/Me', sent, read, {}, metadata, {}, (error, body) => {
        const status =
          {
            [grpc.status.UNAUTHENTICATED as number]: 401,
            [grpc.status.PERMISSION_DENIED as number]: 403,
            [grpc.status.UNAVAILABLE as number]: 503,
          }[error?.code ?? -1] ?? 500
        resolve(error ? { status, body: { code: houseCode[status], message: error.details } } : { status: 200, body })
      })
    })
  } finally {
    client.close()
  }
}

/** For protocols that have codes of their own in place of the one in the body. */
const houseCode: Readonly<Record<number, string>> = {
  401: 'SESSION_REQUIRED',
  403: 'ORIGIN_NOT_TRUSTED',
  503: 'SERVICE_UNAVAILABLE',
}

/** How to ask each example, and whether what is asked can be a GET. */
const backends: [name: string, ask: Ask, hasGet: boolean][] = [
  ['main', askHttp, true],
  ['express', askHttp, true],
  ['fastify', askHttp, true],
  ['hono', askHttp, true],
  ['connect', askConnect, false],
  ['grpc', askGrpc, false],
]

describe.each(backends)('examples/backend/%s.ts', (name, askOnce, hasGet) => {
  test('serves signed-in users, refuses all others with a reason of their own, and reports an outage as one', async () => {
    const { url, service } = await startService()
    const { backend, log } = await startBackend(name, url)
    /** Asks again if the backend did not hear from the service in time, as it tells its clients to. */
    const ask = async (headers: Record<string, string>, method: 'GET' | 'POST' = 'POST'): Promise<Answer> => {
      for (;;) {
        const answer = await askOnce(backend, headers, method)
        if (answer.status !== 503) return answer
      }
    }
    const { token, cookie, session } = await signIn(url)
    const served = { status: 200, body: { userId: session.userId, address: session.address } }
    const refused = { status: 401, body: { code: 'SESSION_REQUIRED', message: expect.stringContaining('ign in') } }
    /** Guards say why a cookie does not count. The example without a guard has nobody but its log to say it. */
    const foreign = (message: unknown): Answer =>
      name === 'main' ? refused : { status: 403, body: { code: 'ORIGIN_NOT_TRUSTED', message } }
    const authorization = `Bearer ${token}`

    expect(await ask({ authorization })).toEqual(served)
    expect(await ask({})).toEqual(refused)
    expect(await ask({ authorization: `${authorization}x` })).toEqual(refused)
    // A page cannot make a browser send somebody else's bearer token, so its origin does not matter.
    expect(await ask({ authorization, origin: 'https://evil.example' })).toEqual(served)
    const evil = 'Cookie refused: origin https://evil.example is not trusted. Add it to trustedOrigins.'
    expect(await ask({ cookie, origin: 'https://evil.example' })).toEqual(foreign(evil))
    expect(await ask({ cookie, origin: 'https://evil.example' })).toEqual(foreign(evil))
    expect(await ask({ cookie, origin: 'null' })).toEqual(foreign(expect.stringContaining('Cookie refused: ')))
    expect(await ask({ cookie })).toEqual(foreign(expect.stringContaining('Cookie refused: ')))
    expect(log().split(evil)).toHaveLength(2)
    expect(await ask({ origin: 'https://evil.example' })).toEqual(refused)
    // The service's page is trusted by default, and so is the backend's own origin where it is known.
    expect(await ask({ cookie, origin: url })).toEqual(served)
    if (hasGet) {
      expect(await ask({ cookie }, 'GET')).toEqual(served)
      expect(await ask({ cookie, origin: 'https://evil.example' }, 'GET')).toEqual(foreign(evil))
      expect(await ask({ cookie, origin: backend })).toEqual(served)
      expect(await ask({ cookie: cookie.replace('countersign', '__Host-countersign') }, 'GET')).toEqual(refused)
    }
    const other = await signIn(url)
    await other.signOut()
    expect(await ask({ authorization: `Bearer ${other.token}` })).toEqual(refused)
    await service.close(0)
    expect(await askOnce(backend, { authorization: 'Bearer another' }, 'POST')).toEqual({
      status: 503,
      body: { code: 'SERVICE_UNAVAILABLE', message: expect.stringContaining('cannot be checked') },
    })
  })
})

test('examples/backend/resource.ts serves clients whose users have allowed its scope', async () => {
  const resource = 'https://notes.example/notes'
  const clients = fileWith({ clients: [shop], resources: [{ resource, scopes: ['notes:read'] }] })
  const { url } = await startService({ oidc: { clients } })
  const { backend } = await startBackend('resource', url, { RESOURCE: resource })
  const refused = await fetch(`${backend}/notes`)
  expect(refused.status).toBe(401)
  expect(refused.headers.get('www-authenticate')).toContain(
    'resource_metadata="https://notes.example/.well-known/oauth-protected-resource/notes"',
  )
  const metadata = await fetch(`${backend}/.well-known/oauth-protected-resource/notes`)
  expect(await metadata.json()).toMatchObject({ resource, authorization_servers: [url] })
  const { session, tokens } = await connect(url, { resource, scope: 'openid notes:read' })
  const answer = await fetch(`${backend}/notes`, { headers: { authorization: `Bearer ${tokens.access_token}` } })
  expect(await answer.json()).toEqual({ clientId: 'shop', userId: session.userId })
})
