import { given } from '../../shared/defined-fields.ts'
import type { NonceChallenge, SignInForm, SignInResult } from '../../shared/session.ts'
import { signInText } from '../../shared/sign-in-text.ts'
import { CountersignClientError } from './errors.ts'
import { HeldNonce, type SignInCalls } from './sign-in.ts'

/** Adapters of the service whose wallets sign in over a form. */
export type FormAdapterId = 'ethereum' | 'solana'

/** The account that signs. */
export interface FormAccount {
  /** Address as the wallet has it. */
  readonly address: string
  /** Chain: its number for ethereum; "mainnet", "testnet", "devnet" or "localnet" for solana. */
  readonly chainId: string | number
}

/** A nonce with the fields of its form. */
export interface FormNonce extends NonceChallenge {
  readonly adapterId: FormAdapterId
  readonly form: SignInForm
}

/** Options of {@link SignInFormSteps.issueNonce}. */
export interface FormNonceOptions {
  /** Default: ethereum. */
  readonly adapterId?: FormAdapterId | undefined
  /** The account, as far as it is known. The nonce is good for this one only. Default: any. */
  readonly account?: Partial<FormAccount> | undefined
  /** Ends the call, which then rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/** What a wallet signed, and with which account. */
export interface SignedForm extends FormAccount {
  /** As the wallet gives it: bytes or hex, for solana also base58. */
  readonly signature: unknown
  /** Ends the call, which then rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/** The steps of a sign-in whose text the page writes itself. They reject with a `CountersignClientError`. */
export interface SignInFormSteps {
  /** Fetches a nonce. The account may be chosen later. */
  issueNonce(options?: FormNonceOptions): Promise<FormNonce>
  /**
   * The text for the wallet to sign: EIP-4361, or Sign-In With Solana. An address of ethereum without a checksum costs
   * a call, because the text has it with the one of EIP-55.
   */
  createMessage(nonce: FormNonce, account: FormAccount): Promise<string>
  /** Signs in with the signature over that text. The client stores the token, as `signInWallet` does. */
  verify(nonce: FormNonce, signed: SignedForm): Promise<SignInResult>
}

/** The part of a client that signs in. */
export type SignInFormClient = Pick<SignInCalls, 'issueNonce' | 'signInWallet'>

/**
 * The steps of a sign-in for any stack that connects wallets and signs by itself, such as wagmi: a nonce, the text for
 * the account that is connected by then, and the signature.
 */
export function signInForm(client: SignInFormClient): SignInFormSteps {
  const issueNonce = async ({ adapterId = 'ethereum', account = {}, signal }: FormNonceOptions = {}) => {
    const { address, chainId } = account
    const named = { adapterId, ...given({ address, chainId: chainId === undefined ? undefined : String(chainId) }) }
    const nonce = await client.issueNonce({ form: true, account: named, signal })
    const { form } = nonce
    if (form === undefined) {
      throw new CountersignClientError('UNEXPECTED_ANSWER', 'The service is older than the sign-in form')
    }
    return { ...nonce, adapterId, form }
  }
  return {
    issueNonce,
    async createMessage({ adapterId, form }, account) {
      const hasChecksum = adapterId !== 'ethereum' || account.address !== account.address.toLowerCase()
      const { address = account.address } = hasChecksum ? {} : (await issueNonce({ account })).form
      return formText(adapterId, form, { ...account, address })
    },
    async verify(nonce, { address, chainId, signature, signal }) {
      const { adapterId } = nonce
      const wallet = {
        adapterId,
        getAccount: () => ({ address, chainId: String(chainId) }),
        // An address of Solana is the key.
        sign: () => (adapterId === 'solana' ? { publicKey: address, signature } : { signature }),
      }
      return await client.signInWallet({ challenge: nonce, wallet, signal })
    },
  }
}

const chainNames = { ethereum: 'Ethereum', solana: 'Solana' } as const

/** The text of a form for an account. */
export function formText(adapterId: FormAdapterId, form: SignInForm, account: FormAccount): string {
  return signInText(chainNames[adapterId], form, account)
}

/** Most nonces that are kept: a page that never signs can ask for any number. The oldest is dropped. */
const maxHeld = 20

/** Nonces that wait for their signature, by the nonce of their form: other stacks pass on nothing else. */
export class HeldForms {
  readonly #held = new Map<string, { readonly nonce: FormNonce; readonly age: HeldNonce }>()

  add(nonce: FormNonce): void {
    this.#held.set(nonce.form.nonce, { nonce, age: new HeldNonce(nonce) })
    const [oldest] = this.#held.keys()
    if (this.#held.size > maxHeld && oldest !== undefined) this.#held.delete(oldest)
  }

  /** `undefined` if there is none, or too little of its time is left for the user to sign. */
  get(formNonce: string): FormNonce | undefined {
    const found = this.#held.get(formNonce)
    return found === undefined || found.age.isStale() ? undefined : found.nonce
  }

  /** Returns a nonce once, however little of its time is left: it is good for one try. */
  take(formNonce: string): FormNonce {
    const found = this.#held.get(formNonce)
    this.#held.delete(formNonce)
    if (found !== undefined) return found.nonce
    throw new CountersignClientError('NONCE_NOT_FOUND', 'The text is not one of this page, or was sent already')
  }
}
