import { given } from '../../shared/defined-fields.ts'
import type { SigningAccount } from '../../shared/session.ts'
import { isSameAddressText } from '../../shared/wallet-address.ts'
import { aborted, CountersignClientError } from './errors.ts'
import { readWalletAnswer, type WalletSignature, walletFailure } from './wallet-answer.ts'

/** A function that is called at an account switch in a wallet. */
export type AccountListener = (account: Omit<SigningAccount, 'adapterId'> | undefined) => void

/** A wallet: any object that can sign a message. */
export interface Wallet {
  /**
   * Identifier of the service's adapter for this wallet, such as "nimiq". Without it, the service tries nimiq and
   * ed25519.
   */
  readonly adapterId?: string
  /** Returns the address that the wallet signs with. It may ask the user. */
  getAddress?(): Promise<string> | string
  /**
   * Returns the account that the wallet is going to sign with, for adapters whose texts name it: ethereum and solana.
   * It may ask the user. It is called first, then the text is fetched for that account and for {@link adapterId}, and
   * then `sign` is called, which has to sign with that account or fail. A wallet that learns its address only when it
   * signs returns an account without one, which solana's texts allow.
   */
  getAccount?(): Promise<Omit<SigningAccount, 'adapterId'>> | Omit<SigningAccount, 'adapterId'>
  /**
   * Calls `listener` with the account that the user switched to in the wallet, and with `undefined` if none is left,
   * because the wallet was locked or disconnected. Returns a function that ends it.
   */
  onAccountChange?(listener: AccountListener): () => void
  /**
   * Asks the user to sign a text. Returns, or resolves with, the public key and the signature in any form that
   * `readWalletAnswer` reads. If the text is at hand it is called before anything is awaited, so that a wallet can open
   * a pop-up window in the user gesture.
   */
  sign(message: string): unknown
}

/** A proof in the form of the service's requests. */
export interface WalletProof extends WalletSignature {
  readonly adapterId?: string
  readonly chainId?: string
}

/** Options for asking a wallet for a proof. */
export interface ProofOptions {
  /** Wallet that signs. Default: Nimiq Pay's, if the page is open in it. */
  readonly wallet?: Wallet | undefined
  /** Whether to ask the wallet for its address, so that the service checks it against the key. Default false. */
  readonly requestAddressBeforeVerify?: boolean | undefined
  /** Ends the call, which then rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/**
 * A text to sign, or a function that returns it for the account that is going to sign: the argument is absent for
 * wallets without `getAccount`.
 */
export type TextToSign = string | ((account: SigningAccount | undefined) => string | Promise<string>)

/**
 * Asks a wallet to sign. If it has no `getAccount` and the text is at hand, it is asked before anything is awaited.
 * `account` is the one that the text is for, if that is known: then the wallet is not asked for it. Rejects with one of
 * the WALLET codes, with ABORTED, and with the error of `text`.
 */
export async function proveWithWallet(
  text: TextToSign,
  options: ProofOptions,
  account?: SigningAccount,
): Promise<WalletProof> {
  const { signal } = options
  const wallet = options.wallet ?? nimiqPay()
  if (wallet === undefined || typeof wallet.sign !== 'function') {
    throw new CountersignClientError('WALLET_MISSING', 'This page has no wallet')
  }
  const signer = account ?? (wallet.getAccount === undefined ? undefined : await accountOf(wallet, signal))
  const textFor = typeof text === 'string' ? text : text(signer)
  const message = typeof textFor === 'string' ? textFor : await textFor
  const { address: answered, ...signature } = readWalletAnswer(
    await asked(() => wallet.sign(message), signal),
    wallet.adapterId,
  )
  if (signer !== undefined) {
    // Only a first look: the service finds out from the signature.
    if (answered !== undefined && answered.toLowerCase() !== (signer.address ?? answered).toLowerCase()) {
      throw new CountersignClientError('WALLET_WRONG_KEY', 'The wallet signed with another address than asked for')
    }
    // As the text was asked for: the service makes it again from these.
    return { ...signature, ...signer }
  }
  const wanted = options.requestAddressBeforeVerify === true
  const address = wanted ? (answered ?? (await asked(() => wallet.getAddress?.(), signal))) : undefined
  if (wanted && (typeof address !== 'string' || address === '')) {
    throw new CountersignClientError('WALLET_FAILED', 'The wallet gave no address')
  }
  return { ...signature, ...given({ address, adapterId: wallet.adapterId }) }
}

async function accountOf(wallet: Wallet, signal: AbortSignal | undefined): Promise<SigningAccount> {
  const { adapterId } = wallet
  if (adapterId === undefined) {
    throw new CountersignClientError('WALLET_FAILED', 'A wallet with getAccount needs an adapterId')
  }
  const account = await asked(() => wallet.getAccount?.(), signal)
  const { address, chainId } = account ?? {}
  if (typeof account !== 'object' || account === null || ![address, chainId].every(isTextOrAbsent)) {
    throw new CountersignClientError('WALLET_FAILED', 'The wallet gave no address')
  }
  return { adapterId, ...given({ address, chainId }) }
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || (typeof value === 'string' && value !== '')
}

/**
 * Waits for a wallet's answer until the caller aborts: a wallet may never answer. Rejects with one of the WALLET codes,
 * or with ABORTED.
 */
export async function asked<T>(ask: () => T, signal: AbortSignal | undefined): Promise<Awaited<T>> {
  if (signal?.aborted) throw aborted(signal)
  let onAbort: (() => void) | undefined
  try {
    const stopped = new Promise<never>((_, reject) => {
      onAbort = () => reject(aborted(signal))
      signal?.addEventListener('abort', onAbort)
    })
    return await Promise.race([ask(), stopped])
  } catch (thrown) {
    throw walletFailure(thrown)
  } finally {
    if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort)
  }
}

