import type { Wallet } from '../client/index.ts'
import type { SigningAccount } from '../client/types.ts'
import { type CountersignWallets, type FoundWallet, findWallets, type WalletFinder } from '../wallets/index.ts'
import { byId, fill } from './dom.ts'
import { asksFirst, obviousWallet, wantedWallets } from './page-wallet.ts'
import type { ServiceFacts } from './service-facts.ts'
import type { Words } from './texts/words.ts'
import { walletList } from './wallet-list.ts'

/** A wallet that is ready to sign. */
export interface Choice {
  readonly found: FoundWallet
  readonly wallet: Wallet
  /** Has the wallet asked again for what it has signed already. */
  readonly forgetSignature: () => void
  /** Account that it is going to sign with, if its texts name that. */
  readonly account?: SigningAccount | undefined
  /** Address that it is going to sign with, if it has told. */
  readonly address?: string | undefined
}

/** Options of {@link WalletPanel}. */
export interface WalletPanelOptions {
  readonly words: Words
  readonly facts: ServiceFacts
  readonly appName: string
  /** Called with the wallet to use: in the user's tap, or if it needs neither a choice nor a tap. */
  readonly onUse: (found: FoundWallet) => void
}

const root = byId('review')
const chooser = byId('wallets')
const useButton = byId('use-button')

/** The part of the review screen where the user chooses the wallet that signs. */
export class WalletPanel {
  readonly #options: WalletPanelOptions
  #finder: WalletFinder | undefined
  #list: CountersignWallets | undefined
  #choice: Choice | undefined
  /** Whether the user looks through the wallets. */
  #isOpen = false

  constructor(options: WalletPanelOptions) {
    this.#options = options
    useButton.addEventListener('click', () => {
      const next = this.#next
      if (next === undefined) this.open()
      else options.onUse(next)
    })
    byId('other-wallet-button').addEventListener('click', () => {
      if (this.#isOpen) this.#close()
      else this.open()
    })
  }

  /**
   * Looks for wallets from now on: for the adapter that the order asks for, or else for all. Returns the one that needs
   * neither a choice nor a tap; one that appears later is told to `onUse`.
   */
  offer(adapterId: string | undefined): FoundWallet | undefined {
    const { words, facts, appName, onUse } = this.#options
    if (this.#finder === undefined) {
      const names = { app: appName, demo: words.say('wallet.demo') }
      const adapterIds = adapterId === undefined ? facts.adapters : [adapterId]
      const finder = findWallets(wantedWallets(facts, adapterIds, names))
      this.#finder = finder
      this.#list = walletList({ finder, words, adapterId, onChoose: onUse })
      byId('wallet-list').replaceChildren(this.#list)
      finder.subscribe(() => this.#change())
    }
    this.#render()
    return this.#unasked
  }

  /** The wallet with this id, if it is there. */
  walletOf(id: string): FoundWallet | undefined {
    return this.#finder?.wallets.find((found) => found.id === id)
  }

  /** Shows the wallet that is ready to sign; none if it has been locked since. */
  choose(choice: Choice | undefined): void {
    this.#choice = choice
    this.#close()
  }

  #change(): void {
    const found = this.#choice === undefined && !this.#isOpen ? this.#unasked : undefined
    if (found !== undefined) this.#options.onUse(found)
    this.#render()
  }

  /** The wallet that needs no choice. */
  get #obvious(): FoundWallet | undefined {
    return obviousWallet(this.#finder?.wallets ?? [])
  }

  /** The wallet that needs neither a choice nor a tap. */
  get #unasked(): FoundWallet | undefined {
    const found = this.#obvious
    return found !== undefined && !asksFirst(found) ? found : undefined
  }

  /** The wallet that the button in the bar is for. */
  get #next(): FoundWallet | undefined {
    return this.#choice === undefined && !this.#isOpen ? this.#obvious : undefined
  }

  /** Shows the list of wallets. */
  open(): void {
    this.#isOpen = true
    this.#render()
    byId('wallets-title').focus({ preventScroll: true })
    chooser.scrollIntoView({ block: 'center' })
  }

  #close(): void {
    this.#isOpen = false
    this.#render()
  }

  #render(): void {
    const { words } = this.#options
    const next = this.#next
    const shown = this.#choice?.found ?? next
    const isChosen = this.#choice !== undefined
    fill(root, 'wallet', shown?.name)
    fill(root, 'account', shortAddress(this.#choice?.account?.address))
    byId('signer').hidden = shown === undefined
    byId('signer-icon').replaceChildren(...(shown?.icon === undefined ? [] : [image(shown.icon)]))
    chooser.hidden = shown !== undefined && !this.#isOpen
    byId('other-wallet-button').ariaExpanded = String(!chooser.hidden)
    if (this.#list !== undefined) this.#list.selected = this.#choice?.found.id
    fill(root, 'address', this.#choice?.address)
    fill(
      root,
      'walletHint',
      isChosen && shown?.kind === 'window' ? words.say('wallet.window', { wallet: shown.name }) : '',
    )
    byId('demo-note').hidden = this.#choice?.found.kind !== 'demo'
    byId('approve-button').hidden = !isChosen
    useButton.hidden = isChosen
    useButton.textContent =
      next === undefined ? words.say('wallet.choose') : words.say('wallet.use', { wallet: next.name })
  }
}

/** A wallet's icon. In an `<img>`, no image runs scripts. */
function image(source: string): HTMLImageElement {
  const icon = new Image(20, 20)
  icon.alt = ''
  icon.src = source
  return icon
}

/** The beginning and the end of an address. All of it is with the exact text. */
function shortAddress(address: string | undefined): string {
  if (address === undefined || address.length < 20) return address ?? ''
  return `${address.slice(0, 6)} … ${address.slice(-4)}`
}
