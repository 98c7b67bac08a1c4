// A client of an MCP server that is a page: the steps of docs/mcp.md, "What a client does", with oauth4webapi alone.
import * as oauth from 'oauth4webapi'

const here = `${location.origin}/`
const insecure = { [oauth.allowInsecureRequests]: true }
/** As MCP's own clients send it with every request. */
const headers = { 'mcp-protocol-version': '2025-11-25' }

interface Kept {
  readonly server: string
  readonly clientId: string
  readonly issuer: string
  readonly resource: string
  readonly verifier: string
  readonly state: string
}

async function metadataOf(issuer: URL): Promise<oauth.AuthorizationServer> {
  const found = await oauth.discoveryRequest(issuer, {
    ...insecure,
    algorithm: 'oauth2',
    headers: new Headers(headers),
  })
  return await oauth.processDiscoveryResponse(issuer, found)
}

/** Finds the issuer through the server, and leads there. */
async function begin(server: string, clientId: string): Promise<void> {
  const refused = await fetch(server, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } })
  const challenge = refused.headers.get('www-authenticate') ?? ''
  const at = /resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? ''
  const scope = /scope="([^"]+)"/.exec(challenge)?.[1] ?? ''
  const { resource, authorization_servers: [first = ''] = [] } = await oauth.processResourceDiscoveryResponse(
    new URL(server),
    await fetch(at, { headers }),
  )
  const as = await metadataOf(new URL(first))
  const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()]
  const kept: Kept = { server, clientId, issuer: as.issuer, resource, verifier, state }
  sessionStorage.setItem('kept', JSON.stringify(kept))
  const asked = new URLSearchParams({
    client_id: clientId,
    redirect_uri: here,
    response_type: 'code',
    scope,
    resource,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
  })
  location.assign(`${as.authorization_endpoint}?${asked}`)
}

/** Takes the answer of the issuer, and calls the server. */
async function finish({ server, clientId, issuer, resource, verifier, state }: Kept): Promise<string> {
  const [as, client] = [await metadataOf(new URL(issuer)), { client_id: clientId }]
  const answer = oauth.validateAuthResponse(as, client, new URL(location.href), state)
  const named = { ...insecure, additionalParameters: { resource } }
  const grant = [as, client, oauth.None(), answer, here, verifier, named] as const
  const tokens = await oauth.processAuthorizationCodeResponse(
    as,
    client,
    await oauth.authorizationCodeGrantRequest(...grant),
  )
  const called = await fetch(server, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', authorization: `Bearer ${tokens.access_token}` },
    body: '{}',
  })
  return await called.text()
}

const given = new URLSearchParams(location.search)
const kept = sessionStorage.getItem('kept')
if (kept === null) await begin(given.get('server') ?? '', given.get('client') ?? '')
else document.body.textContent = await finish(JSON.parse(kept))
