import { createHash } from 'node:crypto'
import { KeyPair, PrivateKey } from '@nimiq/core'

/** A wallet made by Nimiq's own library. */
export interface TestWallet {
  readonly publicKeyHex: string
  /** Grouped form. */
  readonly address: string
  /** Signs as Nimiq wallets do, with Nimiq's own code. */
  sign(message: string): string
}

export function makeWallet(): TestWallet {
  const pair = KeyPair.derive(PrivateKey.generate())
  return {
    publicKeyHex: pair.publicKey.toHex(),
    address: pair.toAddress().toUserFriendlyAddress(),
    sign(message) {
      const body = Buffer.from(message, 'utf8')
      const framed = Buffer.concat([Buffer.from(`\x16Nimiq Signed Message:\n${body.length}`, 'latin1'), body])
      return pair.sign(createHash('sha256').update(framed).digest()).toHex()
    },
  }
}

/** The proof of a wallet over a challenge. */
export function proofOf(
  wallet: TestWallet,
  challenge: { readonly nonceId: string; readonly message: string },
): { nonceId: string; publicKeyHex: string; signatureHex: string } {
  return {
    nonceId: challenge.nonceId,
    publicKeyHex: wallet.publicKeyHex,
    signatureHex: wallet.sign(challenge.message),
  }
}
