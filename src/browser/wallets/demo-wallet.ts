import nacl from 'tweetnacl'
import type { Ed25519Adapter } from '../../core/wallet/ed25519.ts'
import { ed25519, nimiq } from '../../core/wallet/nimiq.ts'
import { bytesToHex, hexToBytes } from '../../shared/hex.ts'
import { tryStorage } from '../client/page.ts'
import type { Wallet } from '../client/wallet.ts'

/**
 * A wallet made in the page, for trying the service out: its key is unprotected in the browser's storage, and it signs
 * everything without asking. A page offers it only if the service says so (`readServiceFacts`).
 *
 * It signs in JavaScript, because browsers offer WebCrypto only on https and localhost, and a phone reaches a
 * developer's computer by its IP address.
 */
export interface DemoWallet extends Wallet {
  readonly adapterId: string
  readonly publicKeyHex: string
  /** Address of the key, in its grouped form. */
  readonly address: string
}

const storageKey = 'countersign.demo-wallet'

const adapters: readonly Ed25519Adapter[] = [nimiq, ed25519]

/** The demo wallet of this browser, made at the first call. `undefined` if it does not support the adapter. */
export function openDemoWallet(adapterId: string = nimiq.id): DemoWallet | undefined {
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

/** Deletes the demo wallet. The next one has another key and address. */
export function forgetDemoWallet(): void {
  unsaved = undefined
  tryStorage('localStorage', (storage) => storage.removeItem(storageKey))
}

/** Seed if storage is blocked. Such a wallet is lost with the page. */
let unsaved: Uint8Array | undefined

function keptSeed(): Uint8Array {
  const kept = unsaved ?? hexToBytes(tryStorage('localStorage', (storage) => storage.getItem(storageKey)) ?? '')
  if (kept?.length === nacl.sign.seedLength) return kept
  const seed = nacl.randomBytes(nacl.sign.seedLength)
  unsaved = seed
  tryStorage('localStorage', (storage) => {
    storage.setItem(storageKey, bytesToHex(seed))
    unsaved = undefined
  })
  return seed
}
