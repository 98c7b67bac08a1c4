/** How wallets of a kind sign: see `SignatureKind.curve`. */
export type SignatureCurve = 'ed25519' | 'secp256k1-recovered'

/** Checks raw Ed25519 signatures (RFC 8032). */
export interface SignatureVerifier {
  /** `portable` runs anywhere; `native` needs node:crypto. */
  readonly kind: 'portable' | 'native'

  /**
   * Whether `signature` (64 bytes) is a strict signature of `message` by `publicKey` (32 bytes). Never throws: what is
   * malformed, non-canonical or of small order is false.
   */
  verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
}

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
 * A wallet whose control was proven. `adapterId` and `subject` are the identity: users, accounts and retries use the
 * two, and the same key under another adapter is another identity. A proof says who holds the wallet, never what the
 * holder may do.
 *
 * Compare `adapterId` and `address`, or `adapterId` and `subject`, with those of a wallet that you know; never the key
 * alone.
 */
export interface ProvenIdentity {
  readonly adapterId: string
  /**
   * What distinguishes the adapter's wallets, 1 to 200 characters, such as the public key in lower-case
   * hex. An adapter never changes how it is made. With a host whose sessions do not keep it, computers are remembered
   * only for wallets whose subject is `publicKeyHex` or, if that is empty, the address in lower case.
   */
  readonly subject: string
  /** Lower-case hex. Empty if the adapter knows wallets by their address only. */
  readonly publicKeyHex: string
  /** Canonical form. */
  readonly address: string
}

/** What distinguishes one wallet from all others. */
export type WalletIdentity = Pick<ProvenIdentity, 'adapterId' | 'subject'>

/**
 * The wallet of a session. If the session's host keeps no subject, it is the public key or, without a key, the address
 * in lower case, as most adapters make it.
 */
export function walletOf(session: Omit<ProvenIdentity, 'subject'> & { readonly subject?: string }): WalletIdentity {
  const { adapterId, publicKeyHex, address } = session
  const { subject = publicKeyHex === '' ? address.toLowerCase() : publicKeyHex } = session
  return { adapterId, subject }
}

/**
 * The account that a wallet signs with, as a caller names it. Every text may be an attacker's choice. The key is there
 * only once there is a proof.
 */
export interface WalletAccount extends Pick<Proof, 'address' | 'chainId'> {
  readonly publicKeyHex?: string | undefined
}

/** The wallet that is going to sign, as a caller names it. */
export interface WalletNamed extends WalletAccount {
  readonly adapterId?: string | undefined
}

/**
 * Fields of a wallet's sign-in form other than the account: of EIP-4361 and Sign-In With Solana. Times are epoch
 * milliseconds.
 */
export interface SignInForm {
  /** Host, with a port if it is not the default, of the page that calls the wallet. */
  readonly domain: string
  /** Origin of that page. */
  readonly uri: string
  /** What the signature is for, in ASCII letters, spaces and full stops. */
  readonly statement: string
  /** 64 hex digits. */
  readonly nonce: string
  readonly issuedAt: number
  readonly expiresAt: number
  /**
   * URIs. The first one binds the challenge's plain text, by its hash, and so everything that the form does not say.
   */
  readonly resources: readonly string[]
}

/**
 * Bounds what an adapter asks of other servers. Callers of the service decide how often, so each question has to go
 * through here: an order has three that were answered. It is absent for sign-ins, whose nonce is valid for one proof.
 *
 * Each question needs a time limit: after 30 s the service ends the call. A server that does not answer is
 * HOST_UNAVAILABLE, never an invalid signature.
 */
export interface RemoteChecks {
  /**
   * Asks, and returns the answer. Rejects with RATE_LIMITED if too many were asked for this challenge. If `ask`
   * rejects, nothing was answered, and it does not count.
   */
  ask<Answer>(ask: () => Promise<Answer>): Promise<Answer>
}

/** Warns the operator of something that does not stop the start. `fields` are logged with the text: no secrets. */
export type StartWarning = (text: string, fields?: Readonly<Record<string, string>>) => void

/**
 * What Countersign knows of a kind of wallet: how to check that a signature over a text proves control of it, and how
 * to compare its addresses. `signatureAdapter` makes one from data for wallets whose address follows from their key.
 */
export interface WalletAdapter {
  /** Short stable name, `[a-z0-9-]`, at most 32 characters. It is a part of every identity, so it can never change. */
  readonly id: string
  /** The name people know. */
  readonly displayName: string

