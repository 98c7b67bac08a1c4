/** Claim URLs as the service writes them by default: short, for a QR code that is quick to scan. */
export const defaultClaimUrlTemplate = '{origin}/c/{orderId}#token={claimToken}'

/** What the id of an order looks like: 16 bytes in base64url. */
export const orderIdForm = '[A-Za-z0-9_-]{22}'
