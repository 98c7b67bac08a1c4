import { hash } from 'node:crypto'

/** Bytes of a block and of a digest of SHA-256 (FIPS 180-4). */
const blockBytes = 64
const digestBytes = 32

/** Longest text in bytes that is hashed in a buffer which is kept for the next one. */
const keptBytes = 512

/**
 * HMAC-SHA-256 (RFC 2104) under one key, of two one-shot hashes of node:crypto. `createHmac` takes about twice as long, 3.4 µs in
 * place of 1.5, and makes an object for each text that has to be collected. The output is the same.
 */
export class HmacSha256 {
  /** The key with the inner padding, and room for the text. */
  readonly #inner: Buffer
  /** The key with the outer padding, and room for the inner digest. */
  readonly #outer: Buffer

  constructor(key: Uint8Array) {
    this.#inner = Buffer.alloc(blockBytes + keptBytes)
    this.#outer = Buffer.alloc(blockBytes + digestBytes)
    const blockKey = key.length > blockBytes ? hash('sha256', key, 'buffer') : key
    for (let at = 0; at < blockBytes; at++) {
      const byte = blockKey[at] ?? 0
      this.#inner[at] = byte ^ 0x36
      this.#outer[at] = byte ^ 0x5c
    }
  }

  /** The MAC of a text in UTF-8, base64url (43 characters). */
  of(text: string): string {
    // As Latin-1, which has a character for each byte: a digest as a buffer takes more than three times as long.
    this.#outer.write(hash('sha256', this.#innerOf(text), 'latin1'), blockBytes, 'latin1')
    return hash('sha256', this.#outer, 'base64url')
  }

  #innerOf(text: string): Uint8Array {
    const length = Buffer.byteLength(text)
    if (length > keptBytes) return Buffer.concat([this.#inner.subarray(0, blockBytes), Buffer.from(text)])
    this.#inner.write(text, blockBytes)
    return this.#inner.subarray(0, blockBytes + length)
  }
}
