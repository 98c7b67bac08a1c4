import { base58 } from '@scure/base'
import type {
  SolanaSignInFeature,
  SolanaSignInInput,
  SolanaSignInOutput,
  SolanaSignMessageFeature,
} from '@solana/wallet-standard-features'
import { createSignInMessage } from '@solana/wallet-standard-util'
import type { Wallet, WalletAccount } from '@wallet-standard/base'
import type { StandardConnectFeature, StandardEventsFeature } from '@wallet-standard/features'
import nacl from 'tweetnacl'
import { type Hex, keccak256, stringToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { EthereumProvider } from '../../../src/browser/wallets/index.ts'

/** A wallet's user: what happens when the wallet asks. Each test sets what it needs. */
export interface User {
  /** Called before the wallet answers a request for accounts or a signature. Throws what the wallet would. */
  onAsked: (what: 'connect' | 'sign') => void | Promise<void>
}

type Listener = (value: unknown) => void

/** A wallet as EIP-1193 describes it, with two accounts of viem. */
export class TestEthereum implements EthereumProvider, User {
  readonly accounts = ['first', 'second'].map((name) => privateKeyToAccount(keccak256(stringToHex(name))))
  onAsked: User['onAsked'] = () => {}
  selected = 0
  isLocked = false
  chainId: unknown = '0x1'
  /** Methods in the order in which they were called. */
  readonly calls: string[] = []
  readonly listeners = new Set<readonly [event: string, listener: Listener]>()

  get address(): Hex {
    return this.accounts[this.selected]!.address
  }

  async request({ method, params = [] }: Parameters<EthereumProvider['request']>[0]): Promise<unknown> {
    this.calls.push(method)
    switch (method) {
      case 'eth_accounts':
        return this.isLocked ? [] : [this.address]
      case 'eth_requestAccounts':
        await this.onAsked('connect')
        this.isLocked = false
        this.tell('accountsChanged', [this.address])
        return [this.address]
      case 'eth_chainId':
        return this.chainId
      case 'personal_sign': {
        await this.onAsked('sign')
        const [message, address] = params as [Hex, string]
        const signer = this.accounts.find((account) => account.address === address)
        if (signer === undefined) throw Object.assign(new Error('Unauthorized'), { code: 4100 })
        return signer.signMessage({ message: { raw: message } })
      }
      default:
        throw Object.assign(new Error(`no method ${method}`), { code: 4200 })
    }
  }

  on(event: string, listener: Listener): void {
    this.listeners.add([event, listener])
  }

  removeListener(event: string, listener: Listener): void {
    for (const entry of this.listeners) if (entry[0] === event && entry[1] === listener) this.listeners.delete(entry)
  }

  tell(event: string, value: unknown): void {
    for (const [name, listener] of [...this.listeners]) if (name === event) listener(value)
  }

  /** The user selects the other account. */
  switchAccount(): void {
    this.selected = 1 - this.selected
    this.tell('accountsChanged', [this.address])
  }

  switchChain(chainId: string): void {
    this.chainId = chainId
    this.tell('chainChanged', chainId)
  }

  lock(): void {
    this.isLocked = true
    this.tell('accountsChanged', [])
  }
}

/** What a test changes in a wallet of Solana. */
export interface SolanaOptions {
  readonly name?: string
  /** Features to leave out. */
  readonly without?: readonly string[]
  readonly chains?: Wallet['chains']
  /** The bytes that are signed for a text. */
  readonly frame?: (message: Uint8Array, publicKey: Uint8Array) => Uint8Array
  /** The input that `solana:signIn` writes its text from. */
  readonly rewrite?: (input: SolanaSignInInput) => SolanaSignInInput
}

/**
 * A wallet of Wallet Standard with two accounts of Solana: tweetnacl signs, and Solana's own library writes the forms.
 */
export class TestSolana implements Wallet, User {
  readonly version = '1.0.0'
  readonly name: string
  readonly icon = 'data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4='
  readonly chains: Wallet['chains']
  readonly features: Wallet['features']
  onAsked: User['onAsked'] = () => {}
  readonly keys = [1, 2].map((seed) => nacl.sign.keyPair.fromSeed(new Uint8Array(32).fill(seed)))
  selected = 0
  isConnected = false
  /** Features in the order in which they were used. */
  readonly calls: string[] = []
  readonly listeners = new Set<(changes: { accounts?: Wallet['accounts'] }) => void>()
  readonly #options: SolanaOptions

  constructor(options: SolanaOptions = {}) {
    this.#options = options
    this.name = options.name ?? 'Test Solana'
    this.chains = options.chains ?? ['solana:devnet', 'solana:mainnet']
    const features: StandardConnectFeature & StandardEventsFeature & SolanaSignInFeature & SolanaSignMessageFeature = {
      'standard:connect': { version: '1.0.0', connect: () => this.#connect() },
      'standard:events': {
        version: '1.0.0',
        on: (_, listener) => {
          this.listeners.add(listener)
          return () => this.listeners.delete(listener)
        },
      },
      'solana:signIn': {
        version: '1.0.0',
        signIn: async (...inputs) => Promise.all(inputs.map((input) => this.#signIn(input))),
      },
      'solana:signMessage': {
        version: '1.0.0',
        signMessage: async (...inputs) => {
          this.calls.push('signMessage')
          await this.onAsked('sign')
          return inputs.map(({ message, account }) => this.#sign(message, account))
        },
      },
    }
    this.features = Object.fromEntries(Object.entries(features).filter(([name]) => !options.without?.includes(name)))
  }

  get account(): WalletAccount {
    const { publicKey } = this.keys[this.selected]!
    return { address: base58.encode(publicKey), publicKey, chains: this.chains, features: [] }
  }

  get accounts(): readonly WalletAccount[] {
    return this.isConnected ? [this.account] : []
  }

  /** The user selects the other account. */
  switchAccount(): void {
    this.selected = 1 - this.selected
    this.#tell()
  }

  lock(): void {
    this.isConnected = false
    this.#tell()
  }

  async #connect(): Promise<{ accounts: readonly WalletAccount[] }> {
    this.calls.push('connect')
    await this.onAsked('connect')
    this.isConnected = true
    this.#tell()
    return { accounts: this.accounts }
  }

  async #signIn(input: SolanaSignInInput = {}): Promise<SolanaSignInOutput> {
    this.calls.push('signIn')
    await this.onAsked('sign')
    this.isConnected = true
    const { domain = '', address = this.account.address, ...others } = this.#options.rewrite?.(input) ?? input
    const message = createSignInMessage({ ...others, domain, address })
    return { account: this.account, ...this.#sign(message, this.account) }
  }

  #sign(message: Uint8Array, { publicKey }: WalletAccount): { signedMessage: Uint8Array; signature: Uint8Array } {
    const key = this.keys.find((pair) => base58.encode(pair.publicKey) === base58.encode(Uint8Array.from(publicKey)))!
    const signedMessage = this.#options.frame?.(message, key.publicKey) ?? message
    return { signedMessage, signature: nacl.sign.detached(signedMessage, key.secretKey) }
  }

  #tell(): void {
    for (const listener of [...this.listeners]) listener({ accounts: this.accounts })
  }
}

/** The error of EIP-1193 for a user who declined. */
export function declined(): never {
  throw Object.assign(new Error('Nein.'), { code: 4001 })
}
