import { base58 } from '@scure/base'
import type { SolanaSignInInput } from '@solana/wallet-standard-features'
import { createSignInMessage } from '@solana/wallet-standard-util'
import type { BrowserContext } from 'playwright-core'
import nacl from 'tweetnacl'
import type { Answer } from './ethereum.ts'

/** A Solana wallet that registers itself in the pages of a context by the Wallet Standard. It signs with tweetnacl. */
export class SolanaWallet {
  readonly #keys = nacl.sign.keyPair()
  connects: Answer = 'sign'
  signs: Answer = 'sign'
  /** Texts that the wallet was asked to sign. */
  readonly asked: string[] = []
  /** Number of calls of `solana:signIn`. */
  signIns = 0

  get address(): string {
    return base58.encode(this.#keys.publicKey)
  }

  get publicKey(): number[] {
    return [...this.#keys.publicKey]
  }

  async connect(): Promise<void> {
    decide(this.connects)
  }

  async signMessage(message: number[]): Promise<{ signedMessage: number[]; signature: number[] }> {
    const bytes = Uint8Array.from(message)
    this.asked.push(Buffer.from(bytes).toString('utf8'))
    decide(this.signs)
    return { signedMessage: message, signature: [...nacl.sign.detached(bytes, this.#keys.secretKey)] }
  }

  /** Makes the text of the input by the Wallet Standard's own library. */
  async signIn(input: SolanaSignInInput): Promise<{ signedMessage: number[]; signature: number[] }> {
    this.signIns++
    const { domain = '', address = this.address } = input
    return await this.signMessage([...createSignInMessage({ ...input, domain, address })])
  }
}

function decide(answer: Answer): void {
  if (answer === 'decline') throw { code: 4001, message: 'User rejected the request.' }
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
  const wallet = new SolanaWallet()
  await context.exposeBinding('askSolana', async (_, name: 'connect' | 'signIn' | 'signMessage', input?: unknown) => {
    try {
      return { result: await wallet[name](input as never) }
    } catch (error) {
      return { error }
    }
  })
  await context.addInitScript(
    ({ name, signIn, address, publicKey }) => {
      // biome-ignore lint/suspicious/noExplicitAny: what Playwright puts into the window has no types.
      const scope = globalThis as any
      const ask = async (method: string, input?: unknown) => {
        const { result, error } = await scope.askSolana(method, input)
        if (error) throw Object.assign(new Error(error.message), error)
        return result
      }
      const account = {
        address,
        publicKey: Uint8Array.from(publicKey),
        chains: ['solana:mainnet'],
        features: ['solana:signMessage', ...(signIn ? ['solana:signIn'] : [])],
      }
      const bytesOf = ({ signedMessage, signature }: { signedMessage: number[]; signature: number[] }) => ({
        signedMessage: Uint8Array.from(signedMessage),
        signature: Uint8Array.from(signature),
      })
      const wallet = {
        version: '1.0.0',
        name,
        icon: 'data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA4IDgiPjxyZWN0IHdpZHRoPSI4IiBoZWlnaHQ9IjgiIGZpbGw9IiM5M2YiLz48L3N2Zz4=',
        chains: ['solana:mainnet'],
        accounts: [] as unknown[],
        features: {
          'standard:connect': {
            version: '1.0.0',
            async connect() {
              await ask('connect')
              wallet.accounts = [account]
              return { accounts: wallet.accounts }
            },
          },
          'standard:events': { version: '1.0.0', on: () => () => {} },
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
                    return [{ account, ...bytesOf(await ask('signIn', input)) }]
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
    {
      name: options.name ?? 'Test Ghost',
      signIn: options.signIn ?? true,
      address: wallet.address,
      publicKey: wallet.publicKey,
    },
  )
  return wallet
}
