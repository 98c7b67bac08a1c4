import { parse } from 'node:querystring'
import type { Exchange } from '../http/exchange.ts'
import { isForm } from '../http/refusals.ts'
import { maxFormBytes } from '../limits/limits.ts'
import { CountersignError } from '../shared/errors.ts'
import { type ClientsFile, canonicalAddress } from './clients.ts'

/** Largest JSON of a request's parameters, in bytes. A request is stored, and so is what the client gets back of it. */
export const maxParameterBytes = 4 * 1024

/** Most parameters of a query. The library's framework reads each of them by a search through all. */
const mostParameters = 100

/**
 * A request as the library reads it, which compares texts: resources are spelt as in the clients file, and a public
 * client that sends its id with an empty secret has its id in the form. All else is as it was sent.
 */
export async function ownSpelling(
  exchange: Exchange,
  { clients, addresses }: Pick<ClientsFile, 'clients' | 'addresses'>,
): Promise<Exchange> {
  const { method, query, headers, body } = exchange
  if (query.split('&', mostParameters + 1).length > mostParameters) throw tooMany()
  if (method !== 'POST' || !isForm(headers)) return { ...exchange, query: withAddresses(query, addresses) }
  // In this encoding, every byte stays what it is.
  const sent = withAddresses((await body.read(maxFormBytes)).toString('latin1'), addresses)
  const id = idWithoutSecret(headers.authorization)
  const named = parse(sent).client_id
  const known = clients.get(id ?? '')
  const isPublic = known === undefined || known.metadata.token_endpoint_auth_method === 'none'
  // Two ids are for the library to refuse.
  const isId = id !== undefined && isPublic && (named === undefined || named === id)
  const { authorization: _, ...others } = headers
  const form = isId && named === undefined ? `client_id=${encodeURIComponent(id)}&${sent}` : sent
  const { decompressed } = body
  const read = async (): Promise<Buffer> => Buffer.from(form, 'latin1')
  return { ...exchange, headers: isId ? others : headers, body: { decompressed, read, drop: () => body.drop() } }
}

function tooMany(): CountersignError {
  return new CountersignError('INVALID_REQUEST', `A query has at most ${mostParameters} parameters`)
}

/** A query or form with the file's own spelling of each resource. */
function withAddresses(text: string, addresses: ClientsFile['addresses']): string {
  if (addresses.size === 0) return text
  const ownSpellingOf = (pair: string): string => {
    const { resource } = parse(pair)
    const own = typeof resource === 'string' ? addresses.get(canonicalAddress(resource) ?? '') : undefined
    return own === undefined ? pair : `resource=${encodeURIComponent(own)}`
  }
  return text.split('&').map(ownSpellingOf).join('&')
}

/** The id in an Authorization header with an empty secret (RFC 6749, 2.3.1), or `undefined`. */
function idWithoutSecret(authorization: string | undefined): string | undefined {
  const [, encoded = ''] = /^basic ([a-z\d+/]+={0,2})$/i.exec(authorization ?? '') ?? []
  const [, id] = /^([^:]+):$/.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  return id === undefined ? undefined : parse(`id=${id.replaceAll('&', '%26')}`).id?.toString()
}
