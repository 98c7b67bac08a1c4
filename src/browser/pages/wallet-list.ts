import { type CountersignWallets, defineWalletChooser } from '../wallets/chooser.ts'
import type { FoundWallet, WalletApp, WalletFinder } from '../wallets/found.ts'
import { elementTexts, type Words } from './words.ts'

/** Options of {@link walletList}. */
export interface WalletListOptions {
  readonly finder: WalletFinder
  readonly words: Words
  /** Adapter of the only wallets that are listed, if there is one. */
  readonly adapterId?: string | undefined
  /** Apps to open the order in. Default: none. */
  readonly apps?: readonly WalletApp[]
  /** What to do if there is no wallet, on a computer and on a phone. */
  readonly advice: Readonly<Record<'onComputer' | 'onPhone', string>>
  /** Called in the user's tap on a wallet. */
  readonly onChoose: (found: FoundWallet) => void
}

/** The list of the wallets that a finder finds. */
export function walletList(options: WalletListOptions): CountersignWallets {
  const { finder, words, adapterId, apps = [], advice, onChoose } = options
  defineWalletChooser()
  const list = document.createElement('countersign-wallets')
  list.addEventListener('countersign:wallet', ({ detail }) => onChoose(detail.wallet))
  list.finder = finder
  list.apps = apps
  const none = adapterId === undefined ? words.say('wallet.none') : words.say('wallet.none.kind', { kind: adapterId })
  const hasApps = apps.length > 0
  list.texts = {
    ...elementTexts(words).wallets,
    // The heading above, and the apps, say what to do.
    choose: '',
    apps: '',
    looking: hasApps ? '' : words.say('wallet.looking'),
    none: hasApps ? '' : none,
    noneButOthers: hasApps ? '' : words.say('wallet.none.others'),
    noneOnComputer: advice.onComputer,
    noneOnPhone: hasApps ? '' : advice.onPhone,
  }
  return list
}
