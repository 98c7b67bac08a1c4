import { afterAll, beforeAll, expect, test } from 'vitest'
import { LeastSignIn } from '../../bench/floors/sign-in.ts'
import { Http1Pool } from '../../bench/http1.ts'
import { application, countersignIssuer, floorIssuer, type Issuer, redeem, refresh } from '../../bench/issuers.ts'
import { publicUrl, type ServerProcess, startCountersign, startFloor } from '../../bench/servers.ts'
import { makeWallets, type Wallet } from '../../bench/wallets.ts'
import { decoded } from '../integrations/backend/forge.ts'
import { clientsFile } from '../oidc/support.ts'
import { hasPart } from '../support/optional.ts'
import { RedisServer } from '../support/redis-server.ts'

const [wallet, other] = makeWallets(2) as [Wallet, Wallet]
const caller = { ip: '127.0.0.1', userAgent: 'a browser' }
const withRedis = hasPart('redis-server')
let redis: RedisServer

beforeAll(async () => {
  if (withRedis) redis = await RedisServer.start()
})
afterAll(async () => await redis?.[Symbol.asyncDispose]())

test.runIf(withRedis)('a nonce of the floor is good once, and the session is found by its token', async () => {
  using floor = await LeastSignIn.open(redis.url)
  const { nonceId, message } = await floor.issue('http://shop.example')
  const proof = { nonceId, ...wallet.prove(message) }
  const { token } = await floor.verify(proof, caller)
  expect(await floor.session(`Bearer ${token}`)).toMatchObject({ publicKeyHex: proof.publicKeyHex })
  await expect(floor.session('Bearer another')).rejects.toThrow('no such session')
  await expect(floor.verify(proof, caller)).rejects.toThrow('no such nonce')
})

test.runIf(withRedis)('the floor refuses the signature of another wallet', async () => {
  using floor = await LeastSignIn.open(redis.url)
  const { nonceId, message } = await floor.issue('http://shop.example')
  const { publicKeyHex } = wallet.prove(message)
  const { signatureHex } = other.prove(message)
  await expect(floor.verify({ nonceId, publicKeyHex, signatureHex }, caller)).rejects.toThrow('not signed')
})

/** Names of the headers and fields of what a server answers to a sign-in. */
async function shapeOfSignIn({ port }: ServerProcess): Promise<unknown> {
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json', origin: publicUrl }
    const options = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(`http://127.0.0.1:${port}/api/auth/wallet/${path}`, options)
    const names = [...response.headers.keys()].filter((name) => name !== 'keep-alive')
    return { names: names.sort(), json: (await response.json()) as Record<string, string> }
  }
  const challenge = await post('nonce', {})
  const { nonceId, message = '' } = challenge.json
  const signedIn = await post('verify', { nonceId, ...wallet.prove(message) })
  const fieldsOf = (json: object): string[] => Object.keys(json).sort()
  return [
    challenge.names,
    fieldsOf(challenge.json),
    signedIn.names,
    fieldsOf(signedIn.json),
    fieldsOf(Object(signedIn.json.session)),
  ]
}

test.runIf(withRedis)(
  'the floor answers a sign-in over REST with the headers and fields of Countersign’s',
  async () => {
    await using own = await startCountersign(redis.url)
    await using floor = await startFloor('least', redis.url, 'http')
    expect(await shapeOfSignIn(floor)).toEqual(await shapeOfSignIn(own))
  },
)

/** Names of the fields of what an issuer answers to a code and a refresh token, and of what its ID tokens say. */
async function shapeOfTokens(issuer: Issuer, { port }: ServerProcess): Promise<unknown> {
  using pool = new Http1Pool(port, { isPage: false })
  const [code = ''] = await issuer.codes(port, 1)
  const first = await redeem(pool.of(0), issuer, code)
  const answers = [first, await refresh(pool.of(0), issuer, first.refresh_token)]
  return answers.map((answer) => {
    const { header, payload } = decoded(answer.id_token)
    return [Object.keys(answer), answer.scope, answer.expires_in, header.alg, Object.keys(payload).sort()]
  })
}

test('the issuer’s floor answers a code and a refresh token with the fields and claims of Countersign’s', async () => {
  const oidcClients = clientsFile({ metadata: application, first_party: true })
  await using own = await startCountersign('sqlite::memory:', { oidcClients })
  await using floor = await startFloor('oidc-koa', '', 'http')
  expect(await shapeOfTokens(floorIssuer, floor)).toEqual(await shapeOfTokens(countersignIssuer, own))
})
