import { lookup } from 'node:dns'
import dns from 'node:dns/promises'
import { type RequestOptions, request } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isDocumentationAddress, isSpecialAddress } from '../base/special-networks.ts'

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

/**
 * Posts to a public address: https on port 443. The address is checked before the connection, so that a request reveals
 * nothing about the service's own network. Resolves with the status of the answer; redirects are not followed.
 */
export async function postToPublic({ url, headers, body }: OutgoingRequest): Promise<number> {
  requirePort(url)
  const host = hostOf(url)
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
 * Gets a JSON document from a public address that a stranger has named: https on port 443. The host is looked up once;
 * the connection goes to the addresses that were checked, whatever the host's name means a moment later. Rejects for
 * redirects, for any status but 200, and for a document beyond `maxBytes`.
 */
export async function getJson(url: URL, { maxBytes, signal }: JsonBounds): Promise<FetchedJson> {
  requirePort(url)
  const addresses = await publicAddresses(hostOf(url), signal)
  const options: RequestOptions = {
    headers: { accept: 'application/json', 'user-agent': 'countersign' },
    lookup: lookupOf(addresses),
    // One connection for one request: none that was made for another purpose is used.
    agent: false,
    signal,
  }
  return await new Promise((resolve, reject) => {
    const sent = request(url, options, async (answer) => {
      try {
        const { statusCode, headers } = answer
        if (statusCode !== 200) throw new Error(`the answer has status ${statusCode}`)
        const chunks: Buffer[] = []
        let length = 0
        for await (const chunk of answer as AsyncIterable<Buffer>) {
          length += chunk.length
          if (length > maxBytes) throw new Error(`the document is larger than ${maxBytes} bytes`)
          chunks.push(chunk)
        }
        const [, seconds] = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(headers['cache-control'] ?? '') ?? []
        const maxAgeSeconds = seconds === undefined ? undefined : Number(seconds)
        // A byte order mark is no part of the text.
        resolve({ json: JSON.parse(new TextDecoder().decode(Buffer.concat(chunks))), maxAgeSeconds })
      } catch (thrown) {
        reject(thrown)
      } finally {
        sent.destroy()
      }
    })
    sent.on('error', reject)
    sent.end()
  })
}

/**
 * The addresses of a host of the internet. They come from name servers without the system's look-up, of which a process
 * does only two at a time: two hosts whose name servers are slow would hold up all others.
 */
async function publicAddresses(host: string, signal: AbortSignal): Promise<readonly string[]> {
  const addresses = isIP(host) !== 0 ? [host] : await namedAddresses(host, signal)
  if (addresses.length === 0) throw new Error('the host has no address')
  if (addresses.some(isUnreachable)) throw new Error(insideText)
  return addresses
}

async function namedAddresses(host: string, signal: AbortSignal): Promise<readonly string[]> {
  const late = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const answers = await Promise.race([Promise.allSettled([dns.resolve4(host), dns.resolve6(host)]), late])
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

/** Looks a host up, and fails if one of its addresses is special. */
const publicLookup: LookupFunction = (host, options, callback) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    if (error !== null) return callback(error, '')
    if (found.some(({ address }) => isUnreachable(address))) return callback(specialAddress(), '')
    if (options.all === true) return callback(null, found)
    return callback(null, found[0]?.address ?? '', found[0]?.family)
  })
}

function requirePort({ protocol, port }: URL): void {
  if (protocol !== 'https:' || port !== '') throw new TypeError('only https on port 443 is called')
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

const insideText = 'the host has an address inside this network'

function specialAddress(): Error {
  return new Error(`${insideText}; a client there needs "private_network": true`)
}
