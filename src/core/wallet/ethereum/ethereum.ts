import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import type { Tracing } from '../../../base/tracing.ts'
import { given } from '../../../shared/defined-fields.ts'
import { type CountersignError, invalidField, refused } from '../../../shared/errors.ts'
import { bytesToHex, hexToBytes } from '../../../shared/hex.ts'
import { type KeyRecovery, portableRecovery } from '../secp256k1.ts'
import { formText } from '../sign-in-form.ts'
import type { Proof, ProvenIdentity, RemoteChecks, WalletAdapter } from '../wallet.ts'
import { accountIdOf, checksummed, isChainId, isReserved, parseAddress, readAccount } from './address.ts'
import { askContract, type ContractAnswer } from './contract.ts'
import { keccak256 } from './keccak.ts'
import { EvmRpc } from './rpc.ts'

const ethereumId = 'ethereum'

/** What a server gives the adapter. */
interface EthereumParts {
  readonly tracing?: Tracing | undefined
  /** Chosen by a self-test at the start. Default: the portable one. */
  readonly recovery?: KeyRecovery | undefined
}

const portableWarning =
  'tiny-secp256k1 (WebAssembly) cannot be loaded here or fails its self-test, so signatures are checked in ' +
  'JavaScript, which takes four times as long'

/**
 * Wallets of Ethereum and of the chains that share its addresses.
 *
 * They sign texts as EIP-191 says, and sign in over the form of EIP-4361. The key is recovered from the signature and
 * has to be that of the address that the proof claims; a proof without an address proves the recovered one. The subject
 * is the address in lower case, on any chain, because a key is the same on all of them.
 *
 * A contract wallet has no key: its chain's RPC is asked (ERC-1271, EIP-6492), if `evmRpc` has one for the chain id of
 * the proof. It is the identity of that chain and of no other, because another contract, or none, can be at the
 * address elsewhere: its subject and address are the CAIP-10 identifier. An account with both, a key and code
 * (EIP-7702), is the identity of the one that answers; the key is tried first.
 *
 * Sources: EIP-55, EIP-191, EIP-2098, EIP-4361, EIP-6492, ERC-1271, CAIP-10.
 */
export function ethereum(
  evmRpc: Readonly<Record<string, string>> = {},
  { tracing, recovery }: EthereumParts = {},
): WalletAdapter {
  const { recover } = recovery ?? portableRecovery
  const rpcs = Object.entries(evmRpc).map(([chainId, url]) => new EvmRpc(chainId, url, tracing))

  const verify = async (message: string, proof: Proof, remote?: RemoteChecks): Promise<ProvenIdentity | undefined> => {
    const signature = readHex('signature_hex', proof.signatureHex)
    const key = proof.publicKeyHex === '' ? undefined : readKey(proof.publicKeyHex)
    const claimed = proof.address === undefined ? undefined : requireAddress(proof.address)
    const hash = signedHash(message)
    const recovered = recover(hash, expanded(signature))
    if (recovered !== undefined && (key === undefined || isFormOfKey(key, recovered))) {
      const address = addressOf(recovered)
      if (address === (claimed ?? address) && !isReserved(address)) {
        return { adapterId: ethereumId, subject: address, publicKeyHex: '', address: checksummed(address) }
      }
    }
    // Only a contract's signature is left, which has no key.
    if (key !== undefined) return undefined
    const chainId = proof.chainId === undefined ? undefined : requireChainId(proof.chainId)
    if (claimed === undefined || chainId === undefined) {
      if (isKeyLength(signature)) return undefined
      throw accountNeeded(chainId === undefined ? 'chain_id' : 'address')
    }
    const rpc = rpcs.find((one) => one.chainId === chainId)
    if (rpc === undefined) {
      if (isKeyLength(signature)) return undefined
      const metadata = { chain_id: chainId, setting: 'COUNTERSIGN_EVM_RPC' }
      throw refused('CONTRACT_WALLET_NEEDS_RPC', { metadata })
    }
    if (isReserved(claimed)) return undefined
    const ask = (): Promise<ContractAnswer> =>
      rpc.ask((request) => askContract({ address: claimed, hash, signature }, request))
    const answer = await (remote === undefined ? ask() : remote.ask(ask))
    // It counts as an answer, and is no verdict on the signature.
    if (answer === 'undecided') throw rpc.unavailable(new Error('the contract takes more gas or time than allowed'))
    if (answer === 'fails') return undefined
    return {
      adapterId: ethereumId,
      subject: accountIdOf(chainId, claimed),
      publicKeyHex: '',
      address: accountIdOf(chainId, checksummed(claimed)),
    }
  }

  return {
    id: ethereumId,
    displayName: 'Ethereum',
    byAddressOnly: true,
    curve: 'secp256k1-recovered',
    envelope: signedHash,
    async checkAtStart(warn) {
      if (recovery?.kind === 'portable') warn(portableWarning)
      await Promise.all(rpcs.map((rpc) => rpc.checkAtStart(warn)))
    },
    verify: (message, proof, _ed25519, remote) => verify(message, proof, remote),
    signInText: (form, { address, chainId }) =>
      formText('Ethereum', form, {
        address: checksummed(requireAddress(address)),
        chainId: requireChainId(chainId),
      }),
    formAccount: ({ address, chainId }) =>
      given({
        address: address === undefined ? undefined : checksummed(requireAddress(address)),
        chainId: chainId === undefined ? undefined : requireChainId(chainId),
      }),
    accountId: (address, chainId) => accountIdOf(requireChainId(chainId), checksummed(requireAddress(address))),
    readAddress: readAccount,
  }
}

