import { ed25519 } from '@noble/curves/ed25519.js'
import { base58 } from '@scure/base'
import { given } from '../../shared/defined-fields.ts'
import { type CountersignError, invalidField, refused } from '../../shared/errors.ts'
import { bytesToHex } from '../../shared/hex.ts'
import { readHex } from './ed25519.ts'
import { formText } from './sign-in-form.ts'
import type { WalletAdapter } from './wallet.ts'

/** As many characters as 32 bytes can have in base58, which has no check digits. */
const addressForm = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/

/** What Sign-In With Solana allows as a chain id. */
const chainIdForm = /^(?:(?:solana:)?(?:mainnet|testnet|devnet)|localnet)$/

/**
 * CAIP-2 references: the first 32 characters of the hash of a cluster's first block. A local cluster has none that
 * lasts.
 */
const references: ReadonlyMap<string, string> = new Map([
  ['mainnet', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'],
  ['testnet', '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z'],
  ['devnet', 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1'],
])

/**
 * Solana wallets.
 *
 * A wallet signs the text's UTF-8 bytes (`solana:signIn`, `solana:signMessage`), or an off-chain message around them,
 * because a Ledger and other hardware wallets sign no bare text. Both count for sign-ins, which are over the text of
 * Sign-In With Solana, and for sign orders, which are over the service's plain text. The off-chain messages are made
 * here from the text; none is taken from the client.
 *
 * No such signature is one over a transaction. A text begins with a printable character or with the first byte of a
 * longer one. As the first byte of a transaction's message, the former is the number of signatures, of which there
 * would be 32 or more and fit no packet, and the latter is a version of 66 or more, which does not exist; version 127
 * is the 0xff of off-chain messages.
 *
 * The subject is the public key in lower-case hex; the address is the key in base58. Keys that are no point of the
 * curve, such as addresses that programs own, and those of small order, for which anyone can sign, are refused before
 * anything else.
 *
 * A signature over the plain text of a sign order is also one of the adapter `ed25519`, whose wallets sign the same
 * bytes.
 *
 * Sources: phantom/sign-in-with-solana; CAIP-10 and CAIP-2 with the namespace solana; see also
 * {@link offChainMessages}.
 */
export const solana: WalletAdapter = {
  id: 'solana',
  displayName: 'Solana',
  curve: 'ed25519',
  envelope: (text) => new TextEncoder().encode(text),

  verify(message, { publicKeyHex: hex, signatureHex, address: claimed }, verifier) {
    const publicKey = readHex('public_key_hex', hex, 32)
    const signature = readHex('signature_hex', signatureHex, 64)
    if (!isKey(publicKey)) return undefined
    const signedBytes = [new TextEncoder().encode(message), ...offChainMessages(message, publicKey)]
    if (!signedBytes.some((bytes) => verifier.verify(signature, bytes, publicKey))) return undefined
    const address = base58.encode(publicKey)
    if (claimed !== undefined && claimed !== address) {
      throw refused('ADDRESS_MISMATCH')
    }
    const publicKeyHex = bytesToHex(publicKey)
    return { adapterId: solana.id, subject: publicKeyHex, publicKeyHex, address }
  },

  signInText(form, { address, chainId, publicKeyHex }) {
    if (address !== undefined) requireAddress(address)
    if (chainId !== undefined) requireChainId(chainId)
    return formText('Solana', form, { address: address ?? addressOf(publicKeyHex), chainId })
  },

  formAccount({ address, chainId }) {
    if (address !== undefined) requireAddress(address)
    if (chainId !== undefined) requireChainId(chainId)
    return given({ address, chainId })
  },

  accountId(address, chainId) {
    requireAddress(address)
    requireChainId(chainId)
    const reference = references.get(chainId.replace('solana:', ''))
    if (reference === undefined) throw malformed('chain_id', 'must not be localnet for an order that names the account')
    return `solana:${reference}:${address}`
  },

  // An address has one spelling.
  readAddress: (text) => (isAddress(text) ? text : undefined),
}

/**
 * The address as far as it is known: before there is a proof, a page can ask for the text without it and fill it in.
 */
function addressOf(publicKeyHex: string | undefined): string {
  return publicKeyHex === undefined ? '' : base58.encode(readHex('public_key_hex', publicKeyHex, 32))
}

function requireAddress(address: string): void {
  if (!isAddress(address)) throw malformed('address', 'is not the address of a Solana wallet')
}

function requireChainId(chainId: string): void {
  if (chainIdForm.test(chainId)) return
  throw malformed('chain_id', 'must be mainnet, testnet, devnet, localnet, or one of the first three behind "solana:"')
}

function isAddress(text: string): boolean {
  return addressForm.test(text) && isKey(base58.decode(text))
}

/** Whether a wallet can have this key: 32 bytes, a point of the curve in its one encoding, of large order. */
function isKey(publicKey: Uint8Array): boolean {
  try {
    return !ed25519.Point.fromBytes(publicKey).isSmallOrder()
  } catch {
    return false
  }
}

function malformed(field: string, problem: string): CountersignError {
  return invalidField(field, `${field} ${problem}`)
}

const utf8 = new TextEncoder()

/** `\xff` and "solana offchain". No transaction and no UTF-8 text begins with 0xff. */
const signingDomain = Uint8Array.of(0xff, ...utf8.encode('solana offchain'))

/** Largest packet that the network carries, and so the most that a device of Solana's expects to sign, in bytes. */
const maxPacketBytes = 1232
/** The version 0 and legacy layouts write the text's length in 16 bits. */
const maxTextBytes = 0xffff

/** How the older layouts declare a text. */
const format = { ascii: 0, utf8: 1, longUtf8: 2 } as const

/**
 * The off-chain messages around a text that one wallet signs in place of it: hardware wallets sign nothing else. The
 * text stands in each of them whole and last, so that a signature over one says what a signature over the text says.
 *
 * The layouts are version 1; version 0 with an application domain of zeros; and the layout of the older solana-sdk
 * crate and of Ledger's Solana app before 1.8, which is also called version 0 and names no signer. No two texts have a
 * message in common.
 *
 * Sources: the proposal "off-chain message signing" of agave, and @solana/offchain-messages; for the formats that
 * wallets declare also solana-offchain-message (Rust) and Ledger's signer for Solana, which differ from each other.
 */
function offChainMessages(text: string, publicKey: Uint8Array): Uint8Array[] {
  const body = utf8.encode(text)
  const versionOne = join([signingDomain, Uint8Array.of(1, 1), publicKey, body])
  if (body.length > maxTextBytes) return [versionOne]
  const versionZero = (declared: number): Uint8Array => {
    const header = [Uint8Array.of(0), new Uint8Array(32), Uint8Array.of(declared, 1), publicKey]
    return join([signingDomain, ...header, lengthOf(body), body])
  }
  const legacy = (declared: number): Uint8Array =>
    join([signingDomain, Uint8Array.of(0, declared), lengthOf(body), body])
  return [
    versionOne,
    ...formatsInVersionZero(text, body.length).map(versionZero),
    ...formatsInLegacy(text, body.length).map(legacy),
  ]
}

/**
 * The proposal knows no line feed in ASCII, Ledger does; and the proposal bounds the whole message in the first two
 * formats, others the text alone, and Ledger takes 15 KiB.
 */
function formatsInVersionZero(text: string, bytes: number): number[] {
  const header = signingDomain.length + 69
  return [
    ...(/^[\n\x20-\x7e]*$/.test(text) ? [format.ascii] : []),
    format.utf8,
    ...(header + bytes > maxPacketBytes ? [format.longUtf8] : []),
  ]
}

/** The crate bounds the whole message, Ledger the text alone. */
function formatsInLegacy(text: string, bytes: number): number[] {
  const header = signingDomain.length + 4
  const short = /^[\x20-\x7e]*$/.test(text) ? format.ascii : format.utf8
  return [...(bytes <= maxPacketBytes ? [short] : []), ...(header + bytes > maxPacketBytes ? [format.longUtf8] : [])]
}

function lengthOf({ length }: Uint8Array): Uint8Array {
  return Uint8Array.of(length & 0xff, length >> 8)
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  for (const part of parts) {
    joined.set(part, offset)
    offset += part.length
  }
  return joined
}
