import { createPublicKey, generateKeyPairSync, hash, sign, verify } from 'node:crypto'
import { formText } from '../../src/core/wallet/sign-in-form.ts'
import type { WalletAdapter } from '../../src/core/wallet/wallet.ts'
import { CountersignError } from '../../src/shared/errors.ts'

const addressForm = /^0x[0-9a-fA-F]{40}$/

/**
 * An adapter for wallets that have a form to sign in over, a chain, and no key that anyone is told: an identity is a
 * CAIP-10 identifier in lower case, as of Ethereum's contract wallets. A signature has the key in front of it, which is
 * hashed to the address.
 */
export const accountAdapter: WalletAdapter = {
  id: 'account',
  displayName: 'Account',
  verify(message, { signatureHex, address = '', chainId = '' }) {
    const bytes = Buffer.from(signatureHex, 'hex')
    const key = createPublicKey({ key: bytes.subarray(0, 44), format: 'der', type: 'spki' })
    if (!verify(null, Buffer.from(message), key, bytes.subarray(44))) return undefined
    if (addressOf(bytes.subarray(0, 44)) !== address) return undefined
    const account = `eip155:${chainId}:${address}`
    return { adapterId: 'account', subject: account.toLowerCase(), publicKeyHex: '', address: account }
  },
  signInText: (form, { address, chainId }) => formText('Test', form, named(address, chainId)),
  accountId(address, chainId) {
    named(address, chainId)
    return `eip155:${chainId}:${address}`
  },
  readAddress: (text) => text.toLowerCase(),
}

/** Such a wallet. */
export interface AccountWallet {
  /** What a caller names it by before it signs. */
  readonly account: { readonly adapterId: 'account'; readonly address: string; readonly chainId: string }
  /** The proof over a text, as a caller sends it. */
  prove(message: string): AccountWallet['account'] & { readonly publicKeyHex: ''; readonly signatureHex: string }
}

/** Makes a wallet on a chain, 1 by default. `on` says which accounts it has on others, with the same key. */
export function makeAccountWallet(): AccountWallet & { on(chainId: string): AccountWallet } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const key = publicKey.export({ format: 'der', type: 'spki' })
  const on = (chainId: string): AccountWallet => {
    const account = { adapterId: 'account', address: addressOf(key), chainId } as const
    return {
      account,
      prove(message) {
        const signatureHex = Buffer.concat([key, sign(null, Buffer.from(message), privateKey)]).toString('hex')
        return { ...account, publicKeyHex: '', signatureHex }
      },
    }
  }
  return { ...on('1'), on }
}

/** In mixed case, as of EIP-55: what is shown differs from what identities are compared by. */
function addressOf(key: Uint8Array): string {
  const digits = hash('sha256', key).slice(0, 39)
  return `0x${digits.slice(0, 20).toUpperCase()}${digits.slice(20)}Ab`.slice(0, 42)
}

function named(address: string | undefined, chainId: string | undefined): { address: string; chainId: string } {
  if (address === undefined || !addressForm.test(address)) throw malformed('address')
  if (chainId === undefined || !/^[1-9]\d*$/.test(chainId)) throw malformed('chain_id')
  return { address, chainId }
}

function malformed(field: string): CountersignError {
  return new CountersignError('INVALID_REQUEST', `${field} is not that of an account`, { metadata: { field } })
}
