import { CountersignClientError } from './errors.ts'

/** What a claim URL says. */
export interface Claim {
  readonly orderId: string
  /** Secret. */
  readonly claimToken: string
}

/**
 * Reads a claim URL: the order's identifier is the last part of its path, the claim token is `token` in its fragment. Any
 * other text is CLAIM_URL_INVALID. Services with a claimUrlTemplate of another form have their own reader.
 */
export function parseClaimUrl(url: string | URL): Claim {
  const text = String(url)
  // No base: a claim URL is read from a QR code, where a relative one means nothing.
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  const orderId = /\/([A-Za-z0-9_-]{1,64})\/?$/.exec(parsed?.pathname ?? '')?.[1]
  const claimToken = new URLSearchParams(parsed?.hash.slice(1)).get('token')
  if (orderId === undefined || claimToken === null || !/^[A-Za-z0-9_.~-]{1,512}$/.test(claimToken)) {
    // Without the text, which can hold a token.
    throw new CountersignClientError('CLAIM_URL_INVALID', 'This is not the claim URL of an order')
  }
  return { orderId, claimToken }
}
