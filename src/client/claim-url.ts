import { CountersignClientError } from './errors.ts'

/** The contents of a claim URL. */
export interface Claim {
  readonly orderId: string
  /** Secret. */
  readonly claimToken: string
}

/**
 * Reads a claim URL. The order's identifier is the last segment of its path, the claim token is `token` in its fragment.
 * Throws CLAIM_URL_INVALID for any other text. A service with another `claimUrlTemplate` needs its own reader.
 */
export function parseClaimUrl(url: string | URL): Claim {
  const text = String(url)
  // No base: a claim URL is read from a QR code, where a relative one means nothing.
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  const orderId = /\/([A-Za-z0-9_-]{1,64})\/?$/.exec(parsed?.pathname ?? '')?.[1]
  const claimToken = new URLSearchParams(parsed?.hash.slice(1)).get('token')
  if (orderId === undefined || claimToken === null || !/^[A-Za-z0-9_.~-]{1,512}$/.test(claimToken)) {
    // The message leaves the text out, because it may hold a token.
    throw new CountersignClientError('CLAIM_URL_INVALID', 'This is not the claim URL of an order')
  }
  return { orderId, claimToken }
}
