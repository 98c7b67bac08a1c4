/** What an application asks of an issuer of OpenID Connect: Countersign's, and that of its floor. */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { nextWallet } from './clients.ts'
import { type Http1Connection, Http1Pool } from './http1.ts'
import type { Path } from './paths.ts'
import { publicUrl } from './servers.ts'
import { inFlight } from './turns.ts'

/** The application, as it is registered at both. */
export const application = {
  client_id: 'shop',
  client_secret: 'a-secret-for-benchmarks-and-nothing-else',
  client_name: 'Shop',
  redirect_uris: ['https://shop.example/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
} as const
export const scope = 'openid profile'
export const nonce = 'a nonce for benchmarks and for nothing else'
const codeVerifier = 'a-verifier-for-benchmarks-and-for-nothing-else'
export const codeChallenge = hash('sha256', codeVerifier, 'base64url')

/** An issuer, and how codes for the application are made there. */
export interface Issuer {
  readonly tokenPath: string
  /** Signs a user in. Resolves with codes for that user. */
  codes(port: number, count: number): Promise<string[]>
}

/** With an application of the operator's own, which asks the user nothing. */
export const countersignIssuer: Issuer = {
  tokenPath: '/api/auth/oidc/token',
  async codes(port, count) {
    const url = `http://127.0.0.1:${port}/api/auth`
    const post = async (path: string, body: object): Promise<Response> => {
      const headers = { 'content-type': 'application/json', origin: publicUrl }
      return await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    }
    const { nonceId, message } = await (await post('/wallet/nonce', {})).json()
    const signedIn = await post('/wallet/verify', { nonceId, ...nextWallet(port).prove(message) })
    const [cookie = ''] = (signedIn.headers.getSetCookie()[0] ?? '').split(';')
    const parameters = new URLSearchParams({
      client_id: application.client_id,
      redirect_uri: application.redirect_uris[0],
      response_type: 'code',
      scope,
      nonce,
      code_challenge: codeChallenge,
      code_challenge_method: 'S256',
    })
    const newCode = async (): Promise<string> => {
      // By `fetch`, it would be the request of a script.
      const headers = { cookie, host: new URL(publicUrl).host }
      const sent = request(`${url}/oidc/authorize?${parameters}`, { headers }).end()
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      const text = await readText(answer)
      const code = new URL(answer.headers.location ?? publicUrl).searchParams.get('code')
      if (code === null) throw new Error(`no code: ${answer.statusCode} ${text}`)
      return code
    }
    return await Promise.all(Array.from({ length: count }, newCode))
  },
}

export const floorIssuer: Issuer = {
  tokenPath: '/token',
  async codes(port, count) {
    return (await (await fetch(`http://127.0.0.1:${port}/codes?count=${count}`)).json()) as string[]
  },
}

/** Codes that each call in flight redeems in one turn. */
const codesEach = 3

const authorization = `authorization: Basic ${Buffer.from(
  `${application.client_id}:${encodeURIComponent(application.client_secret)}`,
).toString('base64')}\r\n`

// biome-ignore lint/suspicious/noExplicitAny: callers look at fields that they name.
async function ask(connection: Http1Connection, path: string, parameters: Record<string, string>): Promise<any> {
  const body = new URLSearchParams(parameters).toString()
  const answer = await connection.post(path, 'application/x-www-form-urlencoded', body, authorization)
  return JSON.parse(answer.toString())
}

/** Redeems a code. Resolves with the token answer. */
export const redeem = (connection: Http1Connection, { tokenPath }: Issuer, code: string) =>
  ask(connection, tokenPath, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: application.redirect_uris[0],
    code_verifier: codeVerifier,
  })

/** Replaces a refresh token. Resolves with the token answer. */
export const refresh = (connection: Http1Connection, { tokenPath }: Issuer, token: string) =>
  ask(connection, tokenPath, { grant_type: 'refresh_token', refresh_token: token })

/** Redemptions of codes that were made before the turn. */
export const codeExchange = (issuer: Issuer): Path => ({
  name: 'code exchange',
  http: 'http',
  async connect(port, open, { concurrency }) {
    const pool = open.use(new Http1Pool(port, { isPage: false }))
    return async (measured) => {
      const codes = await codesOfUsers(issuer, port, { users: concurrency, each: codesEach })
      return await measured(async () => {
        const times: number[] = []
        const work = async (own: readonly string[], worker: number): Promise<void> => {
          for (const code of own) {
            const startedAt = performance.now()
            await redeem(pool.of(worker), issuer, code)
            times.push(performance.now() - startedAt)
          }
        }
        await Promise.all(codes.map(work))
        return times
      })
    }
  },
})

/** Refreshes with rotation. Each call in flight goes on with its own token, which is the first one of a turn's sign-in. */
export const refreshes = (issuer: Issuer): Path => ({
  name: 'refresh',
  http: 'http',
  async connect(port, open, { concurrency, turnMs }) {
    const pool = open.use(new Http1Pool(port, { isPage: false }))
    return async (measured) => {
      const codes = await codesOfUsers(issuer, port, { users: concurrency, each: 1 })
      const tokens: string[] = await Promise.all(
        codes.map(async ([code = ''], worker) => (await redeem(pool.of(worker), issuer, code)).refresh_token),
      )
      return await inFlight(concurrency, turnMs, async (worker) => {
        tokens[worker] = (await refresh(pool.of(worker), issuer, tokens[worker] ?? '')).refresh_token
      })(measured)
    }
  },
})

/** New users in each turn: the floor gets slower with the number of tokens that one user has. */
function codesOfUsers(issuer: Issuer, port: number, { users, each }: { users: number; each: number }) {
  return Promise.all(Array.from({ length: users }, () => issuer.codes(port, each)))
}
