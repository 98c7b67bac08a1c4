import { canonicalPayload } from '../../core/order/canonical-payload.ts'
import { walletAdapters } from '../../core/wallet/adapters.ts'
import { isChainId } from '../../core/wallet/ethereum/address.ts'
import type { WalletAdapter } from '../../core/wallet/wallet.ts'
import { parseOrigin } from '../../shared/origin.ts'

/**
 * What a proof artifact has to agree with. An option that is there needs a value: `undefined` is a `TypeError`, because a check
 * that a missing value switches off would go unnoticed.
 */
export interface ProofOptions {
  /** The service's `appName`, which stands at the top of the text. */
  readonly appName: string
  /** Origin of the page that starts the orders, such as `https://app.example`. */
  readonly origin: string
  /** What the order was about, as the application knows it: the hash that it was started with. Default: any. */
  readonly payloadHash?: string
  /** The same as JSON text, in any form that has one meaning (RFC 7493), at most 8 KiB. Default: any. */
  readonly payload?: string
  /** Who must have signed. Default: anyone. */
  readonly owner?: ProofOwner
  /** Earliest time at which the text was issued, by the service's clock, in epoch milliseconds. Default: any. */
  readonly notBefore?: number
  /**
   * Wallet adapters: ids of built-in ones, and objects of your own. Default: nimiq, ed25519, ethereum and solana. Name the service's
   * own: ed25519 and solana sign the same bytes, so that an artifact of the one can be presented as one of the other.
   */
  readonly adapters?: readonly (string | WalletAdapter)[]
  /**
   * Addresses of JSON-RPC servers by EIP-155 chain id, for contract wallets of ethereum. Needs the package viem, which is loaded
   * when such a wallet is met. Default: contract wallets are refused with CONTRACT_WALLET_NEEDS_RPC.
   */
  readonly evmRpc?: Readonly<Record<string, string>>
}

/** A wallet that the application knows. With a key and an address, both must be those of the wallet that signed. */
export interface ProofOwner {
  readonly adapterId: string
  /**
   * Hex in either case. Wallets of some adapters, such as ethereum, are known by their address only; an empty text, as their sessions
   * have, counts as absent.
   */
  readonly publicKeyHex?: string
  /** In any spelling that the adapter knows. For a contract wallet, its CAIP-10 identifier. */
  readonly address?: string
}

/** Options that were checked. */
export interface CheckedOptions {
  readonly appName: string
  readonly origin: string
  readonly payloadHash: string | undefined
  /** Canonical form. */
  readonly payload: string | undefined
  readonly owner: ProofOwner | undefined
  readonly notBefore: number
  readonly adapters: readonly WalletAdapter[]
  readonly evmRpc: Readonly<Record<string, string>>
}

const optionNames = {
  appName: true,
  origin: true,
  payloadHash: true,
  payload: true,
  owner: true,
  notBefore: true,
  adapters: true,
  evmRpc: true,
} as const satisfies Record<keyof ProofOptions, true>

const defaultAdapters = ['nimiq', 'ed25519', 'ethereum', 'solana']

/** Checks the options. Throws a `TypeError` of one line that names the one that is wrong. */
export function checkOptions(options: ProofOptions): CheckedOptions {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(optionNames, name)) throw new TypeError(`${name} is not an option`)
    if (value === undefined) throw new TypeError(`${name} is undefined; leave it out if it is not to be checked`)
  }
  const { payload, owner, notBefore = Number.NEGATIVE_INFINITY, evmRpc = {} } = options
  const origin = parseOrigin(textOf(options, 'origin'))
  if (origin === undefined) throw new TypeError('origin must be one such as https://app.example')
  if (typeof notBefore !== 'number' || Number.isNaN(notBefore)) {
    throw new TypeError('notBefore must be a time in epoch milliseconds')
  }
  for (const [chainId, url] of Object.entries(evmRpc)) {
    // Not repeated: an address can contain a key.
    if (!isChainId(chainId) || !/^https?:\/\//.test(url) || !URL.canParse(url)) {
      throw new TypeError('evmRpc must have http or https addresses by chain id')
    }
  }
  const adapters = walletAdapters(options.adapters ?? defaultAdapters, { evmRpc })
  return {
    appName: textOf(options, 'appName'),
    origin,
    payloadHash: options.payloadHash === undefined ? undefined : textOf(options, 'payloadHash'),
    payload: payload === undefined ? undefined : canonical(payload),
    owner: owner === undefined ? undefined : checkOwner(owner, adapters),
    notBefore,
    adapters,
    evmRpc,
  }
}

function checkOwner(owner: ProofOwner, adapters: readonly WalletAdapter[]): ProofOwner {
  const { adapterId, address } = owner
  const publicKeyHex = owner.publicKeyHex === '' ? undefined : owner.publicKeyHex
  const adapter = adapters.find(({ id }) => id === adapterId)
  if (adapter === undefined) throw new TypeError('owner.adapterId must be the id of one of the adapters')
  if (publicKeyHex === undefined && address === undefined) {
    throw new TypeError('owner needs publicKeyHex or address')
  }
  if (publicKeyHex !== undefined && adapter.byAddressOnly === true) {
    throw new TypeError(`owner.publicKeyHex: wallets of ${adapterId} are known by their address only`)
  }
  if (publicKeyHex !== undefined && !/^([0-9a-f]{2})+$/i.test(publicKeyHex)) {
    throw new TypeError('owner.publicKeyHex must be hex')
  }
  if (address !== undefined && !adapter.sameAddress(address, address)) {
    throw new TypeError(`owner.address is not an address of ${adapterId}`)
  }
  return {
    adapterId,
    ...(publicKeyHex === undefined ? {} : { publicKeyHex: publicKeyHex.toLowerCase() }),
    ...(address === undefined ? {} : { address }),
  }
}

function textOf(options: ProofOptions, name: 'appName' | 'origin' | 'payloadHash'): string {
  const value = options[name]
  if (typeof value === 'string' && value !== '') return value
  throw new TypeError(`${name} must be a text`)
}

function canonical(payload: string): string {
  try {
    return canonicalPayload(payload)
  } catch (cause) {
    // Says what is wrong with it, and quotes nothing of it.
    throw new TypeError(cause instanceof Error ? cause.message : 'payload is not valid', { cause })
  }
}
