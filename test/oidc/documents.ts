import type { RequestListener } from 'node:http'
import * as client from 'openid-client'
import type { CountersignOptions } from '../../src/service/config.ts'
import type { Internet } from '../support/internet.ts'
import { startService } from '../support/service.ts'
import { fileWith } from './support.ts'

/** The redirect URI of documents, and one of its ports. */
export const loopback = { registered: 'http://127.0.0.1/callback', used: 'http://127.0.0.1:4711/callback' }

/** Answers with a JSON document, as it is at each request. */
export function json(document: () => object, headers: Readonly<Record<string, string>> = {}): RequestListener {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(document()))
  }
}

/** The id of a client at a host of {@link Internet}, and its document. */
export function documentOf(name: string, changes: Readonly<Record<string, unknown>> = {}) {
  const id = `https://${name}.clients.example/client.json`
  const document = {
    client_id: id,
    client_name: 'Tulip Agent',
    redirect_uris: [loopback.registered],
    grant_types: ['authorization_code', 'refresh_token'],
    ...changes,
  }
  return { id, document }
}

/** Puts a client with a document on the internet. Returns its id. */
export function publish(internet: Internet, name: string, changes?: Readonly<Record<string, unknown>>): string {
  const { id, document } = documentOf(name, changes)
  internet.put(
    name,
    json(() => document),
  )
  return id
}

/** Starts an issuer that takes clients with any document. */
export async function startWithDocuments(options: CountersignOptions = {}, resources: readonly object[] = []) {
  const clients = fileWith({ clients: [], resources })
  return await startService({ ...options, oidc: { clients, clientDocuments: ['*'], ...options.oidc } })
}

/** openid-client for a client without registration. */
export async function discoverAs(url: string, id: string, auth: client.ClientAuth = client.None()) {
  return await client.discovery(new URL(url), id, undefined, auth, { execute: [client.allowInsecureRequests] })
}

/** The address of a request for authorization, without a library. */
export function authorizeAddress(url: string, id: string, redirectUri: string = loopback.used): string {
  return `${url}/api/auth/oidc/authorize?${new URLSearchParams({
    client_id: id,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'openid profile',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    state: 'one',
  })}`
}
