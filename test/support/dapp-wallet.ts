import { base58 } from '@scure/base'
import type { BrowserContext, Page } from 'playwright-core'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { makeSolanaWallet } from './solana.ts'

/** An error of EIP-1193. */
class ProviderError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * A wallet of the test in a browser: Ethereum by EIP-1193 and EIP-6963, Solana by Wallet Standard, with keys that stay
 * in this process. It counts what its user would be asked.
 */
export class DappWallet {
  /** Accounts of Ethereum, of which the first is selected at the start. */
  readonly accounts = [0, 1].map(() => privateKeyToAccount(generatePrivateKey()))
  readonly solana = makeSolanaWallet()
  /** Questions to the user, in order: `connect`, `sign`. */
  readonly prompts: string[] = []
  /** Whether the user declines the next question for a signature. */
  declinesNext = false
  #selected = 0
  #isConnected = false
  readonly #pages = new Set<Page>()

  get address(): string {
    return this.accounts[this.#selected]!.address
  }

  /** Puts the wallet into all pages that a context opens from now on. */
  async install(context: BrowserContext): Promise<void> {
    context.on('page', (page) => this.#pages.add(page))
    for (const page of context.pages()) this.#pages.add(page)
    await context.exposeFunction('walletOfTest', async (method: string, params: readonly string[]) => {
      try {
        return { result: await this.#answer(method, params) }
      } catch (error) {
        const { code = -32_603, message } = error as ProviderError
        return { error: { code, message } }
      }
    })
    await context.addInitScript(injected, this.solana.address)
  }

  /** Selects another account, as the user does in the wallet. Pages hear of it. */
  async select(index: number): Promise<void> {
    this.#selected = index
    const script = `dispatchEvent(new CustomEvent('wallet-of-test', { detail: ['${this.address.toLowerCase()}'] }))`
    await Promise.all([...this.#pages].filter((page) => !page.isClosed()).map((page) => page.evaluate(script)))
  }

  async #answer(method: string, params: readonly string[]): Promise<unknown> {
    // In lower case, as wallets have them.
    const open = () => (this.#isConnected ? [this.address.toLowerCase()] : [])
    switch (method) {
      case 'eth_requestAccounts':
      case 'solana_connect':
        if (!this.#isConnected) this.prompts.push('connect')
        this.#isConnected = true
        return open()
      case 'eth_accounts':
        return open()
      case 'eth_chainId':
        return '0x1'
      case 'personal_sign': {
        this.#askToSign()
        const [raw = '', address = ''] = params
        const signer = this.accounts.find((account) => account.address.toLowerCase() === address.toLowerCase())
        if (signer === undefined) throw new ProviderError(4100, 'no such account')
        return await signer.signMessage({ message: { raw: raw as `0x${string}` } })
      }
      case 'solana_sign':
        this.#askToSign()
        return base58.encode(Buffer.from(this.solana.sign(Buffer.from(params[0] ?? '', 'hex')), 'hex'))
      case 'wallet_revokePermissions':
        this.#isConnected = false
        return null
      default:
        throw new ProviderError(-32_601, `${method} is not supported`)
    }
  }

  #askToSign(): void {
    this.prompts.push('sign')
    const declines = this.declinesNext
    this.declinesNext = false
    if (declines) throw new ProviderError(4001, 'User rejected the request')
  }
}

/** Runs in the page before its scripts. */
function injected(solanaAddress: string): void {
  type Answer = { readonly result?: unknown; readonly error?: { readonly code: number; readonly message: string } }
  const bridge = globalThis as unknown as { walletOfTest(method: string, params: readonly unknown[]): Promise<Answer> }
  const ask = async (method: string, params: readonly unknown[] = []): Promise<unknown> => {
    const { result, error } = await bridge.walletOfTest(method, params)
    if (error !== undefined) throw Object.assign(new Error(error.message), { code: error.code })
    return result
  }
  const icon = 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>'

  const listeners = new Set<(accounts: unknown) => void>()
  addEventListener('wallet-of-test', (event) => {
    for (const listener of listeners) listener((event as CustomEvent).detail)
  })
  const provider = {
    request: ({ method, params }: { method: string; params?: readonly unknown[] }) => ask(method, params),
    on: (event: string, listener: (value: unknown) => void) =>
      void (event === 'accountsChanged' && listeners.add(listener)),
    removeListener: (_: string, listener: (value: unknown) => void) => void listeners.delete(listener),
  }
  const info = { uuid: '350670db-19fa-4704-a166-e52e178b59d2', name: 'Test Wallet', icon, rdns: 'example.wallet' }
  const announce = () =>
    dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
  addEventListener('eip6963:requestProvider', announce)
  announce()

  const digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
  const bytesOf = (text: string, length: number) => {
    let number = [...text].reduce((sum, digit) => sum * 58n + BigInt(digits.indexOf(digit)), 0n)
    const bytes = new Uint8Array(length)
    for (let at = length - 1; at >= 0; at--, number >>= 8n) bytes[at] = Number(number & 255n)
    return bytes
  }
  const chains = ['solana:mainnet'] as const
  const features = ['solana:signMessage', 'solana:signTransaction'] as const
  const account = { address: solanaAddress, publicKey: bytesOf(solanaAddress, 32), chains, features }
  const accounts: unknown[] = []
  const wallet = {
    version: '1.0.0',
    name: 'Test Wallet of Solana',
    icon: icon as `data:image/svg+xml;base64,${string}`,
    chains,
    get accounts() {
      return accounts
    },
    features: {
      'standard:connect': {
        version: '1.0.0',
        async connect({ silent }: { silent?: boolean } = {}) {
          if (silent !== true) await ask('solana_connect')
          if (silent !== true) accounts.splice(0, 1, account)
          return { accounts }
        },
      },
      'standard:disconnect': { version: '1.0.0', disconnect: async () => void accounts.splice(0) },
      'standard:events': { version: '1.0.0', on: () => () => {} },
      'solana:signMessage': {
        version: '1.0.0',
        async signMessage({ message }: { message: Uint8Array }) {
          const hex = Array.from(message, (byte) => byte.toString(16).padStart(2, '0')).join('')
          const signature = bytesOf((await ask('solana_sign', [hex])) as string, 64)
          return [{ signedMessage: message, signature }]
        },
      },
      'solana:signTransaction': {
        version: '1.0.0',
        supportedTransactionVersions: ['legacy'],
        signTransaction: () => {},
      },
    },
  }
  const register = ({ register: add }: { register(one: unknown): void }) => add(wallet)
  addEventListener('wallet-standard:app-ready', (event) => register((event as CustomEvent).detail))
  dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: register }))
}
