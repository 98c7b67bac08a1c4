import { readWalletAnswer, type Wallet, type WalletSignature } from '../client/index.ts'
import type { HubAnswer } from '../client/wallets/index.ts'
import type { Tasks } from './tasks.ts'

/**
 * Follows a wallet while its user is asked to sign. That can take longer than an order lives: hardware wallets are unlocked, opened
 * and read first.
 */
export class Signing {
  readonly #tasks: Tasks
  readonly #onChange: (isWaiting: boolean) => void
  #asked: object | undefined
  #begun = false

  /** `onChange` is called when a wallet is asked, and when it is no longer waited for. */
  constructor(tasks: Tasks, onChange: (isWaiting: boolean) => void) {
    this.#tasks = tasks
    this.#onChange = onChange
  }

  /** Whether a wallet is being waited for. */
  get isWaiting(): boolean {
    return this.#asked !== undefined
  }

  /** Whether a wallet is being waited for, or has signed what the service has not accepted yet. */
  get hasBegun(): boolean {
    return this.#begun
  }

  /** The wallet, followed while it signs for a task. `text` is shown meanwhile. It is not asked twice to sign the same. */
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
      this.#onChange(false)
    }
    // A wallet may never answer.
    signal.addEventListener('abort', () => end(false), { once: true })
    this.#onChange(true)
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

/** A wallet that keeps its last signature, so that a retry after a lost answer does not ask the user again. */
export function remembering(wallet: Wallet): Wallet {
  let signed: { readonly message: string; readonly answer: WalletSignature } | undefined
  return signingAs(wallet, async (message) => {
    // Read here, because a wallet may also answer with an error, which must not be kept.
    if (signed?.message !== message) {
      signed = { message, answer: readWalletAnswer(await wallet.sign(message), wallet.adapterId) }
    }
    return signed.answer
  })
}

/** A wallet whose questions to its user, for its account and for a signature, all go through `ask`. */
export function asking(
  { adapterId, getAccount, sign }: Wallet,
  ask: <T>(question: () => T) => Promise<Awaited<T>>,
): Wallet {
  return {
    ...(adapterId === undefined ? {} : { adapterId }),
    ...(getAccount === undefined ? {} : { getAccount: () => ask(getAccount) }),
    sign: (message) => ask(() => sign(message)),
  }
}

/** A wallet that has an answer to one text already, from another site. That answer counts once. */
export function answering(wallet: Wallet, answer: HubAnswer): Wallet {
  let isLeft = true
  return signingAs(wallet, (message) => {
    if (!isLeft || message !== answer.message) return wallet.sign(message)
    isLeft = false
    if (answer.signature === undefined) throw answer.error
    return answer.signature
  })
}

function signingAs({ adapterId }: Wallet, sign: Wallet['sign']): Wallet {
  return { ...(adapterId === undefined ? {} : { adapterId }), sign }
}
