import type { Tracing } from '../../base/tracing.ts'
import { CountersignError, invalidField, refused } from '../../shared/errors.ts'
import { type FormFields, type FormNamed, formFields, type StoredChallenge, signInForm } from './sign-in-form.ts'
import type { SignatureVerifier } from './wallet.ts'
import {
  isSameAddress,
  type Proof,
  type ProvenIdentity,
  type RemoteChecks,
  type WalletAccount,
  type WalletAdapter,
  type WalletNamed,
} from './wallet.ts'

/**
 * Adapters that are tried for a proof that names none. Any other may be expensive to ask, so a proof has to name it.
 */
const triedUnnamed: ReadonlySet<string> = new Set(['nimiq', 'ed25519'])

/** A proof that holds. */
export interface Proven {
  readonly identity: ProvenIdentity
  /** The exact text that the wallet signed. */
  readonly text: string
}

/** Of a call of {@link Prover.prove}. */
export interface ProveOptions {
  /** Origin of the page that called the wallet. */
  readonly pageOrigin: string | undefined
  /** Counts checks that ask a server of a chain. */
  readonly remote?: RemoteChecks | undefined
}

/** Checks wallets' proofs with the configured adapters: for direct sign-in, for orders and for linking alike. */
export class Prover {
  readonly #adapters: readonly WalletAdapter[]
  readonly #verifier: SignatureVerifier
  readonly #tracing: Pick<Tracing, 'step'> | undefined

  /** `adapters` are those that `walletAdapters` made, at least one. Without tracing, nothing is traced. */
  constructor(adapters: readonly WalletAdapter[], verifier: SignatureVerifier, tracing?: Pick<Tracing, 'step'>) {
    this.#adapters = adapters
    this.#verifier = verifier
    this.#tracing = tracing
  }

