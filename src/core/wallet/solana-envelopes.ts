const utf8 = new TextEncoder()

/** `\xff` and "solana offchain". No transaction and no UTF-8 text begins with 0xff. */
const signingDomain = Uint8Array.of(0xff, ...utf8.encode('solana offchain'))

/** Largest packet that the network carries, and so the most that a device of Solana's expects to sign, in bytes. */
const maxPacketBytes = 1232
/** The version 0 and legacy layouts write the text's length in 16 bits. */
const maxTextBytes = 0xffff

/** How the older layouts declare a text. */
const format = { ascii: 0, utf8: 1, longUtf8: 2 } as const

/**
 * The off-chain messages around a text that one wallet signs in place of it: hardware wallets sign nothing else. The text
 * stands in each of them whole and last, so that a signature over one says what a signature over the text says.
 *
 * The layouts are version 1; version 0 with an application domain of zeros; and the layout of the older solana-sdk crate and of
 * Ledger's Solana app before 1.8, which is also called version 0 and names no signer. No two texts have a message in common.
 *
 * Sources: the proposal "off-chain message signing" of agave, and @solana/offchain-messages; for the formats that wallets
 * declare also solana-offchain-message (Rust) and Ledger's signer for Solana, which differ from each other.
 */
export function offChainMessages(text: string, publicKey: Uint8Array): Uint8Array[] {
  const body = utf8.encode(text)
  const versionOne = join([signingDomain, Uint8Array.of(1, 1), publicKey, body])
  if (body.length > maxTextBytes) return [versionOne]
  const versionZero = (declared: number): Uint8Array => {
    const header = [Uint8Array.of(0), new Uint8Array(32), Uint8Array.of(declared, 1), publicKey]
    return join([signingDomain, ...header, lengthOf(body), body])
  }
  const legacy = (declared: number): Uint8Array =>
    join([signingDomain, Uint8Array.of(0, declared), lengthOf(body), body])
  return [
    versionOne,
    ...formatsInVersionZero(text, body.length).map(versionZero),
    ...formatsInLegacy(text, body.length).map(legacy),
  ]
}

/**
 * The proposal knows no line feed in ASCII, Ledger does; and the proposal bounds the whole message in the first two formats,
 * others the text alone, and Ledger takes 15 KiB.
 */
function formatsInVersionZero(text: string, bytes: number): number[] {
  const header = signingDomain.length + 69
  return [
    ...(/^[\n\x20-\x7e]*$/.test(text) ? [format.ascii] : []),
    format.utf8,
    ...(header + bytes > maxPacketBytes ? [format.longUtf8] : []),
  ]
}

/** The crate bounds the whole message, Ledger the text alone. */
function formatsInLegacy(text: string, bytes: number): number[] {
  const header = signingDomain.length + 4
  const short = /^[\x20-\x7e]*$/.test(text) ? format.ascii : format.utf8
  return [...(bytes <= maxPacketBytes ? [short] : []), ...(header + bytes > maxPacketBytes ? [format.longUtf8] : [])]
}

function lengthOf({ length }: Uint8Array): Uint8Array {
  return Uint8Array.of(length & 0xff, length >> 8)
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  for (const part of parts) {
    joined.set(part, offset)
    offset += part.length
  }
  return joined
}
