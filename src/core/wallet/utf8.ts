const encoder = new TextEncoder()

/**
 * The UTF-8 bytes of a text. Where there is Node's Buffer, it makes them: it takes the memory of short texts from a pool, and
 * TextEncoder asks the system for each.
 */
export const utf8Bytes: (text: string) => Uint8Array =
  typeof Buffer === 'undefined' ? (text) => encoder.encode(text) : (text) => Buffer.from(text)
