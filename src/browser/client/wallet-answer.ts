import { builtInAdapters, isBuiltIn } from '../../shared/adapters.ts'
import { type ClientErrorCode, CountersignClientError } from './errors.ts'

/** A wallet's signature in the form of the service's requests. */
export interface WalletSignature {
  /**
   * Lower-case hex: 32 bytes for nimiq, ed25519 and solana. Empty for wallets that have an address only, such as
   * ethereum's.
   */
  readonly publicKeyHex: string
  /**
   * Lower-case hex: 64 bytes for nimiq, ed25519 and solana, 64 or 65 for an ethereum key, any length for a contract
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
 * with a method `toHex`.
 *
 * `adapterId` is the service's adapter for the wallet. For those of Ed25519 (nimiq, ed25519, solana, and if none is
 * named), the key has 32 bytes and the signature 64. For all others the lengths are the adapter's to judge, the key may
 * be missing, and the answer may be the signature alone, as Ethereum's wallets give it. base64 is read in the lengths
 * of Ed25519 only, because in others it cannot be told from hex.
 *
 * Throws WALLET_WRONG_KEY if a key of Ed25519 is missing or not 32 bytes long, WALLET_FAILED for any other answer that
 * does not fit, and the error of {@link walletFailure} for an answer that is an error.
 */
export function readWalletAnswer(answer: unknown, adapterId?: string): WalletSignature {
  try {
    return signsEd25519(adapterId) ? readEd25519(answer) : readAny(answer)
  } catch (thrown) {
    // Getters and toHex are the wallet's own code.
    throw walletFailure(thrown)
  }
}

function readEd25519(answer: unknown): WalletSignature {
  if (!isObject(answer)) throw new CountersignClientError('WALLET_FAILED', 'The wallet did not answer with an object')
  if (answer.error) throw walletFailure(answer.error)
  const publicKeyHex = readHex(part(answer, 'publicKey'), 32)
  if (publicKeyHex === undefined) {
    throw new CountersignClientError(
      'WALLET_WRONG_KEY',
      'The wallet answered without an Ed25519 public key of 32 bytes',
    )
  }
  const signatureHex = readHex(part(answer, 'signature'), 64)
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
    throw new CountersignClientError('WALLET_WRONG_KEY', 'The wallet answered with a public key that is not bytes')
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
 * Lower-case hex of a value of exactly `length` bytes, which also tells hex from base64. Without a length: of at most
 * {@link maxBytes} bytes, and a text has to be hex.
 */
function readHex(value: unknown, length?: number): string | undefined {
  if (typeof value === 'string') return hexOfText(value.trim(), length)
  if (!isObject(value)) return undefined
  const bytes = bytesOf(value)
  if (bytes !== undefined) return bytes.length === (length ?? bytes.length) ? hexOf(bytes) : undefined
  return typeof value.toHex === 'function' ? readHex(String(value.toHex()), length) : undefined
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

/** The bytes of an array, a buffer or a view, even if it came through JSON or from another window. */
function bytesOf(value: Record<string, unknown>): Uint8Array | undefined {
  const bytes = viewOf(value)
  if (bytes !== undefined) return bytes.length <= maxBytes ? bytes : undefined
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

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * Codes of EIP-1193 and EIP-1474 that tell what words may not: in other languages, or in errors of the wallet's own.
 */
const failuresByCode: Readonly<Record<number, readonly [code: ClientErrorCode, message: string]>> = {
  4001: ['WALLET_DECLINED', 'The request was declined in the wallet'],
  4100: ['WALLET_DECLINED', 'The wallet does not allow this page to use the account'],
  4900: ['WALLET_FAILED', 'The wallet is not connected to any chain'],
  4901: ['WALLET_FAILED', 'The wallet is not connected to its chain'],
  [-32002]: ['WALLET_BUSY', 'The wallet already shows a request'],
}

/**
 * The coded error for a wallet's own error. Wallets have no common codes, but EIP-1193's and similar words: the Nimiq
 * Hub says CANCELED or "Connection was closed", and Nimiq Pay's error has the type PermissionDenied.
 */
export function walletFailure(cause: unknown): CountersignClientError {
  if (cause instanceof CountersignClientError) return cause
  const byCode = failuresByCode[codeOf(cause) ?? 0]
  if (byCode !== undefined) return new CountersignClientError(...byCode, { cause })
  const words = describe(cause)
  if (/\b4001\b|declin|denied|reject|refus|cancel|abort|not ?allowed/i.test(words)) {
    return new CountersignClientError('WALLET_DECLINED', 'The request was declined in the wallet', { cause })
  }
  if (/clos|dismiss|pop-?up/i.test(words)) {
    return new CountersignClientError('WALLET_CLOSED', 'The wallet was closed without an answer', { cause })
  }
  return new CountersignClientError('WALLET_FAILED', 'The wallet failed', { cause })
}

function codeOf(cause: unknown): number | undefined {
  try {
    return isObject(cause) && /^-?\d+$/.test(String(cause.code)) ? Number(cause.code) : undefined
  } catch {
    // A getter is the wallet's own code.
    return undefined
  }
}

function describe(cause: unknown): string {
  try {
    if (!isObject(cause)) return String(cause)
    return [cause.name, cause.type, cause.code, cause.message].filter((word) => word !== undefined).join(' ')
  } catch {
    return ''
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
