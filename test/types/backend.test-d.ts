// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createServer, type IncomingMessage } from 'node:http'
import { createSecureServer, type Http2ServerRequest } from 'node:http2'
import { type Countersign, createCountersign } from 'countersign'
import {
  type AccessTokenClaims,
  AccessTokenError,
  type AccessTokenErrorReason,
  type AuthInfo,
  createSessionVerifier,
  type Fetcher,
  type LocalSessionVerifierOptions,
  type ProtectedResource,
  type ProtectedResourceOptions,
  protectedResource,
  type RemoteSessionVerifierOptions,
  type Session,
  SessionCheckError,
  type SessionCheckErrorReason,
  type SessionTokenClaims,
  type SessionVerifier,
  type VerifyAccessTokenOptions,
  verifyAccessToken,
} from 'countersign/backend'

const own: Fetcher = (url, init) => fetch(url, init)
const remote: RemoteSessionVerifierOptions = {
  url: 'http://countersign:8080',
  publicUrl: 'https://app.example',
  cacheSeconds: 0,
  trustedOrigins: ['https://app.example'],
  timeoutMs: 1000,
  fetch: own,
}
export const verifier: SessionVerifier = createSessionVerifier(remote)

export async function run(incoming: IncomingMessage, http2: Http2ServerRequest, request: Request): Promise<void> {
  const inputs = ['token', incoming, http2, request, request.headers]
  for (const input of inputs) await verifier.verify(input)
  const session: Session | undefined = await verifier.verify(request)
  const address: string | undefined = session?.address
  // @ts-expect-error: a session need not be there.
  session.address.at(0)
  // @ts-expect-error: nobody writes to a session.
  if (session) session.userId = address ?? ''
  // @ts-expect-error: there may be no header.
  await verifier.verify(incoming.headers.authorization)
  createServer((each) => void verifier.verify(each))
}

export async function inOneProcess(): Promise<SessionVerifier> {
  const countersign: Countersign = await createCountersign()
  const options: LocalSessionVerifierOptions = { countersign, cacheSeconds: 1 }
  // @ts-expect-error: one or the other.
  createSessionVerifier({ countersign, url: 'http://countersign:8080' })
  // @ts-expect-error: one of them.
  createSessionVerifier({ cacheSeconds: 1 })
  return createSessionVerifier(options)
}

export function statusOf(error: unknown): number {
  if (!(error instanceof SessionCheckError)) return 500
  const reason: SessionCheckErrorReason = error.reason
  const retryAfterMs: number | undefined = error.retryAfterMs
  return reason === 'SERVICE_UNAVAILABLE' && retryAfterMs !== undefined ? 503 : 502
}

export async function offline(token: string): Promise<string | undefined> {
  try {
    const claims: AccessTokenClaims = await verifyAccessToken(token, {
      issuer: 'https://app.example',
      audience: 'orders',
    })
    // @ts-expect-error: a client's token may have no wallet.
    const address: string = claims.wallet.address
    return claims.wallet?.address ?? address
  } catch (error) {
    return error instanceof AccessTokenError ? error.reason : undefined
  }
}

export async function ownerOf(token: string): Promise<string | AccessTokenErrorReason> {
  const rules: VerifyAccessTokenOptions = { issuer: 'https://auth.example', audience: 'orders', fetch: own }
  // @ts-expect-error: without an audience, the tokens of other backends would do.
  await verifyAccessToken(token, { issuer: 'https://auth.example' })
  try {
    const own: SessionTokenClaims = await verifyAccessToken(token, {
      issuer: 'https://auth.example',
      audience: 'orders',
    })
    const sessionId: string = own.sessionId
    const claims: AccessTokenClaims = await verifyAccessToken(token, { ...rules, scopes: ['orders:read'] })
    // @ts-expect-error: a client's token may have no session.
    const id: string = claims.sessionId
    return claims.clientId ?? claims.scopes?.join(' ') ?? `${sessionId}${id}${own.wallet.address}`
  } catch (error) {
    if (error instanceof AccessTokenError) return error.reason
    throw error
  }
}

export function resource(issuer: string): ProtectedResource {
  const options: ProtectedResourceOptions = { issuer, resource: 'https://notes.example/mcp', scopes: ['notes:read'] }
  const notes = protectedResource({ ...options, offered: ['notes:read', 'notes:write'], fetch: own })
  // @ts-expect-error: without scopes, tokens that allow nothing would do.
  protectedResource({ issuer, resource: 'https://notes.example/mcp' })
  createServer((request: IncomingMessage & { auth?: AuthInfo }, response) => {
    void notes.handle(request, response, () => response.end(request.auth?.extra.userId))
  })
  createSecureServer((request, response) => void notes.handle(request, response, () => response.end()))
  return notes
}

export async function serve(notes: ProtectedResource, request: Request): Promise<Response> {
  const { answer, auth, headers } = await notes.check(request)
  if (answer !== undefined) return new Response(answer.body, answer)
  // What MCP's SDK has under this name.
  const info: { token: string; clientId: string; scopes: string[]; expiresAt?: number; resource?: URL } & {
    extra?: Record<string, unknown>
  } = auth
  // @ts-expect-error: the user may not have allowed the wallet.
  const address: string = auth.extra.wallet.address
  return Response.json({ address, clientId: info.clientId, name: notes.metadata.resource }, { headers })
}
