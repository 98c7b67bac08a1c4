import { builtInAdapters, isBuiltIn } from '../../shared/adapters.ts'
import { type ClientErrorCode, CountersignClientError } from './errors.ts'

/** A wallet's signature in the form of the service's requests. */
export interface WalletSignature {
  /**
   * Lower-case hex: 32 bytes for wallets of Ed25519. Empty for wallets that have an address only, such as
   * ethereum's.
   */
  readonly publicKeyHex: string
  /**
   * Lower-case hex: 64 bytes for wallets of Ed25519, 64 or 65 for an ethereum key, any length for a contract
   * wallet.
   */
  readonly signatureHex: string
  /** Address of the signer, if the wallet's answer has it. */
  readonly address?: string
}

/** Names that wallets use for the parts of their answers. */
const names = {
  publicKey: ['publicKeyHex', 'publicKey', 'public_key', 'signerPublicKey', 'pubKey'],
  signature: ['signatureHex', 'signature', 'sig'],
  address: ['address', 'signer'],
} as const

/** Whether keys and signatures have the lengths of Ed25519. A wallet that names no adapter is nimiq's or ed25519's. */
function signsEd25519(adapterId: string | undefined): boolean {
  return adapterId === undefined || (isBuiltIn(adapterId) && builtInAdapters[adapterId].signsEd25519)
}

/** Longest signature that the service takes, in bytes. */
const maxBytes = 16_384

/**
 * Reads a wallet's answer to a request to sign: an object with the public key and the signature under one of their
 * usual names. Each may be hex, hex after 0x, base64, base64url, bytes in an array, a buffer or a view, or an object
 * with a method `toHex` or `toBytes`; for `solana` also base58.
 *
 * `adapterId` is the service's adapter for the wallet. For those of Ed25519, and if none is
 * named, the key has 32 bytes and the signature 64. For all others the lengths are the adapter's to judge, the key may
 * be missing, and the answer may be the signature alone, as Ethereum's wallets give it. base64 is read in the lengths
 * of Ed25519 only, because in others it cannot be told from hex.
 *
 * Throws WALLET_WRONG_KEY if a key of Ed25519 is missing or not 32 bytes long, WALLET_FAILED for any other answer that
 * does not fit, and the error of {@link walletFailure} for an answer that is an error.
 */
export function readWalletAnswer(answer: unknown, adapterId?: string): WalletSignature {
  try {
    return signsEd25519(adapterId) ? readEd25519(answer, adapterId === 'solana') : readAny(answer)
  } catch (thrown) {
    // Getters and toHex are the wallet's own code.
    throw walletFailure(thrown)
  }
}

function readEd25519(answer: unknown, isBase58: boolean): WalletSignature {
  if (!isObject(answer)) throw new CountersignClientError('WALLET_FAILED', 'The wallet did not answer with an object')
  if (answer.error) throw walletFailure(answer.error)
  const publicKeyHex = readHex(part(answer, 'publicKey'), 32, isBase58)
  if (publicKeyHex === undefined) {
    throw new CountersignClientError('WALLET_WRONG_KEY', 'The wallet answered without a public key of 32 bytes')
  }
  const signatureHex = readHex(part(answer, 'signature'), 64, isBase58)
  if (signatureHex === undefined) {
    throw new CountersignClientError('WALLET_FAILED', 'The wallet answered without a signature of 64 bytes')
  }
  return { publicKeyHex, signatureHex, ...addressIn(answer) }
}

function readAny(answer: unknown): WalletSignature {
  if (isObject(answer) && answer.error) throw walletFailure(answer.error)
  const parts = isObject(answer) && bytesOf(answer) === undefined ? answer : { signature: answer }
  const signatureHex = readHex(part(parts, 'signature')) ?? readHex(part(parts, 'signature'), 64)
  if (signatureHex === undefined) {
    throw new CountersignClientError('WALLET_FAILED', 'The wallet answered without a signature')
  }
  const key = part(parts, 'publicKey')
  const publicKeyHex = key === undefined || key === '' ? '' : (readHex(key) ?? readHex(key, 32))
  if (publicKeyHex === undefined) {
    throw new CountersignClientError('WALLET_WRONG_KEY', 'The wallet answered without a public key as bytes')
  }
  return { publicKeyHex, signatureHex, ...addressIn(parts) }
}

