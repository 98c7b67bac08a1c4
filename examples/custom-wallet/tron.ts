// TRON wallets, by their key: docs/custom-wallet.md explains it; chains.test.ts signs in with it.
// TIP-191 defines the first byte and the hash; the text after it ("TRON Signed Message:" and the length) is TronWeb's.
// npm install countersign @noble/hashes @scure/base
import { sha256 } from '@noble/hashes/sha2.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { createBase58check } from '@scure/base'
import { signatureAdapter } from 'countersign'

const base58check = createBase58check(sha256)
/** The first byte of an address on the main network. */
const network = 0x41

/** TRON wallets. Sources: TIP-191 (tronprotocol/tips), and signMessageV2 and addresses of tronprotocol/tronweb. */
export const tron = signatureAdapter({
  id: 'tron',
  displayName: 'TRON',
  curve: 'secp256k1-recovered',

  envelope(text) {
    const bytes = utf8ToBytes(text)
    return keccak_256(concatBytes(utf8ToBytes(`\x19TRON Signed Message:\n${bytes.length}`), bytes))
  },

  address(publicKey) {
    return base58check.encode(Uint8Array.of(network, ...keccak_256(publicKey.subarray(1)).subarray(12)))
  },

  readAddress(text) {
    if (!/^T[1-9A-HJ-NP-Za-km-z]{33}$/.test(text)) return undefined
    try {
      const bytes = base58check.decode(text)
      return bytes.length === 21 && bytes[0] === network ? text : undefined
    } catch {
      // The checksum is wrong: a letter was misread.
      return undefined
    }
  },
})
