import type { AccountListener, Wallet } from './wallet.ts'

/** Tells of account switches in the wallet that the page uses: the client's own, until another one has signed in. */
export class WalletAccounts {
  readonly #listeners = new Set<AccountListener>()
  #wallet: Wallet | undefined
  #stop: (() => void) | undefined

  constructor(wallet: Wallet | undefined) {
    this.#wallet = wallet
  }

  /** Follows another wallet from now on. */
  follow(wallet: Wallet | undefined): void {
    if (wallet === undefined || wallet === this.#wallet) return
    this.#wallet = wallet
    if (this.#stop === undefined) return
    this.#stop()
    this.#start()
  }

  /** Calls `listener` on each switch. Returns a function that ends it. */
  listen(listener: AccountListener): () => void {
    const own: AccountListener = (account) => listener(account)
    this.#listeners.add(own)
    if (this.#stop === undefined) this.#start()
    return () => {
      this.#listeners.delete(own)
      if (this.#listeners.size > 0) return
      this.#stop?.()
      this.#stop = undefined
    }
  }

  #start(): void {
    const tell: AccountListener = (account) => {
      for (const listener of [...this.#listeners]) listener(account)
    }
    this.#stop = this.#wallet?.onAccountChange?.(tell) ?? (() => {})
  }
}
