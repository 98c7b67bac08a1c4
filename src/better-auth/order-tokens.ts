import type { AuthContext } from '@better-auth/core'
import { symmetricDecrypt, symmetricEncrypt } from 'better-auth/crypto'

/**
 * Time for which an order's token is kept, in ms. Longer than an order is remembered after it was finalized, and can be taken
 * back, which is ten minutes.
 */
const keptMs = 20 * 60_000

/**
 * The tokens of orders' sessions where Better Auth has the sessions in secondary storage alone. There, a session is found by its
 * token only: Better Auth's list of a user's sessions can lose one if two instances change it at once. Kept as Better Auth's
 * verification values, encrypted.
 */
export class OrderTokens {
  readonly #context: AuthContext

  constructor(context: AuthContext) {
    this.#context = context
  }

  /** Keeps the token of an order's session. To be called before the session is made. */
  async keep(orderId: string, token: string): Promise<void> {
    const { internalAdapter, secretConfig } = this.#context
    await internalAdapter.createVerificationValue({
      identifier: identifierOf(orderId),
      value: await symmetricEncrypt({ key: secretConfig, data: token }),
      expiresAt: new Date(Date.now() + keptMs),
    })
  }

  /** The token of an order's session, if one was kept. */
  async find(orderId: string): Promise<string[]> {
    const { internalAdapter, secretConfig } = this.#context
    const kept = await internalAdapter.findVerificationValue(identifierOf(orderId))
    return kept === null ? [] : [await symmetricDecrypt({ key: secretConfig, data: kept.value })]
  }
}

function identifierOf(orderId: string): string {
  return `countersign:order-session:${orderId}`
}
