/** Throws a `TypeError` unless this is the http or https address of a service, or empty for the page's own origin. */
export function requireHttp(baseUrl: string): void {
  if (baseUrl === '') return
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.search !== '' ||
    url.hash !== '' ||
    url.username !== ''
  ) {
    throw new TypeError(`baseUrl must be an http or https address such as https://auth.example, not ${baseUrl}`)
  }
}
