/** Longest `return_to`, in characters (code points), as the protos count them. */
const maxLength = 2048

/**
 * One leading slash, then no backslash and nothing that is not plain text on one line (control and text-direction
 * characters, line separators, lone surrogates): such a path always stays on the origin it is on.
 */
const plainPath = /^\/(?!\/)[^\\\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]*$/u

/**
 * Whether a text is a path that stays on its origin, for every parser: it has at most 2,048 characters, begins with one
 * slash, and has neither a backslash nor control characters, which URL parsers drop. The same holds when its dots are
 * resolved and its percent-encoding is undone, however often.
 */
export function isReturnPath(text: string): boolean {
  return isShort(text) && readings(text).every(staysOnOrigin)
}

function isShort(text: string): boolean {
  // A code point has at most two of the units that `length` counts.
  return text.length <= maxLength || (text.length <= 2 * maxLength && [...text].length <= maxLength)
}

function staysOnOrigin(path: string): boolean {
  // The parser resolves the dots; what comes out is a path that others may take for the whole address.
  return plainPath.test(path) && !new URL(path, 'https://any.invalid').pathname.startsWith('//')
}

/**
 * A path as it stands, then without query and fragment and with the percent-encoding of ASCII undone once, twice, until
 * none is left.
 */
function readings(text: string): string[] {
  const texts = [text]
  let path = text.replace(/[?#].*$/s, '')
  for (;;) {
    // By hand: decodeURIComponent refuses a stray % that laxer readers pass over, and the rest would go unseen.
    const decoded = path.replace(/%[0-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    if (decoded === path) return texts
    texts.push(decoded)
    path = decoded
  }
}

/**
 * The address to which a sign-in page leads after the sign-in: its parameter `returnTo` if that is a path that stays on
 * the page's origin and is not the page's own, else the root.
 */
export function returnTarget(page: URL): URL {
  const root = new URL('/', page)
  const returnTo = page.searchParams.get('returnTo')
  if (returnTo === null || !isReturnPath(returnTo)) return root
  const target = new URL(returnTo, page)
  return target.origin === page.origin && target.pathname !== page.pathname ? target : root
}
