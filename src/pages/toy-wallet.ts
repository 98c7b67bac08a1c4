import nacl from 'tweetnacl'
import type { Wallet } from '../client/index.ts'
import { bytesToHex, hexToBytes } from '../hex.ts'
import { ed25519 } from '../wallet/ed25519.ts'
import { nimiq } from '../wallet/nimiq.ts'
import type { WalletAdapter } from '../wallet/wallet.ts'

/**
 * A wallet made in the page, for trying things out: its key lies unprotected in the browser's storage, and it signs whatever
 * it is asked to. Never use one for anything of value.
 *
 * It signs in JavaScript, because browsers have WebCrypto only on https and localhost, and a phone tries a developer's
 * computer by its address.
 */
export interface ToyWallet extends Wallet {
  readonly publicKeyHex: string
  /** Grouped form. */
  readonly address: string
}

const storageKey = 'countersign.toy-wallet'

const adapters: readonly WalletAdapter[] = [nimiq, ed25519]

/** The toy wallet of this browser: the same one each time, made at the first. `undefined` for a kind of wallet it cannot be. */
export function openToyWallet(adapterId: string = nimiq.id): ToyWallet | undefined {
  const adapter = adapters.find(({ id }) => id === adapterId)
  if (adapter === undefined) return undefined
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(keptSeed())
  const publicKeyHex = bytesToHex(publicKey)
  const address = adapter.deriveAddress(publicKey)
  return {
    adapterId: adapter.id,
    publicKeyHex,
    address,
    getAddress: () => address,
    sign: (message) => ({ publicKeyHex, signature: nacl.sign.detached(adapter.signedBytes(message), secretKey) }),
  }
}

/** Throws the toy wallet away: the next one has another key and address. */
export function forgetToyWallet(): void {
  unsaved = undefined
  tryStorage((storage) => storage.removeItem(storageKey))
}

/** The seed where storage is blocked: such a wallet lives as long as the page. */
let unsaved: Uint8Array | undefined

function keptSeed(): Uint8Array {
  const kept = unsaved ?? hexToBytes(tryStorage((storage) => storage.getItem(storageKey)) ?? '')
  if (kept?.length === nacl.sign.seedLength) return kept
  const seed = nacl.randomBytes(nacl.sign.seedLength)
  unsaved = seed
  tryStorage((storage) => {
    storage.setItem(storageKey, bytesToHex(seed))
    unsaved = undefined
  })
  return seed
}

function tryStorage<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(localStorage)
  } catch {
    return undefined
  }
}
