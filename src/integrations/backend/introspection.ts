import { Slots } from '../../base/timing/slots.ts'
import { parseObject } from '../../shared/json-object.ts'
import { readSession, type Session, SessionCheckError } from './session.ts'

/** A live session, with the time of the service that answered, epoch milliseconds. */
export interface LiveSession {
  readonly session: Session
  readonly now: number
}

/** A token or, of form `cookie`, the value of the session's cookie. */
export interface SessionText {
  readonly text: string
  readonly form: 'token' | 'cookie'
}

/**
 * Asks the service about a token or cookie. Resolves with `undefined` if it is not valid, and rejects if the service
 * cannot answer.
 */
export type Introspect = (credential: SessionText, signal: AbortSignal) => Promise<LiveSession | undefined>

/** A service in this process, as `createCountersign` makes it. */
export interface SessionSource {
  introspect(token: string, form?: 'token' | 'cookie'): Promise<Session | undefined>
  /** Address that people reach the service by. */
  readonly publicUrl: string
}

/** A function that makes HTTP requests, as `fetch` does. */
export type Fetcher = (url: string, init: RequestInit) => Promise<Response>

/** Older versions of workerd have no cache and refuse the option. */
const uncached: RequestInit = 'cache' in Request.prototype ? { cache: 'no-store' } : {}

const path = '/countersign.v1.SessionService/IntrospectSession'

/**
 * Time in milliseconds by which the header `Date` may be behind: it has whole seconds, and Node.js takes the next one
 * when its event loop gets to it.
 */
const maxDateLagMs = 2000

/**
 * Most calls that are under way at once. Without a ceiling, a service that hangs would be sent connections without end.
 */
const maxCalls = 100

/** Asks a service in this process. */
export function localIntrospection(service: SessionSource): Introspect {
  return async ({ text, form }) => {
    let found: Session | undefined
    try {
      found = await service.introspect(text, form)
    } catch (cause) {
      throw unavailable('The session cannot be checked at the moment', { cause, retryAfterMs: retryAfterOf(cause) })
    }
    return found === undefined ? undefined : { session: sessionIn(found), now: Date.now() }
  }
}

/** Asks a service over HTTP: SessionService.IntrospectSession in Connect's JSON. */
export function remoteIntrospection(url: string, fetcher: Fetcher): Introspect {
  const endpoint = url.replace(/\/+$/, '') + path
  const slots = new Slots(maxCalls)
  return ({ text, form }, signal) =>
    slots.run(async () => {
      let response: Response
      let answer: string
      try {
        response = await fetcher(endpoint, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'connect-protocol-version': '1' },
          body: JSON.stringify({ [form]: text }),
          // A token goes to no other address, and frameworks that keep answers of fetch keep none of these.
          redirect: 'manual',
          ...uncached,
          signal,
        })
        answer = await response.text()
      } catch (cause) {
        throw unavailable('The service did not answer', { cause })
      }
      return read(response, answer)
    }, signal)
}

function read({ status, headers }: Response, text: string): LiveSession | undefined {
  if (status >= 500 || status === 429) {
    // Of its two forms (RFC 9110, 10.2.3), the service writes whole seconds.
    const [seconds] = /^\d{1,9}$/.exec(headers.get('retry-after') ?? '') ?? []
    const retryAfterMs = seconds === undefined ? undefined : Number(seconds) * 1000
    throw unavailable(`The service cannot answer at the moment: HTTP ${status}`, { retryAfterMs })
  }
  const isJson = /^application\/json\b/i.test(headers.get('content-type') ?? '')
  const answer = status === 200 && isJson ? parseObject(text) : undefined
  if (answer === undefined) throw unexpected(`HTTP ${status}`)
  // JSON of protobuf messages leaves out what is false.
  const { active = false, session, groups } = answer
  if (active === false) return undefined
  if (active !== true || typeof session !== 'object' || session === null) throw unexpected('no session')
  const date = Date.parse(headers.get('date') ?? '')
  const now = Math.max(Date.now(), Number.isNaN(date) ? 0 : date + maxDateLagMs)
  return { session: sessionIn({ ...session, groups }), now }
}

function sessionIn(fields: object): Session {
  const session = readSession(fields as Record<string, unknown>)
  if (session === undefined) throw unexpected('a malformed session')
  return session
}

function retryAfterOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('retryAfterMs' in error)) return undefined
  return typeof error.retryAfterMs === 'number' ? error.retryAfterMs : undefined
}

function unavailable(
  message: string,
  options: { cause?: unknown; retryAfterMs?: number | undefined },
): SessionCheckError {
  return new SessionCheckError('SERVICE_UNAVAILABLE', message, options)
}

function unexpected(what: string): SessionCheckError {
  return new SessionCheckError('UNEXPECTED_ANSWER', `Not the answer of a Countersign service: ${what}; check url`)
}
