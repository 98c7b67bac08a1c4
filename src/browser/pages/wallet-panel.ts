import type { WalletValues } from '../../shared/page-values.ts'
import type { SigningAccount } from '../../shared/session.ts'
import { shortAddress } from '../../shared/wallet-address.ts'
import type { Wallet } from '../client/index.ts'
import { isPhone } from '../client/page.ts'
import type { CountersignWallets } from '../wallets/chooser.ts'
import { findWallets } from '../wallets/find.ts'
import type { AppAddress, FoundWallet, WalletFinder } from '../wallets/found.ts'
import { byId, fill, write } from './dom.ts'
import type { Page } from './open-page.ts'
import { appsFor, asksFirst, obviousWallet, wantedWallets } from './page-wallet.ts'
import { walletList } from './wallet-list.ts'
import { whoView } from './who.ts'

/** A wallet that is ready to sign. */
export interface Choice {
  readonly found: FoundWallet
  readonly wallet: Wallet
  /** Has the wallet asked again for what it has signed already. */
  readonly forgetSignature: () => void
  /** Account that it is going to sign with, if its texts name that. */
  readonly account?: SigningAccount | undefined
  /** The address that the order is for, if that is another wallet's. */
  readonly wanted?: string | undefined
  /** The address in what it has signed, if that names one. */
  readonly signedAddress: () => string | undefined
  /** Address that it is going to sign with, if known. */
  readonly address?: string | undefined
}

/** Options of {@link WalletPanel}. */
export interface WalletPanelOptions {
  readonly page: Page<WalletValues>
  /** Called with the wallet to use: in the user's tap, or if it needs neither a choice nor a tap. */
  readonly onUse: (found: FoundWallet) => void
  /** Called when wallets' apps are shown, or no longer: they need an address. */
  readonly onApps: (areShown: boolean) => void
  /** Called when the user opens a wallet's app. */
  readonly onOpenApp: () => void
}

const root = byId('review')
const chooser = byId('wallets')
const chooserTitle = byId('wallets-title')
const useButton = byId('use-button')

/** The part of the review screen where the user chooses the wallet that signs. */
export class WalletPanel {
  readonly #options: WalletPanelOptions
  #finder: WalletFinder | undefined
  #list: CountersignWallets | undefined
  #choice: Choice | undefined
  /** The wallet and the address whose row is shown. */
  #who: string | undefined
  /** Whether the user looks through the wallets. */
  #isOpen = false
  /** Whether the user has had the list of wallets on the screen. */
  #isSeen = false
  /** The wallets that were used without a tap: each once, because its user may have declined. */
  readonly #unaskedIds = new Set<string>()

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
    // With the first entry above the bar at the bottom.
    const margin = { rootMargin: '0px 0px -190px' }
    const watcher = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return
      watcher.disconnect()
      this.#isSeen = true
      this.#render()
    }, margin)
    watcher.observe(chooserTitle)
  }

  /** Says what wallets' apps open. */
  linkApps(address: AppAddress): void {
    if (this.#list !== undefined) this.#list.appAddress = address
  }

  /**
   * Looks for wallets from now on: for the adapter that the order asks for, or else for all. Returns the one that needs
   * neither a choice nor a tap; one that appears later is passed to `onUse`.
   */
  offer(adapterId: string | undefined): FoundWallet | undefined {
    const { page, onUse, onOpenApp } = this.#options
    if (this.#finder === undefined) {
      const adapterIds = adapterId === undefined ? page.values.adapterIds : [adapterId]
      const finder = findWallets(wantedWallets(page, adapterIds))
      this.#finder = finder
      const { words } = page
      const button = words.say('hand-over.button')
      const advice = {
        onComputer: words.say('wallet.none.computer', { button }),
        onPhone: words.say('wallet.none.phone', { button }),
      }
      const apps = appsFor(adapterIds)
      this.#list = walletList({ finder, words, adapterId, apps, advice, onChoose: onUse })
      this.#list.addEventListener('countersign:open-in', onOpenApp)
      byId('wallet-list').replaceChildren(this.#list)
      finder.subscribe(() => this.#change())
    }
    this.#unaskedIds.clear()
    this.#render()
    return this.#takeUnasked()
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
    const found = this.#choice === undefined && !this.#isOpen ? this.#takeUnasked() : undefined
    if (found !== undefined) this.#options.onUse(found)
    this.#render()
  }

  /** The wallet that needs no choice. */
  get #obvious(): FoundWallet | undefined {
    return obviousWallet(this.#finder?.wallets ?? [])
  }

  /**
   * The wallet that needs neither a choice nor a tap. On a phone, the browser that has a wallet is the wallet's own: it
   * asks its user which account it is to be as soon as the request is there.
   */
  #takeUnasked(): FoundWallet | undefined {
    const found = this.#obvious
    if (found === undefined || this.#unaskedIds.has(found.id) || (asksFirst(found) && !isPhone())) return undefined
    this.#unaskedIds.add(found.id)
    return found
  }

  /** The wallet that the button in the bar is for. */
  get #next(): FoundWallet | undefined {
    return this.#choice === undefined && !this.#isOpen ? this.#obvious : undefined
  }

  /** Shows the list of wallets. */
  open(): void {
    this.#isOpen = true
    this.#isSeen = true
    this.#render()
    chooserTitle.focus({ preventScroll: true })
    chooserTitle.scrollIntoView({ block: 'start' })
  }

  #close(): void {
    this.#isOpen = false
    this.#render()
  }

  #render(): void {
    const { words } = this.#options.page
    const next = this.#next
    const shown = this.#choice?.found ?? next
    const isChosen = this.#choice !== undefined
    byId('signer').hidden = shown === undefined
    const { account, address = account?.address, wanted } = this.#choice ?? {}
    const who = shown && `${shown.id} ${shown.adapterId} ${address}`
    // Not again: it would take back the address that the user unfolded.
    if (who !== this.#who) {
      const rows = shown === undefined ? [] : [whoView({ ...shown, adapterId: shown.adapterId, address }, words)]
      byId('signer-who').replaceChildren(...rows)
      this.#who = who
    }
    chooser.hidden = shown !== undefined && !this.#isOpen
    const hasApps = (this.#list?.apps.length ?? 0) > 0
    const hasOwn = this.#finder?.wallets.some(({ kind }) => kind === 'page') === true
    write(chooserTitle, words.say(hasApps && !hasOwn ? 'wallet.apps' : 'wallet.choose'))
    this.#options.onApps(hasApps && !chooser.hidden)
    byId('other-wallet-button').ariaExpanded = String(!chooser.hidden)
    if (this.#list !== undefined) this.#list.selected = this.#choice?.found.id
    fill(root, 'address', this.#choice?.address)
    fill(
      root,
      'walletHint',
      isChosen && shown?.kind === 'window' ? words.say('wallet.window', { wallet: shown.name }) : '',
    )
    const isForAnother = wanted !== undefined
    byId('demo-note').hidden = this.#choice?.found.kind !== 'demo' || isForAnother
    const expected = shortAddress(wanted ?? '')
    const warning = words.say('wallet.for-another', { address: expected, wallet: shown?.name ?? '' })
    fill(root, 'walletWarning', isForAnother ? warning : '', expected)
    byId('approve-button').hidden = !isChosen || isForAnother
    // The button leads to the list, and is hidden while the list is visible.
    useButton.hidden = isChosen ? !isForAnother : next === undefined && this.#isSeen
    const choose = words.say(isForAnother ? 'wallet.another' : 'wallet.choose')
    write(useButton, next === undefined ? choose : words.say('wallet.use', { wallet: next.name }))
  }
}