  /**
   * Whether wallets of this kind are known by their address only, so that no identity of theirs has a public key.
   * Default: no. An order cannot ask for such a wallet by its key.
   */
  readonly byAddressOnly?: boolean

  /**
   * The curve of the wallets' keys, with {@link envelope}. Two adapters of one curve whose wallets sign the same bytes
   * for a text are warned of at the start, because a wallet that can use both is two users.
   */
  readonly curve?: SignatureCurve

  /** The bytes or digest that wallets sign for a text. Used at the start only, to compare adapters of one curve. */
  envelope?(text: string): Uint8Array

  /**
   * Checks, before a service starts, what the adapter needs: its configuration, and servers that it asks. Called once
   * for each service and each of Better Auth's plugins that has the adapter, which wait for it for at most 10 seconds;
   * after that they start with a warning.
   *
   * A rejection stops the start: a `TypeError` of one line that says what to change. A server that is away
   * is no reason for that, because it can come back: `warn` reports it. Default: there is nothing to check.
   */
  checkAtStart?(warn: StartWarning): Promise<void>

  /**
   * Judges a whole proof: key, signature and address. Returns the identity it proves, with this adapter's id, or
   * `undefined` if the signature does not hold.
   *
   * `message` is the exact text that the service stored and the wallet was asked to sign, never text that the caller
   * sent. `ed25519` is the strict verifier that the service uses, for adapters that need one.
   *
   * `remote` is for adapters that ask other servers, such as an RPC of the wallet's chain. Without it, nothing bounds
   * them.
   *
   * Throws or rejects with a `CountersignError`: INVALID_REQUEST for a key, signature or address that this kind of
   * wallet cannot have, ADDRESS_MISMATCH if the signature holds and the address is another wallet's.
   */
  verify(
    message: string,
    proof: Proof,
    ed25519: SignatureVerifier,
    remote?: RemoteChecks,
  ): ProvenIdentity | undefined | Promise<ProvenIdentity | undefined>

  /**
   * The text in which wallets of this kind sign in, if they have a form for that which names the page, so that they can
   * warn of a foreign one. It has to contain everything in `form`. Sign-ins, login orders and links are then over this
   * text only; without the function, they are over the service's plain text, as all sign orders are.
   *
   * The text is made again for the proof: the same arguments always give the same text, without clock or randomness.
   * The account is the caller's. Malformed values are refused before they become a line of the text. Throws a
   * `CountersignError` of INVALID_REQUEST for an account that no such wallet can have.
   */
  readonly signInText?: (form: SignInForm, account: WalletAccount) => string

  /**
   * The parts of an account that are named, each as `signInText` writes it. For adapters whose form is that of EIP-4361
   * or Sign-In With Solana: callers can then write the text themselves (`form` of `IssueNonceRequest`). Throws a
   * `CountersignError` of INVALID_REQUEST for a part that no such wallet can have.
   */
  readonly formAccount?: (account: WalletAccount) => { readonly address?: string; readonly chainId?: string }

  /**
   * The CAIP-10 identifier of an account whose address and chain are both named: the last line of a sign order's text.
   * Without the function, there is no such line. Throws a `CountersignError` of INVALID_REQUEST for an account that no
   * such wallet can have.
   */
  readonly accountId?: (address: string, chainId: string) => string

  /**
   * The canonical form of an address that people write in any grouping and case: the one that identities have.
   * `undefined` for text that no wallet of this kind can have as its address, such as one with wrong check digits. Two
   * texts name one address if both have the same canonical form. Finds the wallets of the people file, too.
   */
  readAddress(text: string): string | undefined
}

const idForm = /^[a-z0-9][a-z0-9-]{0,31}$/

/** Throws a `TypeError` unless the value can be a {@link WalletAdapter.id}. */
export function requireAdapterId(id: unknown): void {
  if (typeof id === 'string' && idForm.test(id)) return
  throw new TypeError(`an adapter's id must match ${idForm.source}, which ${JSON.stringify(id)} does not`)
}

/** Whether two texts name one address of an adapter. Text that is no address equals nothing, itself included. */
export function isSameAddress(adapter: Pick<WalletAdapter, 'readAddress'>, a: string, b: string): boolean {
  const address = adapter.readAddress(a)
  return address !== undefined && address === adapter.readAddress(b)
}
