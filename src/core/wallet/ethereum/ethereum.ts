import type { Tracing } from '../../../base/tracing.ts'
import { CountersignError } from '../../../shared/errors.ts'
import { hexToBytes } from '../../../shared/hex.ts'
import { formText } from '../form.ts'
import type { Proof, ProvenIdentity } from '../proof.ts'
import type { RemoteChecks, WalletAdapter } from '../wallet.ts'
import { accountIdOf, checksummed, comparable, isChainId, isReserved, parseAddress } from './address.ts'
import { askContract, type ContractAnswer } from './contract.ts'
import { addressOf, isFormOfKey, isKeyLength, recoverKey, signedHash } from './recovery.ts'
import { EvmRpc } from './rpc.ts'

const ethereumId = 'ethereum'

/**
 * Wallets of Ethereum and of the chains that share its addresses.
 *
 * They sign texts as EIP-191 says, and sign in over the form of EIP-4361. The key is recovered from the signature and has to be
 * that of the address that the proof claims; a proof without an address proves the recovered one. The subject is the address in
 * lower case, on whatever chain, because a key is the same on all of them.
 *
 * A contract wallet has no key: its chain's RPC is asked (ERC-1271, EIP-6492), if `evmRpc` has one for the chain id of the proof. It
 * is the identity of that chain and of no other, because another contract, or nobody's, can be at the address elsewhere: its
 * subject and address are the CAIP-10 identifier. An account with both, a key and code (EIP-7702), is the identity of the
 * one that answers; the key is tried first.
 *
 * Sources: EIP-55, EIP-191, EIP-2098, EIP-4361, EIP-6492, ERC-1271, CAIP-10.
 */
export function ethereum(evmRpc: Readonly<Record<string, string>> = {}, tracing?: Tracing): WalletAdapter {
  const rpcs = Object.entries(evmRpc).map(([chainId, url]) => new EvmRpc(chainId, url, tracing))

  const verify = async (message: string, proof: Proof, remote?: RemoteChecks): Promise<ProvenIdentity | undefined> => {
    const signature = readHex('signature_hex', proof.signatureHex)
    const key = proof.publicKeyHex === '' ? undefined : readKey(proof.publicKeyHex)
    const claimed = proof.address === undefined ? undefined : requireAddress(proof.address)
    const hash = signedHash(message)
    const recovered = recoverKey(hash, signature)
    if (recovered !== undefined && (key === undefined || isFormOfKey(key, recovered))) {
      const address = addressOf(recovered)
      if (address === (claimed ?? address) && !isReserved(address)) {
        return { adapterId: ethereumId, subject: address, publicKeyHex: '', address: checksummed(address) }
      }
    }
    // All that is left is a contract's, which has no key.
    if (key !== undefined) return undefined
    const chainId = proof.chainId === undefined ? undefined : requireChainId(proof.chainId)
    if (claimed === undefined || chainId === undefined) {
      if (isKeyLength(signature)) return undefined
      throw accountNeeded(chainId === undefined ? 'chain_id' : 'address')
    }
    const rpc = rpcs.find((one) => one.chainId === chainId)
    if (rpc === undefined) {
      if (isKeyLength(signature)) return undefined
      throw new CountersignError(
        'CONTRACT_WALLET_NEEDS_RPC',
        `The signature is that of a contract wallet, and the server has no RPC of chain ${chainId} to ask (COUNTERSIGN_EVM_RPC); sign in with another wallet`,
        { metadata: { chain_id: chainId, setting: 'COUNTERSIGN_EVM_RPC' } },
      )
    }
    if (isReserved(claimed)) return undefined
    const ask = (): Promise<ContractAnswer> =>
      rpc.ask((calls) => askContract({ address: claimed, hash, signature }, calls))
    const answer = await (remote === undefined ? ask() : remote.ask(ask))
    // It was answered, so that it counts, but not whether the signature holds.
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
    async checkAtStart(warn) {
      await Promise.all(rpcs.map((rpc) => rpc.checkAtStart(warn)))
    },
    verify: (message, proof, _ed25519, remote) => verify(message, proof, remote),
    signInText: (form, { address, chainId }) =>
      formText('Ethereum', form, {
        address: checksummed(requireAddress(address)),
        chainId: requireChainId(chainId),
      }),
    accountId: (address, chainId) => accountIdOf(requireChainId(chainId), checksummed(requireAddress(address))),
    sameAddress(a, b) {
      const parsed = comparable(a)
      return parsed !== undefined && parsed === comparable(b)
    },
  }
}

function requireAddress(address: string | undefined): string {
  const parsed = address === undefined ? undefined : parseAddress(address)
  if (parsed !== undefined) return parsed
  throw malformed('address', 'address must be 0x and 40 hex digits, in one case or with the checksum of EIP-55')
}

function requireChainId(chainId: string | undefined): string {
  if (chainId !== undefined && isChainId(chainId)) return chainId
  throw malformed('chain_id', 'chain_id must be the decimal number of an Ethereum chain, such as 1')
}

function readKey(hex: string): Uint8Array {
  const key = readHex('public_key_hex', hex)
  if ([33, 64, 65].includes(key.length)) return key
  throw malformed('public_key_hex', 'public_key_hex must be 33, 64 or 65 bytes in hex, or empty')
}

function readHex(field: string, hex: string): Uint8Array {
  const bytes = hexToBytes(hex)
  if (bytes !== undefined) return bytes
  throw malformed(field, `${field} must be hex`)
}

function accountNeeded(field: 'address' | 'chain_id'): CountersignError {
  return malformed(
    field,
    `${field} is needed: the signature is not that of a key, and a contract wallet has to be named before it signs`,
  )
}

function malformed(field: string, message: string): CountersignError {
  return new CountersignError('INVALID_REQUEST', message, { metadata: { field } })
}
