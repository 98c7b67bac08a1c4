import type { WalletValues } from '../../shared/page-values.ts'
import { isPassing } from '../client/errors.ts'
import { type CountersignClient, CountersignClientError, type Session } from '../client/index.ts'
import { readSentSignIn } from '../client/sent-sign-in.ts'
import { forgetDemoWallet, openDemoWallet } from '../wallets/demo-wallet.ts'
import { type ReturnedSignIn, signInWithFound } from '../wallets/found-sign-in.ts'
import { type FoundWallet, findWallets, type HubAnswer, type WalletFinder } from '../wallets/index.ts'
import { byId, fill } from './dom.ts'
import type { Page } from './open-page.ts'
import { hubFor, obviousWallet, wantedWallets } from './page-wallet.ts'
import type { Tasks } from './tasks.ts'
import { walletList } from './wallet-list.ts'

/** Options of {@link DirectSignIn}. */
export interface DirectSignInOptions {
  readonly client: CountersignClient
  readonly page: Page<WalletValues>
  readonly tasks: Tasks
  readonly onSession: (session: Session) => Promise<void>
}

const root = byId('signed-out')

/** Signs in with a wallet on this device. */
export class DirectSignIn {
  readonly #options: DirectSignInOptions
  readonly #finder: WalletFinder
  #isOpen = false

  constructor(options: DirectSignInOptions) {
    this.#options = options
    const { page } = options
    this.#finder = findWallets(wantedWallets(page))
    const list = walletList({ finder: this.#finder, words: page.words, onChoose: (found) => this.#start(found) })
    byId('wallet-list').append(list)
    this.#finder.subscribe(() => this.#show())
    byId('sign-in-button').addEventListener('click', () => {
      const found = this.#obvious
      if (found !== undefined) this.#start(found)
    })
    byId('other-wallet-button').addEventListener('click', () => {
      this.#isOpen = !this.#isOpen
      this.#show()
    })
    byId('new-wallet-button').addEventListener('click', () => {
      forgetDemoWallet()
      this.#show()
    })
    this.#show()
  }

  /** Goes on after the way back from a wallet at another site. */
  resume(answer: HubAnswer): void {
    const sent = readSentSignIn()
    const found = this.#finder.wallets.find(({ id }) => id === sent?.walletId)
    if (sent !== undefined && found !== undefined) this.#start(found, { sent, answer })
  }

  get #obvious(): FoundWallet | undefined {
    return obviousWallet(this.#finder.wallets)
  }

  /** In the user's tap: a wallet may open a window. Takes the place of a sign-in that another wallet is asked for. */
  #start(found: FoundWallet, returned?: ReturnedSignIn): void {
    let left = returned
    void this.#options.tasks.runInstead(async (signal) => {
      try {
        await this.#signIn(found, left, signal)
      } catch (thrown) {
        // Another try asks the wallet again, unless what it signed did not reach the service.
        if (!(thrown instanceof CountersignClientError && isPassing(thrown))) left = undefined
        throw thrown
      }
    })
  }

  async #signIn(found: FoundWallet, returned: ReturnedSignIn | undefined, signal: AbortSignal): Promise<void> {
    const { client, page, tasks, onSession } = this.#options
    const text = page.words.say('wallet.asked', { wallet: found.name })
    const { session } = await signInWithFound(found, {
      client,
      hub: hubFor(page.values.appName),
      returned,
      ask: (question) => tasks.askWallet(text, signal, question),
      signal,
    })
    await onSession(session)
  }

  #show(): void {
    const found = this.#obvious
    const demo = found?.kind === 'demo' ? openDemoWallet(found.adapterId) : undefined
    fill(root, 'wallet', found?.name)
    fill(root, 'address', demo?.address)
    byId('demo-note').hidden = demo === undefined
    byId('new-wallet-button').hidden = demo === undefined
    byId('sign-in-button').hidden = found === undefined
    byId('other-wallet-button').hidden = found === undefined
    byId('other-wallet-button').ariaExpanded = String(this.#isOpen)
    byId('wallet-list').hidden = found !== undefined && !this.#isOpen
  }
}
