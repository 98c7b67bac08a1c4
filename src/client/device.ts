/**
 * Whether this is a phone or a tablet: there, wallets are apps with a browser of their own, and windows cover the page. By the
 * user agent, which can be wrong; iPads call themselves Macs.
 */
export function isPhone(): boolean {
  const { userAgent = '', maxTouchPoints = 0 } = globalThis.navigator ?? {}
  return /Android|iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1)
}
