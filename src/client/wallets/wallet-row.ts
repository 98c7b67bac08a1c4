import type { ChooserTexts } from './chooser-texts.ts'
import { setFlag } from './flag.ts'
import type { FoundWallet } from './found.ts'

/** Names of the service's adapters. */
const adapterNames: Readonly<Record<string, string>> = { nimiq: 'Nimiq', ethereum: 'Ethereum', solana: 'Solana' }

/** How a wallet's entry looks. */
export interface RowState {
  /** Whether another wallet of the same kind has the same name. */
  readonly isNameTaken: boolean
  readonly isSelected: boolean
  readonly isDisabled: boolean
}

/** A wallet's entry in the list: a button with its icon and name. */
export class WalletRow {
  readonly item = document.createElement('li')
  readonly #button = document.createElement('button')
  readonly #icon = document.createElement('span')
  /** Isolates the name, so that it does not change the order of the text around it. */
  readonly #name = document.createElement('bdi')
  readonly #about = document.createElement('span')
  #wallet: FoundWallet | undefined

  constructor(choose: (wallet: FoundWallet) => void) {
    this.#button.type = 'button'
    this.#button.setAttribute('part', 'wallet')
    this.#icon.className = 'icon'
    this.#icon.setAttribute('part', 'icon')
    // The name follows.
    setFlag(this.#icon, 'aria-hidden', true)
    this.#name.setAttribute('part', 'name')
    this.#about.className = 'about'
    this.#about.setAttribute('part', 'about')
    const names = document.createElement('span')
    names.className = 'names'
    names.append(this.#name, this.#about)
    this.#button.append(this.#icon, names)
    this.#button.addEventListener('click', () => this.#wallet !== undefined && choose(this.#wallet))
    this.item.append(this.#button)
  }

  show(wallet: FoundWallet, texts: ChooserTexts, { isNameTaken, isSelected, isDisabled }: RowState): void {
    if (wallet.icon !== this.#wallet?.icon || wallet.name !== this.#wallet?.name) this.#showIcon(wallet)
    this.#wallet = wallet
    this.#name.textContent = wallet.name
    this.#about.textContent = aboutOf(wallet, texts, isNameTaken)
    this.#button.classList.toggle('demo', wallet.kind === 'demo')
    setFlag(this.#button, 'aria-current', isSelected)
    // Not `disabled`, which would take the focus away.
    setFlag(this.#button, 'aria-disabled', isDisabled)
  }

  #showIcon({ icon, name }: FoundWallet): void {
    const [letter = ''] = name
    this.#icon.textContent = letter.toLocaleUpperCase()
    if (icon === undefined) return
    const image = document.createElement('img')
    image.alt = ''
    image.addEventListener('load', () => this.#icon.replaceChildren(image))
    image.src = icon
  }
}

function aboutOf({ kind, adapterId, detail, id }: FoundWallet, texts: ChooserTexts, isNameTaken: boolean): string {
  if (kind === 'demo') return texts.demo
  const words = [adapterNames[adapterId] ?? adapterId]
  if (kind === 'window') words.push(texts.elsewhere)
  // The number that tells equal ids apart.
  if (isNameTaken) words.push(detail ?? /#\d+$/.exec(id)?.[0] ?? '#1')
  return words.join(' · ')
}