function addressIn(answer: Record<string, unknown>): { address?: string } {
  const address = part(answer, 'address')
  return typeof address === 'string' && address !== '' ? { address } : {}
}

function part(answer: Record<string, unknown>, name: keyof typeof names): unknown {
  return names[name].map((key) => answer[key]).find((value) => value !== undefined && value !== null)
}

/**
 * Lower-case hex of a value of exactly `length` bytes, which also tells hex from base64 and, with `isBase58`, from
 * base58. Without a length: of at most {@link maxBytes} bytes, and a text has to be hex.
 */
function readHex(value: unknown, length?: number, isBase58 = false): string | undefined {
  if (typeof value === 'string') {
    const text = value.trim()
    return (isBase58 ? hexOfBase58(text, length) : undefined) ?? hexOfText(text, length)
  }
  const bytes = bytesOf(value)
  if (bytes !== undefined) return bytes.length === (length ?? bytes.length) ? hexOf(bytes) : undefined
  return isObject(value) && typeof value.toHex === 'function' ? readHex(String(value.toHex()), length) : undefined
}

const base58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Hex of base58 of so many bytes; a 1 at its begin is a zero byte. No text is that and hex of the same length. */
function hexOfBase58(text: string, length = 0): string | undefined {
  const digits = [...text].map((character) => base58.indexOf(character))
  if (text.length > 1.4 * length || digits.includes(-1)) return undefined
  const number = digits.reduce((sum, digit) => sum * 58n + BigInt(digit), 0n)
  const hex = number === 0n ? '' : number.toString(16)
  const zeros = /^1*/.exec(text)?.[0].length ?? 0
  return zeros + Math.ceil(hex.length / 2) === length ? hex.padStart(2 * length, '0') : undefined
}

function hexOfText(text: string, length: number | undefined): string | undefined {
  const hex = text.replace(/^0x/i, '').toLowerCase()
  if (length === undefined) {
    // Contract wallets may sign with nothing at all, which is 0x; an empty text is no answer.
    return text !== '' && hex.length <= 2 * maxBytes && /^([0-9a-f]{2})*$/.test(hex) ? hex : undefined
  }
  if (hex.length === 2 * length && /^[0-9a-f]+$/.test(hex)) return hex
  const base64 = text.replace(/-/g, '+').replace(/_/g, '/').replace(/=+$/, '')
  if (base64.length !== Math.ceil((length * 4) / 3) || !/^[A-Za-z0-9+/]+$/.test(base64)) return undefined
  return hexOf(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)))
}

/**
 * The bytes of an array, a buffer, a view or an object with `toBytes`, even if it came through JSON or from another
 * window. `undefined` for anything else, and for more than {@link maxBytes}.
 */
export function bytesOf(value: unknown): Uint8Array | undefined {
  if (!isObject(value)) return undefined
  const bytes = viewOf(value)
  if (bytes !== undefined) return bytes.length <= maxBytes ? bytes : undefined
  if (typeof value.toBytes === 'function') {
    const given: unknown = value.toBytes()
    return isObject(given) && 'toBytes' in given ? undefined : bytesOf(given)
  }
  const list = value.type === 'Buffer' ? value.data : value
  const items = Array.isArray(list) ? list : isObject(list) && '0' in list ? Object.values(list) : undefined
  const isByte = (item: unknown): boolean => Number.isInteger(item) && (item as number) >= 0 && (item as number) <= 255
  return items !== undefined && items.length <= maxBytes && items.every(isByte) ? Uint8Array.from(items) : undefined
}

