/** A wallet's proof over a text, as a caller sends it. Hex in either case. Every byte may be an attacker's choice. */
export interface Proof {
  /** Empty if the adapter does not need it. */
  readonly publicKeyHex: string
  readonly signatureHex: string
  /** If present, it must belong to the wallet that signed. */
  readonly address?: string | undefined
  /** The adapter that judges the proof. Without it, nimiq and ed25519 are tried as far as they are configured. */
  readonly adapterId?: string | undefined
  /** Chain of the account, as the adapter's sign-in form writes it: "1" for ethereum, "mainnet" for solana. */
  readonly chainId?: string | undefined
}

/**
 * A wallet whose control was proven. `adapterId` and `subject` are the identity: users, accounts and retries go by the two, and
 * the same key under another adapter is another identity. A proof says who holds the wallet, never what the holder may do.
 *
 * Compare `adapterId` and `address`, or `adapterId` and `subject`, with those of a wallet that you know; never the key alone.
 */
export interface ProvenIdentity {
  readonly adapterId: string
  /**
   * What the adapter goes by to tell one wallet from another, 1 to 200 characters, such as the public key in lower-case hex.
   * An adapter never changes how it is made. Computers are remembered only for wallets whose subject is `publicKeyHex` or, if that
   * is empty, the address in lower case, because a session names its wallet by these.
   */
  readonly subject: string
  /** Lower-case hex. Empty if the adapter knows wallets by their address only. */
  readonly publicKeyHex: string
  /** Canonical form. */
  readonly address: string
}

/** What tells one wallet from all others. */
export type WalletIdentity = Pick<ProvenIdentity, 'adapterId' | 'subject'>

/**
 * The wallet of a session, which does not keep the subject: with a public key, the subject is the key; without one, the address in
 * lower case. An adapter whose wallets have no key has to make its subjects alike. If an adapter makes them otherwise, no computer
 * is remembered for its wallets, because nobody could find it and forget it.
 */
export function walletOf(session: Pick<ProvenIdentity, 'adapterId' | 'publicKeyHex' | 'address'>): WalletIdentity {
  const { adapterId, publicKeyHex, address } = session
  return { adapterId, subject: publicKeyHex === '' ? address.toLowerCase() : publicKeyHex }
}
