import { bytesToHex } from '../../../shared/hex.ts'
import { type RpcAnswer, RpcFailure, type RpcRequest, RpcTimeout, succeeded } from './rpc.ts'

/**
 * Verdict of an RPC on a contract wallet's signature. `undecided`: the check takes more gas or time than the RPC, or
 * this service, allows.
 */
export type ContractAnswer = 'holds' | 'fails' | 'undecided'

/** A signature that a contract is asked about. */
export interface ContractClaim {
  /** Lower case. */
  readonly address: string
  /** 32 bytes. */
  readonly hash: Uint8Array
  readonly signature: Uint8Array
}

/** Selector of `isValidSignature(bytes32,bytes)` (ERC-1271), which is also what a contract returns if it agrees. */
const selector = '1626ba7e'

/** All that a contract returns for a signature that holds: the selector of the function, and zeros. */
const magicWord = `0x${selector}${'0'.repeat(56)}`

/**
 * Gas for a whole check, 10 million: several times what it takes to deploy a wallet and to check a passkey in a
 * contract.
 */
const gasLimit = '0x989680'

/**
 * Sender of the calls: the last 20 bytes of the Keccak-256 of `countersign`, whose key is unknown. The default would be
 * the zero address, which some wallets take for a simulation, and then check nothing.
 */
const sender = '0x6bff378409eacb72149d72b294a03a08595461c2'

/**
 * Init code that checks the signature of a wallet that is not deployed, in one call that changes nothing. It returns
 * the byte 1 if the wallet was deployed by the factory and answers with the magic word and nothing else, and the byte 0
 * otherwise; the call as a whole does not revert. Written by hand, because the published validator of EIP-6492 calls
 * the factory of a deployed wallet too, and so lets a signature's author call any contract that makes the signature
 * valid.
 *
 * Behind it are four words (wallet, factory, length of the factory's call data, length of the wallet's) and the call
 * data of both.
 */
const deployAndAsk = [
  '6061380360616000', //     codecopy(0, 0x61, codesize - 0x61): everything behind this code to memory.
  '39',
  '6000513b602157', //       If there is code at the wallet by now, to 0x21. Otherwise
  '6000600060405160806000602051', // call(gas, factory, 0, factory data).
  '5af150',
  '5b', //                   0x21:
  '6000513b15605657', //     If there is still no code at the wallet, to 0x56. Otherwise
  '60206000606051604051608001600051', // staticcall(gas, wallet, wallet data), with the answer to memory at 0.
  '5afa',
  '60203d1416', //           It succeeded, with 32 bytes
  '631626ba7e60e01b600051', // that are the magic word.
  '1416',
  '600053', //               Return that as one byte.
  '60016000f3',
  '5b', //                   0x56:
  '6000600053', //           Return the byte 0.
  '60016000f3',
].join('')

/**
 * Asks an RPC whether a contract wallet takes a signature for its own, in the chain's present state. A wallet that is
 * deployed is asked directly (ERC-1271), and no factory is called, even if the signature names one; one that is not
 * needs a signature that names its factory (EIP-6492). Rejects with an `RpcFailure` if the RPC does not answer.
 */
export async function askContract(claim: ContractClaim, request: RpcRequest): Promise<ContractAnswer> {
  const { address } = claim
  const wrapped = unwrap(bytesToHex(claim.signature))
  if (wrapped === undefined) return 'fails'
  const data = callData(claim.hash, wrapped.signature)
  if (await hasCode(address, request)) {
    return await call(request, { to: address, data: `0x${data}` }, (result) => result === magicWord)
  }
  if (wrapped.factory === undefined) return 'fails'
  const { factory, factoryData } = wrapped
  const words = [address.slice(2).padStart(64, '0'), factory, word(factoryData.length / 2), word(data.length / 2)]
  const initCode = `0x${deployAndAsk}${words.join('')}${factoryData}${data}`
  return await call(request, { data: initCode }, (result) => {
    if (result === '0x00' || result === '0x01') return result === '0x01'
    throw new RpcFailure('eth_call: init code was not run')
  })
}

