import { ed25519 } from './ed25519.ts'
import { nimiq } from './nimiq.ts'
import type { WalletAdapter } from './wallet.ts'

const builtIn: readonly WalletAdapter[] = [nimiq, ed25519]
const idForm = /^[a-z0-9][a-z0-9-]{0,31}$/

/**
 * The configured wallet adapters, in the order given. An entry is the id of a built-in adapter (`nimiq`, `ed25519`) or
 * an adapter of the application's own.
 *
 * Throws a TypeError for an unknown or malformed id, for an id that occurs twice, for an adapter without one of its
 * functions, and for an empty list, because nobody could sign in.
 */
export function walletAdapters(entries: readonly (string | WalletAdapter)[]): readonly WalletAdapter[] {
  if (entries.length === 0)
    throw new TypeError(`adapters (COUNTERSIGN_ADAPTERS) must not be empty; known adapters: ${knownIds()}`)
  const adapters: WalletAdapter[] = []
  for (const entry of entries) {
    const adapter = typeof entry === 'string' ? findBuiltIn(entry) : checkAdapter(entry)
    if (adapters.some(({ id }) => id === adapter.id)) throw new TypeError(`adapter "${adapter.id}" is configured twice`)
    adapters.push(adapter)
  }
  return adapters
}

function knownIds(): string {
  return builtIn.map(({ id }) => id).join(', ')
}

function findBuiltIn(id: string): WalletAdapter {
  const adapter = builtIn.find((candidate) => candidate.id === id)
  if (adapter === undefined) throw new TypeError(`unknown adapter ${JSON.stringify(id)}; known adapters: ${knownIds()}`)
  return adapter
}

function checkAdapter(adapter: WalletAdapter): WalletAdapter {
  if (typeof adapter?.id !== 'string' || !idForm.test(adapter.id)) {
    throw new TypeError(`an adapter's id must match ${idForm.source}, which ${JSON.stringify(adapter?.id)} does not`)
  }
  for (const name of ['verify', 'sameAddress'] as const) {
    if (typeof adapter[name] !== 'function') throw new TypeError(`adapter "${adapter.id}" has no function ${name}`)
  }
  return adapter
}
