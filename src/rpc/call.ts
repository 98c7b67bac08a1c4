import type { RequestContext } from '../base/request.ts'

/** The protocol over which a call came. */
export type Protocol = 'connect' | 'grpc' | 'grpc-web' | 'rest' | 'better-auth'

/** The headers that a handler can send with its response. */
export interface ResponseHeaders {
  'set-cookie'?: string[]
  'set-auth-token'?: string
}

/** What a handler gets in addition to the request's message, over whatever protocol it came. */
export interface Call {
  readonly protocol: Protocol
  readonly request: RequestContext
  /** Headers to send with the response if the call succeeds. None of them is sent if it fails. */
  readonly responseHeaders: ResponseHeaders
  /** Aborts if the caller leaves, or once the call is over. */
  readonly signal: AbortSignal
  /** Time in ms for which the caller waits for the answer. Absent if the caller set no deadline. */
  readonly timeoutMs?: number | undefined
}

/** Sets cookies with the response. */
export function setCookies(call: Call, cookies: readonly string[]): void {
  if (cookies.length > 0)
    call.responseHeaders['set-cookie'] = [...(call.responseHeaders['set-cookie'] ?? []), ...cookies]
}

/** Sets a new session's cookie and its token, as the header `set-auth-token`, with the response. */
export function setSession(call: Call, issued: { readonly token: string; readonly cookies: readonly string[] }): void {
  setCookies(call, issued.cookies)
  call.responseHeaders['set-auth-token'] = issued.token
}
