/** Longest address, in characters. */
const longest = 200

/**
 * Whether a text is the address of a client's metadata document, which is the client's id (OAuth Client ID Metadata
 * Document). Ids are compared as texts, so an address has one spelling only: that of the URL standard, in https,
 * without a port, credentials, query, fragment, percent-encoding, empty or dot segment, or a dot behind the host.
 */
export function isDocumentAddress(text: string): boolean {
  return isPlain(text) && /^https:\/\/[^/]+(\/[^/]+)+$/.test(text)
}

/** Whether a text is the beginning of such addresses, up to a slash, or one of them. */
export function isDocumentPrefix(text: string): boolean {
  return isDocumentAddress(text) || (isPlain(text) && /^https:\/\/[^/]+\/([^/]+\/)*$/.test(text))
}

/** Whether an address starts with, or equals, one of the prefixes. `*` stands for all addresses. */
export function hasPrefix(address: string, prefixes: readonly string[]): boolean {
  return prefixes.some((each) => each === '*' || each === address || (each.endsWith('/') && address.startsWith(each)))
}

function isPlain(text: string): boolean {
  const url = text.length <= longest ? URL.parse(text) : null
  // Of an empty query or fragment, a URL keeps the mark only. Its dot segments are gone.
  if (url?.href !== text || /[?#%]/.test(text)) return false
  const { port, username, password, hostname } = url
  return port === '' && username === '' && password === '' && !hostname.endsWith('.')
}
