import { aborted, CountersignClientError } from './errors.ts'
import { readWalletAnswer, type WalletSignature, walletFailure } from './wallet-answer.ts'

/** A wallet: any object that can sign a message. */
export interface Wallet {
  /** Identifier of the service's adapter for this wallet, such as "nimiq". Without it, the service tries nimiq and ed25519. */
  readonly adapterId?: string
  /** Returns the address that the wallet signs with. It may ask the user. */
  getAddress?(): Promise<string> | string
  /**
   * Asks the user to sign a text. Returns, or resolves with, the public key and the signature in any form that
   * `readWalletAnswer` reads. If the text is at hand it is called before anything is awaited, so that a wallet can open a
   * pop-up window in the user gesture.
   */
  sign(message: string): unknown
}

/** A proof in the form of the service's requests. */
export interface WalletProof extends WalletSignature {
  readonly adapterId?: string
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

/** Asks a wallet to sign a message. Rejects with one of the WALLET codes, or with ABORTED. */
export async function proveWithWallet(message: string, options: ProofOptions): Promise<WalletProof> {
  const { signal } = options
  const wallet = options.wallet ?? nimiqPay()
  if (wallet === undefined || typeof wallet.sign !== 'function') {
    throw new CountersignClientError('WALLET_MISSING', 'This page has no wallet')
  }
  const { address: told, ...signature } = readWalletAnswer(await asked(() => wallet.sign(message), signal))
  const wanted = options.requestAddressBeforeVerify === true
  const address = wanted ? (told ?? (await asked(() => wallet.getAddress?.(), signal))) : undefined
  if (wanted && (typeof address !== 'string' || address === '')) {
    throw new CountersignClientError('WALLET_FAILED', 'The wallet did not give its address')
  }
  return {
    ...signature,
    ...(address === undefined ? {} : { address }),
    ...(wallet.adapterId === undefined ? {} : { adapterId: wallet.adapterId }),
  }
}

/** Waits for a wallet's answer until the caller aborts: a wallet may never answer. */
async function asked<T>(ask: () => T, signal: AbortSignal | undefined): Promise<Awaited<T>> {
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
 * The wallet of Nimiq Pay, which provides itself as `window.nimiq` to the pages that it opens. `undefined` if there is no
 * provider.
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
      const answer = await hub.signMessage({ appName, message, ...(signer === undefined ? {} : { signer }) })
      if (signer !== undefined && compact(answer.signer) !== compact(signer)) {
        throw new CountersignClientError('WALLET_WRONG_KEY', 'The wallet signed with another address than asked for')
      }
      return answer
    },
  }
}

function compact(address: unknown): string {
  return String(address).replace(/\s/g, '').toUpperCase()
}
