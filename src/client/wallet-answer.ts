import { CountersignClientError } from './errors.ts'

/** A wallet's signature in the form of the service's requests. */
export interface WalletSignature {
  /** 32 bytes, lower-case hex. */
  readonly publicKeyHex: string
  /** 64 bytes, lower-case hex. */
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

/**
 * Reads a wallet's answer to a request to sign: an object with the public key and the signature under one of their usual
 * names. Each may be hex, hex after 0x, base64, base64url, bytes in an array, a buffer or a view, or an object with a method
 * `toHex`. Throws WALLET_WRONG_KEY if the key is missing or not 32 bytes long, WALLET_FAILED for any other answer that does not
 * fit, and the error of {@link walletFailure} for an answer that is an error.
 */
export function readWalletAnswer(answer: unknown): WalletSignature {
  try {
    return read(answer)
  } catch (thrown) {
    // Getters and toHex are the wallet's own code.
    throw walletFailure(thrown)
  }
}

function read(answer: unknown): WalletSignature {
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
  const address = part(answer, 'address')
  return { publicKeyHex, signatureHex, ...(typeof address === 'string' && address !== '' ? { address } : {}) }
}

function part(answer: Record<string, unknown>, name: keyof typeof names): unknown {
  return names[name].map((key) => answer[key]).find((value) => value !== undefined && value !== null)
}

/** Lower-case hex of a value of exactly `length` bytes, which also tells hex from base64. */
function readHex(value: unknown, length: number): string | undefined {
  if (typeof value === 'string') return hexOfText(value.trim(), length)
  if (!isObject(value)) return undefined
  const bytes = bytesOf(value)
  if (bytes !== undefined) return bytes.length === length ? hexOf(bytes) : undefined
  return typeof value.toHex === 'function' ? readHex(String(value.toHex()), length) : undefined
}

function hexOfText(text: string, length: number): string | undefined {
  const hex = text.replace(/^0x/i, '').toLowerCase()
  if (hex.length === 2 * length && /^[0-9a-f]+$/.test(hex)) return hex
  const base64 = text.replace(/-/g, '+').replace(/_/g, '/').replace(/=+$/, '')
  if (base64.length !== Math.ceil((length * 4) / 3) || !/^[A-Za-z0-9+/]+$/.test(base64)) return undefined
  return hexOf(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)))
}

/** The bytes of an array, a buffer or a view, even if it came through JSON or from another window. */
function bytesOf(value: Record<string, unknown>): Uint8Array | undefined {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  if (Object.prototype.toString.call(value) === '[object ArrayBuffer]') {
    return new Uint8Array(value as unknown as ArrayBuffer)
  }
  const list = value.type === 'Buffer' ? value.data : value
  const items = Array.isArray(list) ? list : isObject(list) && '0' in list ? Object.values(list) : undefined
  const isByte = (item: unknown): boolean => Number.isInteger(item) && (item as number) >= 0 && (item as number) <= 255
  // No key or signature is longer.
  return items !== undefined && items.length <= 64 && items.every(isByte) ? Uint8Array.from(items) : undefined
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * The coded error for a wallet's own error. Wallets have no common codes, but EIP-1193's 4001 and similar words: the Nimiq Hub
 * says CANCELED or "Connection was closed", and Nimiq Pay's error has the type PermissionDenied.
 */
export function walletFailure(cause: unknown): CountersignClientError {
  if (cause instanceof CountersignClientError) return cause
  const words = describe(cause)
  if (/\b4001\b|declin|denied|reject|refus|cancel|abort|not ?allowed/i.test(words)) {
    return new CountersignClientError('WALLET_DECLINED', 'The request was declined in the wallet', { cause })
  }
  if (/clos|dismiss|pop-?up/i.test(words)) {
    return new CountersignClientError('WALLET_CLOSED', 'The wallet was closed without an answer', { cause })
  }
  return new CountersignClientError('WALLET_FAILED', 'The wallet failed', { cause })
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
