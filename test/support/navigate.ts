import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { buffer } from 'node:stream/consumers'

/** A navigation beside its address. Headers that Fetch Metadata has are those of a whole page, unless given. */
export interface Navigation {
  readonly method?: string
  /** The target as it is sent, in place of the address's: `URL` has no fragment in it. */
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the browser says what it does, as over TLS. Default: yes. */
  readonly hasMetadata?: boolean
  readonly body?: string | URLSearchParams
}

/**
 * Opens an address as a browser opens a page. `fetch` of Node.js says of itself that it is a script. Redirects are not
 * followed.
 */
export async function navigate(
  address: string | URL,
  { method = 'GET', path, headers = {}, hasMetadata = true, body }: Navigation = {},
): Promise<Response> {
  const form = body instanceof URLSearchParams ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
  const page = hasMetadata && { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  const { request } = new URL(address).protocol === 'https:' ? https : http
  const target = path === undefined ? {} : { path }
  const sent = request(address, { method, ...target, headers: { ...page, ...form, ...headers } })
  sent.end(body?.toString())
  const [answer] = (await once(sent, 'response')) as [http.IncomingMessage]
  const received = new Headers()
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    for (const value of values ?? []) received.append(name, value)
  }
  const { statusCode: status = 0 } = answer
  const content = await buffer(answer)
  return new Response(content.length === 0 ? null : new Uint8Array(content), { status, headers: received })
}
