import { aborted, CountersignClientError } from './errors.ts'
import { readWalletAnswer, type WalletSignature, walletFailure } from './wallet-answer.ts'

/** A wallet. Any object that can sign a message is one. */
export interface Wallet {
  /** The service's adapter for this kind of wallet, such as "nimiq". Without it, the service tries those it has. */
  readonly adapterId?: string
  /** The address that the wallet signs with; may ask its user. */
  getAddress?(): Promise<string> | string
  /**
   * Has the user sign a text; resolves with public key and signature in about any form (see `readWalletAnswer`). Called
   * before anything is waited for when the text is at hand, so that a wallet in a pop-up can open in a user's gesture.
   */
  sign(message: string): unknown
}

/** A proof as the service's requests take it. */
export interface WalletProof extends WalletSignature {
  readonly adapterId?: string
}

/** How to ask a wallet for a proof. */
export interface ProofOptions {
  /** Default: Nimiq Pay's, when the page runs in it. */
  readonly wallet?: Wallet | undefined
  /** Whether to ask the wallet for its address, which the service then holds against the key. Default false. */
  readonly requestAddressBeforeVerify?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** Has a wallet sign a message. Rejects with one of the WALLET codes, or ABORTED. */
export async function proveWithWallet(message: string, options: ProofOptions): Promise<WalletProof> {
  const { signal } = options
  const wallet = options.wallet ?? nimiqPay()
  if (wallet === undefined || typeof wallet.sign !== 'function') {
    throw new CountersignClientError('WALLET_MISSING', 'There is no wallet here')
  }
  const { address: told, ...signature } = readWalletAnswer(await asked(() => wallet.sign(message), signal))
  const wanted = options.requestAddressBeforeVerify === true
  const address = wanted ? (told ?? (await asked(() => wallet.getAddress?.(), signal))) : undefined
  if (wanted && (typeof address !== 'string' || address === '')) {
    throw new CountersignClientError('WALLET_FAILED', 'The wallet does not tell its address')
  }
  return {
    ...signature,
    ...(address === undefined ? {} : { address }),
    ...(wallet.adapterId === undefined ? {} : { adapterId: wallet.adapterId }),
  }
}

/** Asks a wallet for something, until the caller has no use for it: a wallet may never answer. */
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

/** The part of Nimiq Pay's provider that is used here. It resolves with `{error: {type, message}}` when it fails. */
export interface NimiqProvider {
  listAccounts(): Promise<unknown>
  sign(message: string): Promise<unknown>
}

/**
 * The wallet of Nimiq Pay, which puts its provider into the pages that it opens as `window.nimiq`. `undefined` when there is
 * none.
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

/** The part of `HubApi` of @nimiq/hub-api that is used here. */
export interface NimiqHub {
  signMessage(request: {
    appName: string
    message: string
    signer?: string
  }): Promise<{ readonly signer: string; readonly signerPublicKey: Uint8Array; readonly signature: Uint8Array }>
}

/** How the Nimiq Hub asks. */
export interface NimiqHubOptions {
  /** The name that the Hub shows its user. */
  readonly appName: string
  /** The address that has to sign. Without it, the user chooses. */
  readonly signer?: string
}

/** A wallet behind the Nimiq Hub, which opens a window: sign in a user's gesture. */
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