  /** Refuses an adapter that is not configured with ADAPTER_UNKNOWN. */
  requireConfigured(adapterId: string): void {
    if (this.#adapter(adapterId) === undefined) throw this.#unknownAdapter()
  }

  /**
   * Refuses an address that no wallet of an adapter can have, with INVALID_REQUEST; `field` is its name in the protos.
   * Refuses an adapter that is not configured with ADAPTER_UNKNOWN.
   */
  requireAddress(adapterId: string, address: string, field: string): void {
    this.requireConfigured(adapterId)
    if (this.#adapter(adapterId)?.readAddress(address) !== undefined) return
    throw invalidField(field, `${field} is not an address of ${adapterId}`)
  }

  /**
   * Refuses a key of an adapter whose wallets are known by address only, with INVALID_REQUEST: no wallet could have it.
   * `field` and ADAPTER_UNKNOWN are as for {@link requireAddress}.
   */
  requireKeys(adapterId: string, field: string): void {
    this.requireConfigured(adapterId)
    if (this.#adapter(adapterId)?.byAddressOnly !== true) return
    throw invalidField(field, `${field}: wallets of ${adapterId} are known by address only`)
  }

  /** Whether an address is that of a proven wallet. */
  isAddressOf(identity: ProvenIdentity, address: string): boolean {
    const adapter = this.#adapter(identity.adapterId)
    return adapter !== undefined && isSameAddress(adapter, address, identity.address)
  }

  /**
   * The text that a wallet is asked to sign over a challenge, on a page of `pageOrigin`; the plain text if no adapter
   * is named. ADAPTER_UNKNOWN, or INVALID_REQUEST for an account that no wallet of the adapter can have.
   */
  textFor(challenge: StoredChallenge, { adapterId, ...account }: WalletNamed, pageOrigin: string | undefined): string {
    if (adapterId === undefined) return challenge.message
    this.requireConfigured(adapterId)
    return textOf(this.#adapter(adapterId) as WalletAdapter, challenge, { account, pageOrigin })
  }

  /**
   * The account of a nonce whose form the caller writes, as far as it is named. ADAPTER_UNKNOWN, or INVALID_REQUEST if
   * the adapter has no such form, or for an account that no wallet of the adapter can have.
   */
  namedForForm({ adapterId, ...account }: WalletNamed): FormNamed {
    if (adapterId !== undefined) this.requireConfigured(adapterId)
    const formAccount = adapterId === undefined ? undefined : this.#adapter(adapterId)?.formAccount
    if (adapterId === undefined || formAccount === undefined) {
      throw invalidField('adapter_id', 'adapter_id must name the wallet of the form: ethereum or solana')
    }
    return { adapterId, ...formAccount(account) }
  }

  /**
   * The form of a nonce, for the caller to write on a page of `pageOrigin`, and its text, which is empty unless the
   * whole account is named.
   */
  formFor(
    challenge: StoredChallenge,
    named: FormNamed,
    pageOrigin: string | undefined,
  ): { readonly form: FormFields; readonly message: string } {
    const { adapterId: _, ...account } = named
    const isWhole = account.address !== undefined && account.chainId !== undefined
    return {
      form: formFields(signInForm(challenge, pageOrigin ?? challenge.origin), account),
      message: isWhole ? this.textFor(challenge, named, pageOrigin) : '',
    }
  }

  /**
   * Checks that a proof over a challenge holds, and returns the identity it proves. The text is made from what the
   * service stored, the origin of the page that called the wallet, and the account that the proof names, which the
   * adapter then checks.
   *
   * Rejects with a {@link CountersignError}: INVALID_REQUEST for a key, signature or address that is malformed,
   * ADAPTER_UNKNOWN if the adapter is not configured, or none is named and none can be tried, SIGNATURE_INVALID if the
   * signature holds under none of those tried, ADDRESS_MISMATCH if it holds and the address is another wallet's, or if
   * the nonce was asked for with another wallet;
   * CONTRACT_WALLET_NEEDS_RPC, EVM_RPC_UNAVAILABLE and, by `remote`, RATE_LIMITED for a contract wallet. A nonce is
   * good for one proof, so it needs no `remote`.
   */
  async prove(challenge: StoredChallenge, proof: Proof, { pageOrigin, remote }: ProveOptions): Promise<Proven> {
    if (challenge.named !== undefined) this.#requireNamed(challenge.named, proof)
    for (const adapter of this.#candidates(proof.adapterId)) {
      const text = textOf(adapter, challenge, { account: proof, pageOrigin })
      const verify = () => adapter.verify(text, proof, this.#verifier, remote)
      const step = { kind: 'verification', adapterId: adapter.id } as const
      const proven = await (this.#tracing === undefined ? verify() : this.#tracing.step(step, verify))
      if (proven === undefined) continue
      const { adapterId, subject, publicKeyHex, address } = proven
      // An adapter speaks for its own wallets only. A copy of another one under a new id would make that one's
      // identities.
      if (adapterId !== adapter.id)
        throw new TypeError(`adapter "${adapter.id}" returned an identity of "${adapterId}"`)
      requireAskedFor(adapter, { askedFor: challenge.askedFor, proof, address })
      return { identity: { adapterId, subject, publicKeyHex, address }, text }
    }
    throw refused('SIGNATURE_INVALID')
  }

  /**
   * Refuses a proof that does not name a whole account, with INVALID_REQUEST, or names another one than the request for
   * the form did, with ADDRESS_MISMATCH. Each line of the text then comes from what was stored or from this account.
   */
  #requireNamed(named: FormNamed, proof: Proof): void {
    if (proof.adapterId !== named.adapterId) throw otherNamed('adapter_id')
    if (proof.address === undefined) throw invalidField('address', 'address must name the account that signed')
    if (proof.chainId === undefined) throw invalidField('chain_id', 'chain_id must name the chain of the account')
    const account = this.#adapter(named.adapterId)?.formAccount?.(proof)
    if (account?.address !== (named.address ?? account?.address)) throw otherNamed('address')
    if (account?.chainId !== (named.chainId ?? account?.chainId)) throw otherNamed('chain_id')
  }

  #adapter(adapterId: string): WalletAdapter | undefined {
    return this.#adapters.find(({ id }) => id === adapterId)
  }

  #candidates(adapterId: string | undefined): readonly WalletAdapter[] {
    const candidates = this.#adapters.filter(({ id }) =>
      adapterId === undefined ? triedUnnamed.has(id) : id === adapterId,
    )
    if (candidates.length === 0) throw this.#unknownAdapter()
    return candidates
  }

  #unknownAdapter(): CountersignError {
    const adapters = this.#adapters.map(({ id }) => id).join(', ')
    return refused('ADAPTER_UNKNOWN', { metadata: { adapters } })
  }
}

/**
 * Refuses a proof that holds, and is of another wallet than its nonce was asked for with, with ADDRESS_MISMATCH.
 * `address` is the proven one. A contract wallet's has its chain in front; the adapter has checked that it is that of
 * the proof's own address.
 */
function requireAskedFor(
  adapter: WalletAdapter,
  {
    askedFor = {},
    proof,
    address: proven,
  }: { readonly askedFor: WalletNamed | undefined; readonly proof: Proof; readonly address: string },
): void {
  const { adapterId = adapter.id, address, chainId = proof.chainId } = askedFor
  if (adapterId !== adapter.id) throw otherNamed('adapter_id')
  if (address !== undefined && !isSameAddress(adapter, address, proof.address ?? proven)) throw otherNamed('address')
  if (chainId !== proof.chainId) throw otherNamed('chain_id')
}

function otherNamed(field: 'adapter_id' | 'address' | 'chain_id'): CountersignError {
  const text = `The nonce was asked for with another ${field} than the proof's; ask for a new one`
  return new CountersignError('ADDRESS_MISMATCH', text, { metadata: { field } })
}

function textOf(
  { signInText, accountId }: WalletAdapter,
  challenge: StoredChallenge,
  { account, pageOrigin }: { readonly account: WalletAccount; readonly pageOrigin: string | undefined },
): string {
  const { address, chainId, publicKeyHex } = account
  const { action, message, origin } = challenge
  if (action !== 'order.approve') {
    return signInText === undefined
      ? message
      : signInText(signInForm(challenge, pageOrigin ?? origin), { address, chainId, publicKeyHex })
  }
  if (accountId === undefined || address === undefined || chainId === undefined) return message
  return `${message}\nAccount: ${accountId(address, chainId)}`
}
