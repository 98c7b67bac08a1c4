import type { BrowserContext, Page } from 'playwright-core'
import type { Hex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { InjectedWallet, settled } from './injected-wallet.ts'

/** Options of {@link injectEthereum}. */
export interface EthereumOptions {
  /** Default: "Test Fox". */
  readonly name?: string
  /** Default: io.example.fox. */
  readonly rdns?: string
}

/** An Ethereum wallet that announces itself to the pages of a context by EIP-6963. It signs with accounts of viem. */
export class EthereumWallet extends InjectedWallet {
  account: Pick<PrivateKeyAccount, 'address' | 'signMessage'> = privateKeyToAccount(generatePrivateKey())

  get address(): string {
    return this.account.address
  }

  async changeAccount(): Promise<void> {
    this.account = privateKeyToAccount(generatePrivateKey())
  }

  async switchAccount(page: Page): Promise<void> {
    await this.changeAccount()
    await page.evaluate(
      (accounts) => {
        // biome-ignore lint/suspicious/noExplicitAny: the wallet's own, in the page.
        ;(globalThis as any).tellEthereum('accountsChanged', accounts)
      },
      [this.address],
    )
  }

  async request(method: string, params: readonly unknown[] = []): Promise<unknown> {
    switch (method) {
      case 'eth_chainId':
        return '0x1'
      case 'eth_accounts':
        return [this.account.address]
      case 'eth_requestAccounts':
        await this.answer(this.connects)
        return [this.account.address]
      case 'personal_sign': {
        const [message, address] = params as [Hex, string]
        this.asked.push(Buffer.from(message.slice(2), 'hex').toString('utf8'))
        await this.answer(this.signs)
        if (address.toLowerCase() !== this.account.address.toLowerCase()) throw { code: 4100, message: 'Unauthorized' }
        this.hasSigned = true
        return await this.account.signMessage({ message: { raw: message } })
      }
      default:
        throw { code: 4200, message: `Unsupported: ${method}` }
    }
  }
}

/** Answers a page of this origin. Throws a plain object: fields of errors do not reach the page. */
type Answers = (method: string, params: readonly unknown[] | undefined, origin: string) => Promise<unknown>

/** Puts an Ethereum wallet into the pages of a context, as an extension does. */
export async function injectEthereum(context: BrowserContext, options: EthereumOptions = {}): Promise<EthereumWallet> {
  const wallet = new EthereumWallet(options.name ?? 'Test Fox')
  await announceEthereum(context, { ...options, name: wallet.name }, (method, params) => wallet.request(method, params))
  return wallet
}

let injected = 0

/** Announces a provider by EIP-6963 to the pages of a context. This process answers its requests. */
export async function announceEthereum(
  context: BrowserContext,
  { name, rdns = 'io.example.fox' }: EthereumOptions & { readonly name: string },
  answers: Answers,
): Promise<void> {
  const binding = `askEthereum${injected++}`
  await context.exposeBinding(binding, ({ frame }, method: string, params?: readonly unknown[]) =>
    settled(answers(method, params, new URL(frame.url()).origin)),
  )
  const info = {
    uuid: crypto.randomUUID(),
    name,
    rdns,
    icon: 'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"%3E%3Crect width="8" height="8" fill="%23f60"/%3E%3C/svg%3E',
  }
  await context.addInitScript(
    ({ binding, info }) => {
      // biome-ignore lint/suspicious/noExplicitAny: what a wallet and Playwright put into the window has no types.
      const scope = globalThis as any
      const listeners: [string, (value: unknown) => void][] = []
      const provider = {
        async request({ method, params }: { method: string; params?: unknown[] }) {
          const { result, error } = await scope[binding](method, params)
          if (error) throw Object.assign(new Error(error.message), error)
          return result
        },
        on(name: string, listener: (value: unknown) => void) {
          listeners.push([name, listener])
          return provider
        },
        removeListener(name: string, listener: (value: unknown) => void) {
          const at = listeners.findIndex(([one, other]) => one === name && other === listener)
          if (at >= 0) listeners.splice(at, 1)
          return provider
        },
      }
      scope.tellEthereum = (name: string, value: unknown) => {
        for (const [one, listener] of [...listeners]) if (one === name) listener(value)
      }
      const announce = (): void => {
        const detail = Object.freeze({ info: Object.freeze(info), provider })
        dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }))
      }
      addEventListener('eip6963:requestProvider', announce)
      announce()
    },
    { binding, info },
  )
}
