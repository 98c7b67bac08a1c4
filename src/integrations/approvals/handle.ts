import { base64urlnopad } from '@scure/base'
import { ApprovalError } from './error.ts'
import type { AskedOrder } from './service.ts'
import type { ApprovalWallet } from './wallets.ts'

/** What an approval needs to go on in another process. Contains the desktop token, and no key to finalize with. */
export interface OpenOrder extends AskedOrder {
  /** End of the time in which the answer may be given out, in epoch milliseconds, by the clock of the backend. */
  readonly until: number
  readonly payload: string
  readonly wallets: readonly ApprovalWallet[]
}

/** Bytes of AES-GCM's initialization vector (NIST SP 800-38D, 5.2.1.1), which stands before the sealed text. */
const ivBytes = 12

const utf8 = new TextEncoder()

/** Seals open orders with AES-256-GCM, under a key that follows from the start key by HKDF (RFC 5869). */
export class Handles {
  readonly #startKey: string
  #derived: Promise<CryptoKey> | undefined

  constructor(startKey: string) {
    this.#startKey = startKey
  }

  async seal(order: OpenOrder): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(ivBytes))
    const text = utf8.encode(JSON.stringify(order))
    const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await this.#key(), text))
    return base64urlnopad.encode(new Uint8Array([...iv, ...sealed]))
  }

  /** Rejects with HANDLE_INVALID for everything that was not sealed with this key. */
  async open(handle: string): Promise<OpenOrder> {
    const key = await this.#key()
    try {
      const bytes = Uint8Array.from(base64urlnopad.decode(handle))
      const iv = bytes.subarray(0, ivBytes)
      const text = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.subarray(ivBytes))
      return JSON.parse(new TextDecoder().decode(text))
    } catch (cause) {
      throw new ApprovalError('HANDLE_INVALID', 'This is no handle that was made with this start key', { cause })
    }
  }

  #key(): Promise<CryptoKey> {
    this.#derived ??= deriveKey(this.#startKey)
    return this.#derived
  }
}

async function deriveKey(startKey: string): Promise<CryptoKey> {
  const secret = await crypto.subtle.importKey('raw', utf8.encode(startKey), 'HKDF', false, ['deriveKey'])
  const info = utf8.encode('countersign/approvals handle')
  const derivation = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  return await crypto.subtle.deriveKey(derivation, secret, { name: 'AES-GCM', length: 256 }, false, [
    'encrypt',
    'decrypt',
  ])
}
