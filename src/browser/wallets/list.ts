import { Listeners } from '../client/listeners.ts'
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
  readonly #listeners = new Listeners()

  get wallets(): readonly FoundWallet[] {
    return this.#wallets
  }

  get isLooking(): boolean {
    return this.#searches > 0
  }

  subscribe(changed: () => void): () => void {
    return this.#listeners.add(changed)
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
      this.#listeners.notify()
    }
  }

  #change(wallets: readonly FoundWallet[]): void {
    this.#wallets = wallets
    this.#listeners.notify()
  }
}

// What a wallet says of itself is made fit to be shown, because any script in the page can announce a wallet.

/** Longest name, in characters. */
const maxName = 60

/** Longest icon, in characters of its URI. */
const maxIcon = 300_000

/**
 * Control and format characters, among them those that change the direction of text, line separators, and characters
 * without a meaning that fonts agree on.
 */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu

/** A name in one line of at most 60 characters; `otherwise` if nothing of it is left. */
export function cleanName(name: unknown, otherwise: string): string {
  if (typeof name !== 'string') return otherwise
  // Cut before it is searched, because a name may be of any length.
  const printable = name
    .slice(0, 20 * maxName)
    .replace(/\s/gu, ' ')
    .replace(unprintable, '')
  const characters = [...printable.replace(/ +/g, ' ').trim()]
  if (characters.length === 0) return otherwise
  return characters.length <= maxName ? characters.join('') : `${characters.slice(0, maxName - 1).join('')}…`
}

/**
 * An icon, if it is a `data:` URI of an image and not oversized. In an `<img>`, no image runs scripts or loads
 * anything.
 */
export function cleanIcon(icon: unknown): { readonly icon?: string } {
  if (typeof icon !== 'string' || icon.length > maxIcon) return {}
  const uri = icon.trim()
  return /^data:image\/(svg\+xml|png|webp|gif|jpeg)[;,]/i.test(uri) ? { icon: uri } : {}
}
