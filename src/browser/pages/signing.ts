import { hexToBytes } from '../../shared/hex.ts'
import { readWalletAnswer, type Wallet, type WalletSignature } from '../client/index.ts'
import { loadOnDemand } from '../client/page.ts'
import { signingAs } from '../wallets/found-sign-in.ts'
import type { Tasks } from './tasks.ts'

/**
 * Follows a wallet while its user is asked to sign. That can take longer than an order lives: hardware wallets are
 * unlocked, opened and read first.
 */
export class Signing {
  readonly #tasks: Tasks
  #asked: object | undefined
  #begun = false

  constructor(tasks: Tasks) {
    this.#tasks = tasks
  }

  /** Whether a wallet is being waited for. */
  get isWaiting(): boolean {
    return this.#asked !== undefined
  }

  /** Whether a wallet is being waited for, or has signed what the service has not accepted yet. */
  get hasBegun(): boolean {
    return this.#begun
  }

  /** Ends the wait: the signature was used. */
  end(): void {
    this.#begun = false
  }

  /**
   * The wallet, followed while it signs for a task. `text` is shown meanwhile. It is not asked twice to sign the same.
   */
  follow(wallet: Wallet, text: string, signal: AbortSignal): Wallet {
    return signingAs(wallet, (message) => this.#sign(() => wallet.sign(message), text, signal))
  }

  async #sign<T>(sign: () => T, text: string, signal: AbortSignal): Promise<Awaited<T>> {
    const asked = {}
    this.#asked = asked
    this.#begun = true
    const end = (hasSigned: boolean): void => {
      if (this.#asked !== asked) return
      this.#asked = undefined
      this.#begun = hasSigned
    }
    // A wallet may never answer.
    signal.addEventListener('abort', () => end(false), { once: true })
    try {
      const answer = await this.#tasks.askWallet(text, signal, sign)
      end(true)
      return answer
    } catch (thrown) {
      end(false)
      throw thrown
    }
  }
}

/**
 * A wallet that keeps its last signature, so that a retry after a lost answer does not ask the user again. `forget`
 * makes it ask for another: the service refused the one that is kept.
 */
export function remembering(wallet: Wallet) {
  let signed: { readonly message: string; readonly answer: WalletSignature } | undefined
  let addressOfKey: ((publicKey: Uint8Array) => string) | undefined
  const remembered = signingAs(wallet, async (message) => {
    // The answer of Nimiq Pay has no address. Its key has one, if this is there by the time of the answer.
    if (/^(nimiq|ed25519)$/.test(wallet.adapterId ?? 'nimiq')) {
      loadOnDemand(() => import('../../core/wallet/nimiq-address.ts')).then(
        ({ nimiqAddress }) => {
          addressOfKey = nimiqAddress
        },
        () => {},
      )
    }
    // Read here, because a wallet may also answer with an error, which must not be kept.
    if (signed?.message !== message) {
      signed = { message, answer: readWalletAnswer(await wallet.sign(message), wallet.adapterId) }
    }
    return signed.answer
  })
  return {
    wallet: remembered,
    forget() {
      signed = undefined
    },
    /** The address of the kept answer, if it names one, or has a key whose address is known. */
    signedAddress(): string | undefined {
      const key = signed && hexToBytes(signed.answer.publicKeyHex)
      return signed?.answer.address ?? (key && addressOfKey?.(key))
    },
  }
}