function requireAddress(address: string | undefined): string {
  const parsed = address === undefined ? undefined : parseAddress(address)
  if (parsed !== undefined) return parsed
  throw invalidField('address', 'address must be 0x and 40 hex digits, in one case or with the checksum of EIP-55')
}

function requireChainId(chainId: string | undefined): string {
  if (chainId !== undefined && isChainId(chainId)) return chainId
  throw invalidField('chain_id', 'chain_id must be the decimal number of an Ethereum chain, such as 1')
}

function readKey(hex: string): Uint8Array {
  const key = readHex('public_key_hex', hex)
  if ([33, 64, 65].includes(key.length)) return key
  throw invalidField('public_key_hex', 'public_key_hex must be 33, 64 or 65 bytes in hex, or empty')
}

function readHex(field: string, hex: string): Uint8Array {
  const bytes = hexToBytes(hex)
  if (bytes !== undefined) return bytes
  throw invalidField(field, `${field} must be hex`)
}

function accountNeeded(field: 'address' | 'chain_id'): CountersignError {
  return invalidField(
    field,
    `${field} is needed: the signature is not that of a key, and a contract wallet has to be named before it signs`,
  )
}

/**
 * The hash that wallets sign for a text (EIP-191, version 0x45). The byte 0x19 in front is not the beginning of any
 * encoded transaction.
 */
function signedHash(text: string): Uint8Array {
  const bytes = utf8ToBytes(text)
  return keccak256(concatBytes(utf8ToBytes(`\x19Ethereum Signed Message:\n${bytes.length}`), bytes))
}

/** Whether a signature has the length of a key's: 65 bytes, or 64 in the compact form of EIP-2098. */
function isKeyLength({ length }: Uint8Array): boolean {
  return length === 64 || length === 65
}

/** A signature as 65 bytes, also if it is in the compact form of EIP-2098, whose top bit of s is the parity. */
function expanded(signature: Uint8Array): Uint8Array {
  if (signature.length !== 64) return signature
  const whole = Uint8Array.of(...signature, (signature[32] as number) >> 7)
  whole[32] = (whole[32] as number) & 0x7f
  return whole
}

/** The lower-case address of an uncompressed public key (65 bytes). */
function addressOf(publicKey: Uint8Array): string {
  return `0x${bytesToHex(keccak256(publicKey.subarray(1)).subarray(12))}`
}

/**
 * Whether bytes are a public key in one of its forms: 33 bytes compressed, 65 uncompressed, or 64, which is the latter
 * without its first byte. `publicKey` has 65.
 */
function isFormOfKey(bytes: Uint8Array, publicKey: Uint8Array): boolean {
  const compressed = Uint8Array.of(2 + ((publicKey[64] as number) & 1), ...publicKey.subarray(1, 33))
  const forms = [publicKey, publicKey.subarray(1), compressed]
  return forms.some((form) => bytesToHex(form) === bytesToHex(bytes))
}
