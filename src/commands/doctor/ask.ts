import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { version } from '../../base/version.ts'
import type { Settings } from '../../service/config.ts'
import { reasons } from '../../shared/errors.ts'
import { parseObject } from '../../shared/json-object.ts'
import { sessionPaths } from '../../shared/rest-paths.ts'
import { oneLine } from '../command-line.ts'

/** Longest time in milliseconds for one request. */
const limitMs = 3000

/** Most bytes of an answer that are read. */
const maxBytes = 64 * 1024

/** The answer to a request. */
export interface CheckAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The body if it is a JSON object, otherwise an empty one. */
  readonly json: Readonly<Record<string, unknown>>
  /**
   * Time in epoch milliseconds in the middle of the request and the beginning of the answer, on this machine's clock.
   */
  readonly at: number
}

/** A request without an answer. The message is one line that says why, without the address. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
  /** The system's code, such as ECONNREFUSED; empty if there is none. */
  readonly code: string

  constructor(message: string, code = '') {
    super(message)
    this.code = code
  }
}

/** What is sent. */
export interface Question {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, by POST; without it, the request is a GET. */
  readonly body?: object
  /**
   * Whether any certificate will do, as on this machine, by an address that the certificate is not for. Default false.
   */
  readonly anyCertificate?: boolean
}

/**
 * Sends a request, and follows no redirect.
 *
 * @throws NoAnswerError if there is no answer within 3 seconds.
 */
export async function ask(url: string, question: Question, signal: AbortSignal): Promise<CheckAnswer> {
  const startedAt = Date.now()
  try {
    const response = await send(url, question, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]))
    const at = (startedAt + Date.now()) / 2
    return { status: response.statusCode ?? 0, headers: response.headers, json: await jsonOf(response), at }
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') {
      throw new NoAnswerError(`no answer within ${limitMs / 1000} seconds`)
    }
    // Of several addresses that were tried, each has a reason of its own.
    const first: unknown = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error
    throw new NoAnswerError(oneLine(first), first instanceof Error && 'code' in first ? String(first.code) : '')
  }
}

function send(url: string, question: Question, signal: AbortSignal): Promise<IncomingMessage> {
  const { headers = {}, body, anyCertificate = false } = question
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const options = {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'user-agent': `countersign-doctor/${version}`, ...type, ...headers },
    agent: false as const,
    signal,
  }
  return new Promise((resolve, reject) => {
    const sent = url.startsWith('https:')
      ? https.request(url, { ...options, rejectUnauthorized: !anyCertificate })
      : http.request(url, options)
    sent.on('response', resolve).on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

async function jsonOf(response: IncomingMessage): Promise<CheckAnswer['json']> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes) return {}
    chunks.push(chunk)
  }
  return parseObject(Buffer.concat(chunks).toString('utf8')) ?? {}
}

/** What answers at an address. */
export type Look =
  | { readonly kind: 'countersign'; readonly answer: CheckAnswer }
  /** A Countersign that has its REST endpoints under another path. */
  | { readonly kind: 'other base path' }
  | { readonly kind: 'redirect'; readonly to: string }
  /** A proxy that does not reach what is behind it. */
  | { readonly kind: 'gateway error'; readonly status: number }
  | { readonly kind: 'something else'; readonly status: number }
  | { readonly kind: 'no answer'; readonly error: NoAnswerError }

/** Whether a Countersign answers. */
export function isCountersign({ kind }: Look): boolean {
  return kind === 'countersign' || kind === 'other base path'
}

/**
 * Requests the caller's session at an address. A Countersign refuses that with one of its reasons: a caller without a
 * cookie has none. The path is under the base path, because a proxy may pass on nothing else.
 */
export async function lookAt(
  url: string,
  { basePath }: Pick<Settings, 'basePath'>,
  signal: AbortSignal,
  question: Question = {},
): Promise<Look> {
  try {
    return judge(url, await ask(url + basePath + sessionPaths.current, question, signal))
  } catch (error) {
    if (error instanceof NoAnswerError) return { kind: 'no answer', error }
    throw error
  }
}

/**
 * What answers on a port of this machine, with or without TLS. `url` is an http address; over TLS any certificate will
 * do, because it is for the public address.
 */
export async function lookAtPort(
  url: string,
  settings: Pick<Settings, 'basePath'>,
  signal: AbortSignal,
): Promise<Look> {
  const plain = await lookAt(url, settings, signal)
  if (!maySpeakTls(plain)) return plain
  const secure = await lookAt(url.replace('http:', 'https:'), settings, signal, { anyCertificate: true })
  return isCountersign(secure) ? secure : plain
}

/** A port that expects TLS closes a connection without it at once, or answers 400. */
function maySpeakTls(look: Look): boolean {
  if (look.kind === 'something else') return look.status === 400
  return look.kind === 'no answer' && look.error.code !== '' && look.error.code !== 'ECONNREFUSED'
}

function judge(url: string, answer: CheckAnswer): Look {
  const { status, headers, json } = answer
  const { location } = headers
  if (status >= 300 && status < 400 && location !== undefined && URL.canParse(location, url)) {
    return { kind: 'redirect', to: new URL(location, url).origin }
  }
  if (json.code === 'ROUTE_NOT_FOUND') return { kind: 'other base path' }
  if (typeof json.code === 'string' && Object.hasOwn(reasons, json.code)) return { kind: 'countersign', answer }
  if (status >= 502 && status <= 504) return { kind: 'gateway error', status }
  return { kind: 'something else', status }
}
