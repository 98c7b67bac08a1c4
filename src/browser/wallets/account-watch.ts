import { Listeners } from '../client/listeners.ts'
import type { AccountListener, Wallet } from '../client/wallet.ts'

/** An account of a wallet in the page. */
export interface Account {
  readonly address: string
  /** Chain as the service's adapter writes it. */
  readonly chainId?: string
}

/** A wallet whose user can switch accounts while the page is open. */
export interface SwitchingWallet extends Wallet {
  readonly adapterId: string
  getAccount(): Promise<Account>
  onAccountChange(listener: AccountListener): () => void
}

/** Reports a change in a wallet: the account after it, by the account before it, if one is known. */
export type ReportChange = (after: (before: Account | undefined) => Account | undefined) => void

/** Keeps the account that a wallet was last asked for, and reports switches to another. */
export class AccountWatch {
  readonly #listeners: Listeners<Account | undefined>
  #asked: Account | undefined
  #current: Account | undefined
  #asking = 0

  /** `listen` listens to the wallet's own events, and returns a function that ends it. */
  constructor(listen: (report: ReportChange) => () => void) {
    this.#listeners = new Listeners(() => listen((after) => this.#change(after)))
  }

  /** The account that the wallet last answered with: texts are made for it. */
  get asked(): Account | undefined {
    return this.#asked
  }

  /** Asks the wallet. Its events until then are no switch, but the wallet connecting. */
  async ask(question: () => Promise<Account>): Promise<Account> {
    this.#asking++
    try {
      const account = await question()
      this.#asked = account
      this.#current = account
      return account
    } finally {
      this.#asking--
    }
  }

  subscribe(listener: AccountListener): () => void {
    return this.#listeners.add(listener)
  }

  #change(after: (before: Account | undefined) => Account | undefined): void {
    if (this.#asking > 0) return
    const before = this.#current
    const account = after(before)
    // Wallets also report what has not changed.
    if (before?.address.toLowerCase() === account?.address.toLowerCase() && before?.chainId === account?.chainId) return
    this.#current = account
    this.#listeners.notify(account)
  }
}