/**
 * The call `isValidSignature(hash, signature)` in the encoding of Ethereum's ABI. Here and in {@link unwrap}, hex has
 * no `0x`. Written by hand in place of a library of 63 MB; a test compares both functions with viem's.
 */
export function callData(hash: Uint8Array, signature: string): string {
  const padded = signature.padEnd(Math.ceil(signature.length / 64) * 64, '0')
  return selector + bytesToHex(hash) + word(64) + word(signature.length / 2) + padded
}

/** A number as a word of the ABI: 32 bytes. */
function word(number: number): string {
  return number.toString(16).padStart(64, '0')
}

/** A contract wallet's signature, and how the wallet is deployed if the signature says so. */
type Unwrapped =
  | { readonly signature: string; readonly factory?: never }
  | { readonly signature: string; readonly factory: string; readonly factoryData: string }

/** The 32 bytes at the end of a signature in the wrapper of EIP-6492. */
const wrapperMark = '6492'.repeat(16)

/**
 * Takes the wrapper of EIP-6492 off a signature: the ABI's encoding of a factory (as a word), its call data and the
 * signature, with the mark behind it. A signature without the mark is returned as it is; `undefined` for a malformed
 * wrapper.
 */
export function unwrap(signature: string): Unwrapped | undefined {
  if (!signature.endsWith(wrapperMark)) return { signature }
  const [factoryData, inner] = [bytesAt(signature, 1), bytesAt(signature, 2)]
  if (factoryData === undefined || inner === undefined) return undefined
  // An address is the last 20 bytes of its word.
  return { factory: signature.slice(24, 64).padStart(64, '0'), factoryData, signature: inner }
}

/** The value of type `bytes` whose offset is in a word; `undefined` if the data ends before it does. */
function bytesAt(data: string, index: number): string | undefined {
  const start = 2 * numberAt(data, 64 * index)
  const end = start + 64 + 2 * numberAt(data, start)
  return end <= data.length ? data.slice(start + 64, end) : undefined
}

/** The number in the word that begins at a character; NaN if the data ends before the word does. */
function numberAt(data: string, start: number): number {
  const text = data.slice(start, start + 64)
  return text.length === 64 ? Number(`0x${text}`) : Number.NaN
}

async function hasCode(address: string, request: RpcRequest): Promise<boolean> {
  const { result } = succeeded('eth_getCode', await request('eth_getCode', [address, 'latest']))
  return hexOf('eth_getCode', result) !== '0x'
}

/** Messages of nodes for a failure of the contract itself, which every caller would get. */
const contractFailed = /\brevert(ed)?\b|invalid opcode|invalid jump|stack underflow|stack overflow|stack limit/i

/** Messages of nodes for a contract that takes more gas or time than they allow. */
const tooMuch = /out of gas|gas required exceeds|execution aborted|timed out|timeout/i

/** Codes of those errors. -32002: the request took too long. */
const tooMuchCodes: readonly unknown[] = [-32_000, -32_002]

async function call(
  request: RpcRequest,
  transaction: { readonly to?: string; readonly data: string },
  holds: (result: string) => boolean,
): Promise<ContractAnswer> {
  let answer: RpcAnswer
  try {
    answer = await request('eth_call', [{ from: sender, gas: gasLimit, ...transaction }, 'latest'])
  } catch (error) {
    // The server has just answered whether there is code. What takes so long is most likely the contract.
    if (error instanceof RpcTimeout) return 'undecided'
    throw error
  }
  const { code, message } = answer.error ?? {}
  if (code === 3 || (code === -32000 && contractFailed.test(String(message)))) return 'fails'
  if (tooMuchCodes.includes(code) && tooMuch.test(String(message))) return 'undecided'
  return holds(hexOf('eth_call', succeeded('eth_call', answer).result)) ? 'holds' : 'fails'
}

function hexOf(method: string, result: unknown): string {
  if (typeof result === 'string' && /^0x([0-9a-f]{2})*$/i.test(result)) return result.toLowerCase()
  throw new RpcFailure(`${method}: no bytes`)
}
