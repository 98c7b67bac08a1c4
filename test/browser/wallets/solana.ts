import type { SolanaSignInInput } from '@solana/wallet-standard-features'
import { createSignInMessage } from '@solana/wallet-standard-util'
import type { BrowserContext, Page } from 'playwright-core'
import { makeSolanaWallet } from '../../support/solana.ts'
import { InjectedWallet, settled } from './injected-wallet.ts'

/** An account as it goes into the page. */
interface Account {
  readonly address: string
  readonly publicKey: number[]
}

interface Signed {
  readonly signedMessage: number[]
  readonly signature: number[]
}

/** A Solana wallet that registers itself in the pages of a context by the Wallet Standard. It signs with tweetnacl. */
export class SolanaWallet extends InjectedWallet {
  #keys = makeSolanaWallet()
  /** Number of calls of `solana:signIn`. */
  signIns = 0

  get address(): string {
    return this.#keys.address
  }

  async changeAccount(page: Page): Promise<void> {
    await this.#setAccount(page, false)
  }

  async switchAccount(page: Page): Promise<void> {
    await this.#setAccount(page, true)
  }

  async connect(): Promise<Account> {
    await this.answer(this.connects)
    return this.#account
  }

  async signMessage(message: number[]): Promise<Signed> {
    const bytes = Uint8Array.from(message)
    this.asked.push(Buffer.from(bytes).toString('utf8'))
    await this.answer(this.signs)
    this.hasSigned = true
    return { signedMessage: message, signature: [...Buffer.from(this.#keys.sign(bytes), 'hex')] }
  }

  /** Makes the text of the input by the Wallet Standard's own library. */
  async signIn(input: SolanaSignInInput): Promise<Signed> {
    this.signIns++
    const { domain = '', address = this.address } = input
    return await this.signMessage([...createSignInMessage({ ...input, domain, address })])
  }

  get #account(): Account {
    return { address: this.address, publicKey: [...this.#keys.publicKey] }
  }

  async #setAccount(page: Page, isTold: boolean): Promise<void> {
    this.#keys = makeSolanaWallet()
    await page.evaluate(
      ({ account, isTold }) => {
        // biome-ignore lint/suspicious/noExplicitAny: the wallet's own, in the page.
        ;(globalThis as any).setSolanaAccount(account, isTold)
      },
      { account: this.#account, isTold },
    )
  }
}

/** Options of {@link injectSolana}. */
export interface SolanaOptions {
  /** Default: "Test Ghost". */
  readonly name?: string
  /** Whether it offers `solana:signIn`. Default true. */
  readonly signIn?: boolean
}

/** Puts a Solana wallet into the pages of a context, as an extension does. */
export async function injectSolana(context: BrowserContext, options: SolanaOptions = {}): Promise<SolanaWallet> {
  const wallet = new SolanaWallet(options.name ?? 'Test Ghost')
  await context.exposeBinding('askSolana', (_, name: 'connect' | 'signIn' | 'signMessage', input?: unknown) =>
    settled<unknown>(wallet[name](input as never)),
  )
  await context.addInitScript(
    ({ name, signIn }) => {
      // biome-ignore lint/suspicious/noExplicitAny: what Playwright puts into the window has no types.
      const scope = globalThis as any
      const ask = async (method: string, input?: unknown) => {
        const { result, error } = await scope.askSolana(method, input)
        if (error) throw Object.assign(new Error(error.message), error)
        return result
      }
      let accounts: object[] = []
      const listeners = new Set<(changes: object) => void>()
      scope.setSolanaAccount = ({ address, publicKey }: Account, isTold: boolean) => {
        const features = ['solana:signMessage', ...(signIn ? ['solana:signIn'] : [])]
        accounts = [{ address, publicKey: Uint8Array.from(publicKey), chains: ['solana:mainnet'], features }]
        if (isTold) for (const listener of [...listeners]) listener({ accounts })
      }
      const bytesOf = ({ signedMessage, signature }: Signed) => ({
        signedMessage: Uint8Array.from(signedMessage),
        signature: Uint8Array.from(signature),
      })
      const wallet = {
        version: '1.0.0',
        name,
        icon: 'data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA4IDgiPjxyZWN0IHdpZHRoPSI4IiBoZWlnaHQ9IjgiIGZpbGw9IiM5M2YiLz48L3N2Zz4=',
        chains: ['solana:mainnet'],
        get accounts() {
          return accounts
        },
        features: {
          'standard:connect': {
            version: '1.0.0',
            async connect() {
              scope.setSolanaAccount(await ask('connect'), true)
              return { accounts }
            },
          },
          'standard:events': {
            version: '1.0.0',
            on(_event: 'change', listener: (changes: object) => void) {
              listeners.add(listener)
              return () => listeners.delete(listener)
            },
          },
          'solana:signMessage': {
            version: '1.0.0',
            async signMessage({ message }: { message: Uint8Array }) {
              return [bytesOf(await ask('signMessage', [...message]))]
            },
          },
          ...(signIn
            ? {
                'solana:signIn': {
                  version: '1.0.0',
                  async signIn(input: unknown) {
                    const signed = bytesOf(await ask('signIn', input))
                    return [{ account: accounts[0], ...signed }]
                  },
                },
              }
            : {}),
        },
      }
      const register = (api: { register(wallet: unknown): void }): void => api.register(wallet)
      dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: register }))
      addEventListener('wallet-standard:app-ready', (event) => register((event as CustomEvent).detail))
    },
    { name: wallet.name, signIn: options.signIn ?? true },
  )
  return wallet
}