/** The part of Nimiq Pay's provider that the client uses. It resolves with `{error: {type, message}}` if it fails. */
export interface NimiqProvider {
  listAccounts(): Promise<unknown>
  sign(message: string): Promise<unknown>
}

/**
 * The wallet of Nimiq Pay, which provides itself as `window.nimiq` to the pages that it opens. `undefined` if there is
 * no provider.
 */
export function nimiqPay(
  provider: NimiqProvider | undefined = (globalThis as { nimiq?: NimiqProvider }).nimiq,
): Wallet | undefined {
  if (typeof provider?.sign !== 'function') return undefined
  return {
    adapterId: 'nimiq',
    sign: (message) => provider.sign(message),
    async getAddress() {
      const accounts = (await provider.listAccounts()) as { error?: unknown } | readonly unknown[]
      if (!Array.isArray(accounts)) throw walletFailure((accounts as { error?: unknown } | null)?.error ?? accounts)
      const [first] = accounts as readonly (string | { readonly address?: string } | undefined)[]
      return (typeof first === 'string' ? first : first?.address) ?? ''
    },
  }
}

/** The part of `HubApi` of @nimiq/hub-api that the client uses. */
export interface NimiqHub {
  signMessage(request: {
    appName: string
    message: string
    signer?: string
  }): Promise<{ readonly signer: string; readonly signerPublicKey: Uint8Array; readonly signature: Uint8Array }>
}

/** Options of {@link nimiqHub}. */
export interface NimiqHubOptions {
  /** Application name that the Hub shows to its user. */
  readonly appName: string
  /** Address that has to sign. Default: the user chooses. */
  readonly signer?: string
}

/** The wallet of the Nimiq Hub. It opens a window, so call `sign` in a user gesture. */
export function nimiqHub(hub: NimiqHub, { appName, signer }: NimiqHubOptions): Wallet {
  return {
    adapterId: 'nimiq',
    async sign(message) {
      const answer = await hub.signMessage({ appName, message, ...given({ signer }) })
      if (signer !== undefined && !isSameAddressText(String(answer.signer), signer)) {
        throw new CountersignClientError('WALLET_WRONG_KEY', 'The wallet signed with another address than asked for')
      }
      return answer
    },
  }
}
