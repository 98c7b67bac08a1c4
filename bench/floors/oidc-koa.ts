/**
 * The issuer's floor: the library that Countersign's issuer is built on, as its documentation has it, on bare node:http
 * with its own adapter, which keeps everything in this process.
 */
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'
import { application, codeChallenge, nonce, scope } from '../issuers.ts'
import { publicUrl } from '../servers.ts'
import { listen } from './listen.ts'

const { client_id: clientId, redirect_uris: redirectUris } = application
const lifeSeconds = 14 * 86_400

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const provider = new Provider(publicUrl, {
  clients: [{ ...application, redirect_uris: [...redirectUris], grant_types: [...application.grant_types] }],
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' } as never] },
  cookies: { keys: ['a secret for benchmarks and for nothing else'] },
  claims: { openid: ['sub', 'amr', 'auth_time'], profile: ['name', 'preferred_username', 'nickname'] },
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: false } },
  findAccount: (_ctx, accountId) => ({
    accountId,
    claims: () => ({ sub: accountId, name: accountId, preferred_username: accountId, nickname: accountId }),
  }),
  issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  ttl: { AccessToken: 900, Grant: lifeSeconds, IdToken: 900, RefreshToken: lifeSeconds, Session: lifeSeconds },
})

/** Codes such as a user gets who has signed in and allowed the application. */
async function codesOfNewUser(count: number): Promise<string[]> {
  const client = await provider.Client.find(clientId)
  if (client === undefined) throw new Error('the application is not registered')
  const accountId = randomUUID()
  const grant = new provider.Grant({ accountId, clientId })
  grant.addOIDCScope(scope)
  const grantId = await grant.save()
  const session = new provider.Session()
  session.loginAccount({ accountId, amr: ['swk'] })
  session.grantIdFor(clientId, grantId)
  await session.save(lifeSeconds)
  const newCode = (): Promise<string> =>
    new provider.AuthorizationCode({
      accountId,
      client,
      grantId,
      gty: 'authorization_code',
      scope,
      redirectUri: redirectUris[0],
      codeChallenge,
      codeChallengeMethod: 'S256',
      nonce,
      amr: session.amr,
      authTime: session.authTime(),
      sessionUid: session.uid,
      expiresWithSession: true,
    }).save()
  return await Promise.all(Array.from({ length: count }, newCode))
}

const serve = provider.callback()
const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  const count = /^\/codes\?count=(\d+)$/.exec(request.url ?? '')?.[1]
  if (count === undefined) void serve(request, response)
  else void codesOfNewUser(Number(count)).then((codes) => response.end(JSON.stringify(codes)))
})
// Connections are idle while others have their turn.
listen(server)
process.once('SIGTERM', () => process.exit())
