import { type CountersignWallets, defineWalletChooser, type FoundWallet, type WalletFinder } from '../wallets/index.ts'
import type { Words } from './texts/words.ts'

/** Options of {@link walletList}. */
export interface WalletListOptions {
  readonly finder: WalletFinder
  /** Default: the list's own texts. */
  readonly words?: Words
  /** Adapter of the only wallets that are listed, if there is one. */
  readonly adapterId?: string | undefined
  /** Called in the user's tap on a wallet. */
  readonly onChoose: (found: FoundWallet) => void
}

/** The list of the wallets that a finder finds. */
export function walletList({ finder, words, adapterId, onChoose }: WalletListOptions): CountersignWallets {
  defineWalletChooser()
  const list = document.createElement('countersign-wallets')
  list.addEventListener('countersign:wallet', ({ detail }) => onChoose(detail.wallet))
  list.finder = finder
  if (words === undefined) return list
  list.texts = {
    looking: words.say('wallet.looking'),
    // The heading above says it.
    choose: '',
    none: adapterId === undefined ? words.say('wallet.none') : words.say('wallet.none.kind', { kind: adapterId }),
    noneOnComputer: words.say('wallet.none.computer'),
    noneOnPhone: words.say('wallet.none.phone'),
    list: words.say('wallet.list'),
    elsewhere: words.say('wallet.elsewhere'),
    demo: words.say('wallet.demo.about'),
  }
  return list
}
