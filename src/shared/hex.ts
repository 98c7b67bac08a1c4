import { hexToBytes as strictHexToBytes } from '@noble/hashes/utils.js'

export { bytesToHex } from '@noble/hashes/utils.js'

/** The bytes of hex text in either case; `undefined` if its length is odd or it has any other character. */
export function hexToBytes(hex: string): Uint8Array | undefined {
  try {
    return strictHexToBytes(hex)
  } catch {
    return undefined
  }
}

/** Whether a value is bytes, of any realm: in tests with jsdom, Node's bytes are not of the global Uint8Array. */
export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]'
}

/** Bytes as the libraries take them that look for the global Uint8Array. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes)
}
