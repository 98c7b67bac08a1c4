import { base58 } from '@scure/base'
import type { Wallet } from '../../src/browser/client/index.ts'
import { ethereumWallet, solanaWallet } from '../../src/browser/wallets/index.ts'

/** A wallet in which the code of a vendor signs. */
export interface VendorWallet {
  readonly address: string
  /** The wallet, as a page of this origin has it. */
  walletFor(origin: string): Wallet
  /** Makes the user decline the next request. Absent if the vendor's code has no user to ask. */
  declineNext?(): void
  /** What the vendor's code says of a text that a page of this origin asks to sign. Absent if it reads no texts. */
  judge?(text: string, origin: string): Promise<string>
}

/** Signs a text. Resolves with the signature in hex, with or without 0x. */
type Sign = (text: string) => Promise<string>

/** A wallet of Ethereum behind EIP-1193. */
export function providerOf(address: string, sign: Sign, chainId = 1): Wallet {
  return ethereumWallet({
    async request({ method, params = [] }) {
      if (method === 'eth_chainId') return `0x${chainId.toString(16)}`
      if (method !== 'personal_sign') return [address]
      const [hex] = params as readonly string[]
      return await sign(Buffer.from(String(hex).slice(2), 'hex').toString())
    },
  })
}

/** A wallet of Solana by Wallet Standard, which signs bytes, and forms if it has a `signIn`. */
export function standardWalletOf(
  publicKey: Uint8Array,
  sign: (bytes: Uint8Array) => Promise<{ signature: Uint8Array; signedMessage?: Uint8Array }>,
  features: Readonly<Record<string, unknown>> = {},
): Wallet {
  const account = { address: base58.encode(publicKey), publicKey, chains: ['solana:mainnet'], features: [] }
  return solanaWallet({
    ...{ name: 'Vendor', icon: '', chains: ['solana:mainnet'], accounts: [account] },
    features: {
      'standard:connect': { connect: async () => ({ accounts: [account] }) },
      'solana:signMessage': {
        signMessage: async ({ message }: { message: Uint8Array }) => [
          { signedMessage: message, ...(await sign(message)) },
        ],
      },
      ...features,
    },
  })
}
