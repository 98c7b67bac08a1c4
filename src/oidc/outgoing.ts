import { lookup } from 'node:dns'
import { request } from 'node:https'
import { isIP } from 'node:net'
import { isDocumentationAddress, isSpecialAddress } from '../base/special-networks.ts'

/** Time in ms that a client has to answer. */
const answerMs = 2_500

/** Whether no client on the internet can be at an IP address. */
export function isUnreachable(address: string): boolean {
  return isSpecialAddress(address) || isDocumentationAddress(address)
}

/** A request to a client. Header values are texts. */
export interface OutgoingRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Posts to any address, for a client in the service's own network. Resolves with the status of the answer. */
export async function postAnywhere({ url, headers, body }: OutgoingRequest): Promise<number> {
  const signal = AbortSignal.timeout(answerMs)
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
  await response.body?.cancel()
  return response.status
}

/**
 * Posts to a public address: https on port 443. The address is checked before the connection, so that a request reveals
 * nothing about the service's own network. Resolves with the status of the answer; redirects are not followed.
 */
export async function postToPublic({ url, headers, body }: OutgoingRequest): Promise<number> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol !== 'https:' || url.port !== '') throw new TypeError('only https on port 443 is called')
  if (isIP(host) !== 0 && isUnreachable(host)) throw specialAddress()
  const options = { method: 'POST', headers, lookup: publicLookup, signal: AbortSignal.timeout(answerMs) }
  return await new Promise((resolve, reject) => {
    const sent = request(url, options, (answer) => {
      answer.destroy()
      resolve(answer.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Looks a host up, and fails if one of its addresses is special. */
const publicLookup: typeof lookup = ((
  host: string,
  options: object,
  callback: (error: Error | null, ...found: unknown[]) => void,
) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    if (error !== null) return callback(error)
    if (found.some(({ address }) => isUnreachable(address))) return callback(specialAddress())
    if ((options as { all?: boolean }).all === true) return callback(null, found)
    const [first] = found
    return callback(null, first?.address, first?.family)
  })
}) as never

function specialAddress(): Error {
  return new Error('the host has an address inside this network; a client there needs "private_network": true')
}
