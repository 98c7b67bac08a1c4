import type { KeyPurpose, Keyring } from '../base/token.ts'
import type { Exchange } from '../http/exchange.ts'
import { isJson, notJson } from '../http/refusals.ts'
import { maxFormBytes } from '../limits/limits.ts'
import { CountersignError } from '../shared/errors.ts'
import { parseObject } from '../shared/json-object.ts'
import type { LibraryAnswer } from './library-request.ts'

/** Sends an answer, and cookies of ours. The library's stay here. */
export function sendAnswer(
  { output }: Exchange,
  { status, headers, body }: LibraryAnswer,
  cookies: readonly string[],
): void {
  const { 'set-cookie': _set, 'content-length': _length, 'transfer-encoding': _encoding, ...others } = headers
  const own = cookies.length === 0 ? {} : { 'set-cookie': [...cookies] }
  output.send({ status, headers: { ...others, ...own }, body })
}

/** Sends JSON to a page of the issuer. */
export function sendPageJson(exchange: Exchange, json: object, cookies: readonly string[]): void {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  sendAnswer(exchange, { status: 200, headers, body: JSON.stringify(json) }, cookies)
}

/** The JSON of a page of the issuer's own origin; other trusted origins are refused. */
export async function readPageInput({ headers, body }: Exchange, publicUrl: string): Promise<object> {
  const own = new URL(publicUrl).origin
  if (headers.origin !== own) {
    throw new CountersignError('ORIGIN_NOT_TRUSTED', `This is for pages of ${own} only`, {
      metadata: { origin: String(headers.origin ?? ''), origin_source: 'Origin header' },
    })
  }
  const json = isJson(headers) ? parseObject((await body.read(maxFormBytes)).toString()) : undefined
  if (json === undefined) throw notJson()
  return json
}

/** A ticket that a page or a cookie hands back: JSON, signed for its purpose. */
export function signTicket(keyring: Keyring, purpose: KeyPurpose, content: object): string {
  const body = Buffer.from(JSON.stringify(content)).toString('base64url')
  return `${body}.${keyring.sign(purpose, body)}`
}

/** What a ticket says; `undefined` if this service did not sign it for the purpose. */
export function readTicket<Content>(keyring: Keyring, purpose: KeyPurpose, ticket: string): Content | undefined {
  const [body = '', signature = ''] = ticket.split('.')
  if (!keyring.verify(purpose, body, signature)) return undefined
  return JSON.parse(Buffer.from(body, 'base64url').toString())
}

/** Refusal of an answer to a page that shows what is no longer so. */
export function changed(): CountersignError {
  return new CountersignError('INVALID_REQUEST', 'The sign-in has changed meanwhile; load the page again')
}
