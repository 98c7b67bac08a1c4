import type { RequestContext } from '../request.ts'

/** What a handler gets besides the request's message, whichever skin brought it. */
export interface Call {
  readonly request: RequestContext
  /** Headers to send with the response. */
  readonly responseHeaders: Headers
  /** Aborts when the caller has gone or the call is over. */
  readonly signal: AbortSignal
}

/** Has the response set cookies. */
export function setCookies(call: Call, cookies: readonly string[]): void {
  for (const cookie of cookies) call.responseHeaders.append('set-cookie', cookie)
}

/** Hands a new session's artifacts to the caller: the cookie, and the token for those who read it from a header. */
export function setSession(call: Call, issued: { readonly token: string; readonly cookies: readonly string[] }): void {
  setCookies(call, issued.cookies)
  call.responseHeaders.set('set-auth-token', issued.token)
}
