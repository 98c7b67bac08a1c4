import type { FoundWallet } from './found.ts'

/** A finder of one kind of wallet: calls `found` for each, and returns a function that ends the search. */
export type Search = (found: Findings) => () => void

/** Where a search reports what it finds. */
export interface Findings {
  /** Adds a wallet, and returns a function that removes it. A number is added to an id that another one has. */
  add(wallet: FoundWallet): () => void
  /** Says that wallets are likely to appear soon, until the returned function is called. */
  look(): () => void
}

/** The order of kinds: the wallets that a user has here come first, and never the demo wallet. */
const kinds: readonly FoundWallet['kind'][] = ['page', 'window', 'demo']

/** The wallets that searches have found, in the order in which a page shows them. */
export class WalletList implements Findings {
  #wallets: readonly FoundWallet[] = []
  #searches = 0
  readonly #listeners = new Set<() => void>()

  get wallets(): readonly FoundWallet[] {
    return this.#wallets
  }

  get isLooking(): boolean {
    return this.#searches > 0
  }

  subscribe(changed: () => void): () => void {
    // So that one function can be subscribed twice.
    const listener = (): void => changed()
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  add(wallet: FoundWallet): () => void {
    const taken = new Set(this.#wallets.map(({ id }) => id))
    let id = wallet.id
    for (let number = 2; taken.has(id); number++) id = `${wallet.id}#${number}`
    const added = { ...wallet, id }
    const rank = ({ kind }: FoundWallet): number => kinds.indexOf(kind)
    this.#change([...this.#wallets, added].sort((a, b) => rank(a) - rank(b)))
    return () => this.#change(this.#wallets.filter((one) => one !== added))
  }

  look(): () => void {
    let looks = true
    this.#searches++
    return () => {
      if (!looks) return
      looks = false
      this.#searches--
      this.#tell()
    }
  }

  #change(wallets: readonly FoundWallet[]): void {
    this.#wallets = wallets
    this.#tell()
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
