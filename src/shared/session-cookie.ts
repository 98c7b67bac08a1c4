import { cookieName } from './header-text.ts'

/** Name of the session's cookie, whose value is no bearer token. `secure`: people reach the service by https. */
export function sessionCookieName(secure: boolean): string {
  return cookieName('countersign_session', secure)
}
