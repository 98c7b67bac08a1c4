import dns from 'node:dns/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isDocumentationAddress, isSpecialAddress } from '../base/networks.ts'

/** Time in ms that the other side has to answer, from the look-up of its host to the last byte. */
export const answerMs = 2_500

/** Whether nothing on the internet can be at an IP address. */
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

/** Posts to a public address of a client. Resolves with the status of the answer; redirects are not followed. */
export async function postToPublic({ url, ...options }: OutgoingRequest): Promise<number> {
  const find = async (host: string) => (await dns.lookup(host, { all: true })).map(({ address }) => address)
  const signal = AbortSignal.timeout(answerMs)
  const advice = '; a client there needs "private_network": true'
  const status = (answer: IncomingMessage): number => answer.statusCode ?? 0
  return await requestPublic(url, { method: 'POST', ...options, find, signal, advice }, status)
}

/** A JSON document of the internet. */
export interface FetchedJson {
  readonly json: unknown
  /**
   * Time in seconds for which its server lets it be kept (Cache-Control, `max-age`); `undefined` if it does not say.
   */
  readonly maxAgeSeconds: number | undefined
}

/** Bounds of {@link getJson}. */
interface JsonBounds {
  readonly maxBytes: number
  readonly signal: AbortSignal
}

/**
 * Gets a JSON document from a public address that a stranger has named. Rejects for redirects, for any status but 200,
 * and for a document beyond `maxBytes`.
 */
export async function getJson(url: URL, { maxBytes, signal }: JsonBounds): Promise<FetchedJson> {
  const headers = { accept: 'application/json', 'user-agent': 'countersign' }
  return await requestPublic(url, { headers, find: namedAddresses, signal }, async (answer) => {
    if (answer.statusCode !== 200) throw new Error(`the answer has status ${answer.statusCode}`)
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBytes) throw new Error(`the document is larger than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
    const [, seconds] = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(answer.headers['cache-control'] ?? '') ?? []
    const maxAgeSeconds = seconds === undefined ? undefined : Number(seconds)
    // A byte order mark is no part of the text.
    return { json: JSON.parse(new TextDecoder().decode(Buffer.concat(chunks))), maxAgeSeconds }
  })
}

/** A request that must not reach the service's own network. */
interface PublicRequest {
  readonly method?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
  /** Looks up the addresses of a host. */
  readonly find: (host: string) => Promise<readonly string[]>
  /** What follows the message of the error about an address inside a network. */
  readonly advice?: string
}

/**
 * Sends a request to a public address: https on port 443. The host is looked up once, and the connection goes to the
 * addresses that were checked, whatever the host's name means a moment later.
 */
async function requestPublic<T>(
  url: URL,
  { body, find, advice, ...options }: PublicRequest,
  read: (answer: IncomingMessage) => T | Promise<T>,
): Promise<T> {
  if (url.protocol !== 'https:' || url.port !== '') throw new TypeError('only https on port 443 is called')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const found = isIP(host) === 0 ? await inTime(find(host), options.signal) : [host]
  if (found.length === 0) throw new Error('the host has no address')
  if (found.some(isUnreachable)) throw new Error(`the host has an address inside this network${advice ?? ''}`)
  return await new Promise((resolve, reject) => {
    // One connection for one request: none that was made for another purpose is used.
    const sent = request(url, { ...options, agent: false, lookup: lookupOf(found) }, async (answer) => {
      try {
        resolve(await read(answer))
      } catch (thrown) {
        reject(thrown)
      } finally {
        sent.destroy()
      }
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function inTime<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  const late = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  return await Promise.race([result, late])
}

/**
 * Addresses of a host by name servers, without the system's look-up, of which a process does only two at a time: two
 * hosts whose name servers are slow would hold up all others.
 */
async function namedAddresses(host: string): Promise<readonly string[]> {
  const answers = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)])
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
}

/** A look-up that has been done. */
function lookupOf(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, { all }, callback) => {
    if (all === true) callback(null, found)
    else callback(null, found[0]?.address ?? '', found[0]?.family)
  }
}
