/** Number of slots in a Redis cluster. */
export const slotCount = 16_384

/**
 * The slot of a key or channel in a Redis cluster: CRC-16/XMODEM of the text between its first braces or, if there is
 * none, of all of it (Redis cluster specification, hash tags).
 */
export function slotOf(key: string): number {
  const start = key.indexOf('{')
  const end = start === -1 ? -1 : key.indexOf('}', start + 1)
  const hashed = Buffer.from(end > start + 1 ? key.slice(start + 1, end) : key)
  let crc = 0
  for (const byte of hashed) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  }
  return (crc & 0xffff) % slotCount
}
