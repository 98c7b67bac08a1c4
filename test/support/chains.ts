import { createHash, randomBytes } from 'node:crypto'
import { base32, createBase58check } from '@scure/base'
import nacl from 'tweetnacl'
import { concat, hashMessage, keccak256, toBytes } from 'viem'
import { privateKeyToAccount, sign } from 'viem/accounts'

/** A wallet that signs with tweetnacl or viem, by none of the code of the adapters. */
export interface ChainWallet {
  readonly adapterId: string
  /** Lower-case hex; empty for wallets that are known by their address. */
  readonly publicKeyHex: string
  readonly address: string
  /** The signature in lower-case hex. */
  sign(text: string): Promise<string>
}

const sha256 = (bytes: string | Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

/** A wallet of Stellar (SEP-53). */
export function makeStellarWallet(seed: Uint8Array = randomBytes(32)): ChainWallet {
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(seed)
  return {
    adapterId: 'stellar',
    publicKeyHex: Buffer.from(publicKey).toString('hex'),
    address: stellarAddress(publicKey),
    sign: async (text) =>
      Buffer.from(nacl.sign.detached(sha256(`Stellar Signed Message:\n${text}`), secretKey)).toString('hex'),
  }
}

/** The address of a key, with the checksum by a division of polynomials in one number. */
function stellarAddress(publicKey: Uint8Array): string {
  const body = Buffer.from([48, ...publicKey])
  let rest = BigInt(`0x${body.toString('hex')}`) << 16n
  for (let bit = 8 * body.length + 15; bit >= 16; bit--) {
    if ((rest >> BigInt(bit)) & 1n) rest ^= 0x11021n << BigInt(bit - 16)
  }
  return base32.encode(Buffer.from([...body, Number(rest & 0xffn), Number(rest >> 8n)]))
}

/** A wallet of TRON (TIP-191), with v as 27 or 28. */
export function makeTronWallet(key: Uint8Array = randomBytes(32)): ChainWallet {
  const privateKey = `0x${Buffer.from(key).toString('hex')}` as const
  const { address } = privateKeyToAccount(privateKey)
  return {
    adapterId: 'tron',
    publicKeyHex: '',
    address: tronAddress(address),
    async sign(text) {
      const bytes = new TextEncoder().encode(text)
      const hash = keccak256(concat([toBytes(`\x19TRON Signed Message:\n${bytes.length}`), bytes]))
      return (await sign({ hash, privateKey, to: 'hex' })).slice(2)
    },
  }
}

/** TRON's form of an Ethereum address. */
export function tronAddress(address: string): string {
  return createBase58check(sha256).encode(Buffer.from(`41${address.slice(2)}`, 'hex'))
}

/** A wallet of Ethereum, without a form: a wallet of TRON with the same key shares its address. */
export function makeEthereumWallet(key: Uint8Array = randomBytes(32)): ChainWallet {
  const privateKey = `0x${Buffer.from(key).toString('hex')}` as const
  return {
    adapterId: 'ethereum',
    publicKeyHex: '',
    address: privateKeyToAccount(privateKey).address,
    sign: async (text) => (await sign({ hash: hashMessage(text), privateKey, to: 'hex' })).slice(2),
  }
}
