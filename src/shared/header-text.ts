/**
 * How the values of headers are read, wherever they are read: in the service, its pages, guards of backends and
 * clients.
 */

/**
 * Text without the white space around it that HTTP allows: spaces and tabs (RFC 9110, 5.6.3). JavaScript's `trim` takes
 * other characters away too, such as the no-break space, which browsers keep in the name of a cookie.
 */
export function withoutOws(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isOws(text[start])) start++
  while (end > start && isOws(text[end - 1])) end--
  return text.slice(start, end)
}

function isOws(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}

/**
 * The value of a cookie in a Cookie header, as it is written; `undefined` if there is none or it is empty. A name ends
 * at the first `=`, and nothing in it is skipped (RFC 6265, 4.2.1): a browser that keeps a neighbouring host from
 * setting a cookie by the prefix of its name has compared the same characters. With several cookies of the name, none
 * counts: a browser does not say which of them the service set, and the others can be from a neighbouring host or
 * another path.
 */
export function cookieValue(header: string | undefined, name: string): string | undefined {
  const beginning = `${name}=`
  const [value, ...others] = (header ?? '')
    .split(';')
    .map(withoutOws)
    .filter((pair) => pair.startsWith(beginning))
    .map((pair) => pair.slice(beginning.length))
  return others.length === 0 && value !== '' ? value : undefined
}

/**
 * The values of the cookies in a Cookie header whose names begin so, by name, each as {@link cookieValue} has it. Of
 * more than `most` names those that come first count. One pass: the header is read once, however many there are.
 */
export function cookiesBeginning(header: string | undefined, beginning: string, most: number): Map<string, string> {
  const values = new Map<string, string>()
  for (const pair of (header ?? '').split(';').map(withoutOws)) {
    const end = pair.indexOf('=')
    if (end === -1 || !pair.startsWith(beginning)) continue
    const name = pair.slice(0, end)
    if (values.has(name)) values.set(name, '')
    else if (values.size < most) values.set(name, pair.slice(end + 1))
  }
  for (const [name, value] of values) if (value === '') values.delete(name)
  return values
}

/**
 * The token of an Authorization header of the scheme Bearer (RFC 6750, 2.1), which is visible ASCII; `undefined` for
 * any other.
 */
export function bearerTokenOf(header: string | undefined): string | undefined {
  return /^Bearer +([!-~]+)[ \t]*$/i.exec(header ?? '')?.[1]
}

/** Name of a cookie. With https it has a prefix, so that no other host can set the cookie (RFC 6265bis, 4.1.3.2). */
export function cookieName(name: string, isSecure: boolean): string {
  return isSecure ? `${securePrefix}${name}` : name
}

/** Name of the session's cookie, whose value is no bearer token. `secure`: people reach the service by https. */
export function sessionCookieName(secure: boolean): string {
  return cookieName('countersign_session', secure)
}

/** The Set-Cookie header with which a browser keeps a cookie for so many seconds; with 0, it forgets the cookie. */
export function setCookie(name: string, value: string, seconds: number): string {
  const secure = name.startsWith(securePrefix) ? ' Secure;' : ''
  return `${name}=${value}; Max-Age=${seconds}; Path=/; HttpOnly;${secure} SameSite=Lax`
}

const securePrefix = '__Host-'
