import { utf8ToBytes } from '@noble/hashes/utils.js'
import { bytesToHex } from '../../../shared/hex.ts'
import { keccak256 } from './keccak.ts'

const addressForm = /^0x([0-9a-f]{40}|[0-9A-F]{40}|[0-9a-fA-F]{40})$/
const accountForm = /^eip155:([1-9][0-9]{0,15}):(0x[0-9a-fA-F]{40})$/

/**
 * An address in lower case; `undefined` if the text is not `0x` and 40 hex digits, or is in mixed case that is not that
 * of EIP-55. A wrong checksum is never repaired, because it means that a letter was misread.
 */
export function parseAddress(text: string): string | undefined {
  if (!addressForm.test(text)) return undefined
  const lower = text.toLowerCase()
  const digits = text.slice(2)
  const isMixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase()
  return isMixed && text !== checksummed(lower) ? undefined : lower
}

/** A lower-case address with the checksum of EIP-55 in the case of its letters. */
export function checksummed(address: string): string {
  const digits = address.slice(2)
  const hash = bytesToHex(keccak256(utf8ToBytes(digits)))
  const letters = [...digits].map((digit, i) =>
    Number.parseInt(hash.charAt(i), 16) >= 8 ? digit.toUpperCase() : digit,
  )
  return `0x${letters.join('')}`
}

/** A chain id as EIP-4361 writes it: decimal digits without leading zeros, at most 2^53 - 1. */
export function isChainId(text: string): boolean {
  return /^[1-9][0-9]{0,15}$/.test(text) && Number.isSafeInteger(Number(text))
}

/** The CAIP-10 identifier of an account. `address` is in lower case or in EIP-55, and so is the result. */
export function accountIdOf(chainId: string, address: string): string {
  return `eip155:${chainId}:${address}`
}

/** An account of a chain. */
export interface ChainAccount {
  readonly chainId: string
  /** Lower case. */
  readonly address: string
}

/**
 * Parts of a CAIP-10 identifier of this namespace; `undefined` for any other text, and for a malformed chain or
 * address.
 */
export function parseAccountId(text: string): ChainAccount | undefined {
  const [, chainId, address] = accountForm.exec(text) ?? []
  if (chainId === undefined || address === undefined || !isChainId(chainId)) return undefined
  const lower = parseAddress(address)
  return lower === undefined ? undefined : { chainId, address: lower }
}

/** An address, alone or as CAIP-10 with its chain, with its checksum; `undefined` if the text is neither. */
export function readAccount(text: string): string | undefined {
  const account = parseAccountId(text)
  const address = account?.address ?? parseAddress(text)
  if (address === undefined) return undefined
  return account === undefined ? checksummed(address) : accountIdOf(account.chainId, checksummed(address))
}

/**
 * Whether an address is the zero address or in the range that chains keep for precompiled contracts, the first 65,536.
 * Its key is unknown, and what answers there was not deployed.
 */
export function isReserved(address: string): boolean {
  return /^0x0{36}/.test(address)
}