function viewOf(value: Record<string, unknown>): Uint8Array | undefined {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  return Object.prototype.toString.call(value) === '[object ArrayBuffer]'
    ? new Uint8Array(value as unknown as ArrayBuffer)
    : undefined
}

/** Lower-case hex. */
export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

type Failure = readonly [code: ClientErrorCode, message: string]

const declined: Failure = ['WALLET_DECLINED', 'The request was declined in the wallet']
const failed: Failure = ['WALLET_FAILED', 'The wallet failed']

/**
 * Codes of EIP-1193, EIP-1474 and WalletConnect that tell what words may not: in other languages, or in errors of the
 * wallet's own.
 */
const failuresByCode: Readonly<Record<number, Failure>> = {
  4001: declined,
  4100: ['WALLET_DECLINED', 'The wallet does not allow this page to use the account'],
  // Those of WalletConnect: the request, its chains, its methods, its events.
  5000: declined,
  5001: declined,
  5002: declined,
  5003: declined,
  4900: ['WALLET_FAILED', 'The wallet is not connected to any chain'],
  4901: ['WALLET_FAILED', 'The wallet is not connected to its chain'],
  [-32002]: ['WALLET_BUSY', 'The wallet already shows a request'],
}

/**
 * The coded error for a wallet's own error. Wallets have no common codes, but EIP-1193's and similar words: the Nimiq
 * Hub says CANCELED or "Connection was closed", and Nimiq Pay's error has the type PermissionDenied. Libraries put the
 * wallet's error into one of their own; the outermost that says something counts, codes before words.
 */
export function walletFailure(cause: unknown): CountersignClientError {
  if (cause instanceof CountersignClientError) return cause
  const levels = levelsOf(cause)
  const first = (read: (level: unknown) => Failure | undefined): Failure | undefined =>
    levels.map(read).find((failure) => failure !== undefined)
  const [code, message] = first((level) => failuresByCode[codeOf(level) ?? 0]) ?? first(failureInWords) ?? failed
  return new CountersignClientError(code, message, { cause })
}

function failureInWords(level: unknown): Failure | undefined {
  const words = describe(level)
  if (/\b4001\b|declin|denied|reject|refus|cancel|abort|not ?allowed/i.test(words)) return declined
  if (/clos|dismiss/i.test(words)) return ['WALLET_CLOSED', 'The wallet was closed without an answer']
  return /pop[- ]?up/i.test(words) ? ['WALLET_BLOCKED', 'The window of the wallet could not be opened'] : undefined
}

/** Where errors have others: `cause` of JavaScript, `data.originalError` of MetaMask, `info.error` of ethers. */
const innerErrors = ['cause', 'error', 'originalError', 'data', 'info'] as const

/** Most errors that are looked at: a wallet can answer with any number, and with a circle. */
const maxLevels = 10

/** An error and those inside it, from the outside in. */
function levelsOf(cause: unknown): unknown[] {
  const levels = [cause]
  for (const level of levels) {
    for (const name of innerErrors) {
      const inner = read(level, name)
      const isNew = inner !== undefined && inner !== null && !levels.includes(inner)
      if (isNew && levels.length < maxLevels) levels.push(inner)
    }
  }
  return levels
}

/** A field of a wallet's object. A getter is the wallet's own code, and may throw. */
function read(value: unknown, name: string): unknown {
  try {
    return isObject(value) ? value[name] : undefined
  } catch {
    return undefined
  }
}

function codeOf(level: unknown): number | undefined {
  const code = read(level, 'code')
  return typeof code === 'number' || (typeof code === 'string' && /^-?\d+$/.test(code)) ? Number(code) : undefined
}

function describe(level: unknown): string {
  if (!isObject(level)) return typeof level === 'string' ? level : ''
  const words = ['name', 'type', 'code', 'message'].map((name) => read(level, name))
  return words.filter((word) => typeof word === 'string' || typeof word === 'number').join(' ')
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
