import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { version } from '../../version.ts'
import { messageOf } from './words.ts'

/** Longest time in milliseconds for one request. */
const limitMs = 3000

/** Most bytes of an answer that are read. */
const maxBytes = 64 * 1024

/** The answer to a request. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The body if it is a JSON object, otherwise an empty one. */
  readonly json: Readonly<Record<string, unknown>>
  /** Time in epoch milliseconds in the middle of the request and the beginning of the answer, on this machine's clock. */
  readonly at: number
}

/** A request that was not answered. The message is one line that says why, without the address. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
  /** What the system calls it, such as ECONNREFUSED; empty if it does not say. */
  readonly code: string

  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

/** What is asked. */
export interface Question {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, by POST; without it, the request is a GET. */
  readonly body?: object
  /** Whether any certificate will do, as on this machine, by an address that the certificate is not for. Default false. */
  readonly anyCertificate?: boolean
}

/**
 * Sends a request, and follows no redirect.
 *
 * @throws NoAnswerError if there is no answer within 3 seconds.
 */
export async function ask(url: string, question: Question, signal: AbortSignal): Promise<Answer> {
  const startedAt = Date.now()
  try {
    const response = await send(url, question, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]))
    const at = (startedAt + Date.now()) / 2
    return { status: response.statusCode ?? 0, headers: response.headers, json: await jsonOf(response), at }
  } catch (error) {
    throw noAnswer(error)
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

async function jsonOf(response: IncomingMessage): Promise<Answer['json']> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes) return {}
    chunks.push(chunk)
  }
  try {
    const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return typeof parsed === 'object' && parsed !== null ? (parsed as Answer['json']) : {}
  } catch {
    return {}
  }
}

function noAnswer(error: unknown): NoAnswerError {
  if (error instanceof Error && error.name === 'AbortError') {
    return new NoAnswerError(`no answer within ${limitMs / 1000} seconds`, '')
  }
  // Of several addresses that were tried, each has a reason of its own.
  const first: unknown = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error
  return new NoAnswerError(messageOf(first), first instanceof Error && 'code' in first ? String(first.code) : '')
}
