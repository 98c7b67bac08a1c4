/** Characters of a URI (RFC 3986, 2), in the form `scheme://authority…`. No browser's repairs are wanted here. */
const uriShape = /^[a-z][a-z\d+.-]*:\/\/(?!\/)(?:[\w.~:/?[\]@!$&'()*+,;=-]|%[\da-f]{2})+$/i

/**
 * The one form of all spellings of an address that name the same by RFC 3986, 6.2.2 and 6.2.3: case of scheme, host and
 * escapes, escapes of characters that need none, dot segments, the scheme's own port, and the path `/`. `undefined` for
 * what is no such address.
 */
export function canonicalAddress(text: string): string | undefined {
  if (!uriShape.test(text)) return undefined
  return URL.parse(text)?.href.replace(/%[\da-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : escaped.toUpperCase()
  })
}
