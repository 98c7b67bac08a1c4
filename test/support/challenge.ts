import type { StoredChallenge } from '../../src/core/wallet/sign-in-form.ts'

/** A challenge of a sign order with a text, which wallets of most adapters sign as it is. */
export function challengeOf(message: string): StoredChallenge {
  const issuedAt = Date.UTC(2026, 0, 1)
  return {
    action: 'order.approve',
    nonce: Buffer.alloc(32, 7).toString('base64url'),
    origin: 'https://app.example',
    issuedAt,
    expiresAt: issuedAt + 120_000,
    message,
    orderId: 'order-1',
  }
}
