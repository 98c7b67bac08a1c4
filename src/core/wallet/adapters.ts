import { base58 } from '@scure/base'
import type { Tracing } from '../../base/tracing.ts'
import { type AdapterId, adapterIds, isBuiltIn } from '../../shared/adapters.ts'
import { bytesToHex, hexToBytes } from '../../shared/hex.ts'
import { readAccount } from './ethereum/address.ts'
import { ethereum } from './ethereum/ethereum.ts'
import { ed25519, nimiq } from './nimiq.ts'
import type { KeyRecovery } from './secp256k1.ts'
import { solana } from './solana.ts'
import {
  isSameAddress,
  type ProvenIdentity,
  requireAdapterId,
  type StartWarning,
  type WalletAdapter,
} from './wallet.ts'

/** A built-in adapter. */
interface AdapterRow {
  readonly make: (options: AdapterOptions, tracing?: Tracing) => WalletAdapter
  /** The wallet that an address or a public key in hex leads to; `undefined` if that is ambiguous. */
  readonly read: (text: string) => Wallet | undefined
}

type Wallet = Omit<ProvenIdentity, 'adapterId'>

const builtIn: Readonly<Record<AdapterId, AdapterRow>> = {
  nimiq: { make: () => nimiq, read: (text) => ofKey(text, nimiq.deriveAddress) },
  ed25519: { make: () => ed25519, read: (text) => ofKey(text, ed25519.deriveAddress) },
  ethereum: { make: ({ evmRpc, recovery }, tracing) => ethereum(evmRpc, { tracing, recovery }), read: ofAccount },
  solana: { make: () => solana, read: (text) => ofKey(hexOfBase58(text) ?? text, (key) => base58.encode(key)) },
}

/** Settings of the built-in adapters. */
export interface AdapterOptions {
  /** Addresses of JSON-RPC servers by EIP-155 chain id, for contract wallets of ethereum. */
  readonly evmRpc?: Readonly<Record<string, string>> | undefined
  /** How ethereum recovers keys. Default: the portable way. */
  readonly recovery?: KeyRecovery | undefined
}

/**
 * The configured wallet adapters, in the order given. An entry is the id of a built-in adapter or an adapter of the
 * application's own. Without tracing, what adapters ask others is not traced.
 *
 * Throws a TypeError for an unknown or malformed id, for an id that occurs twice, for an adapter without one of its
 * functions, and for an empty list, because no wallet could sign in.
 */
export function walletAdapters(
  entries: readonly (string | WalletAdapter)[],
  options: AdapterOptions = {},
  tracing?: Tracing,
): readonly WalletAdapter[] {
  if (entries.length === 0)
    throw new TypeError(`adapters (COUNTERSIGN_ADAPTERS) must not be empty; known adapters: ${adapterIds.join(', ')}`)
  const adapters: WalletAdapter[] = []
  for (const entry of entries) {
    const adapter = typeof entry === 'string' ? findBuiltIn(entry, options, tracing) : checkAdapter(entry)
    if (adapters.some(({ id }) => id === adapter.id)) throw new TypeError(`adapter "${adapter.id}" is configured twice`)
    adapters.push(adapter)
  }
  return adapters
}

/** A text as services write them, to compare what wallets sign for it. */
const probe = 'Example requests authentication\nNonce: probe'

/**
 * What to warn of at start: each two of these adapters with one curve whose wallets sign the same bytes for a text, so
 * that a wallet can sign in with either, and is then two users.
 */
export function sharedKeysWarnings(adapters: readonly WalletAdapter[]): string[] {
  const signed = adapters.flatMap((adapter) => {
    const { id, curve } = adapter
    const bytes = adapter.envelope?.(probe)
    return bytes === undefined ? [] : [{ id, curve, hex: bytesToHex(bytes) }]
  })
  return signed.flatMap((one, index) =>
    signed
      .slice(index + 1)
      .filter(({ curve, hex }) => curve === one.curve && hex === one.hex)
      .map(
        ({ id }) =>
          `adapters (COUNTERSIGN_ADAPTERS) has ${one.id} and ${id}, whose wallets sign the same bytes: a wallet can ` +
          'sign in with either, so one key is two users; leave one of them out unless you need both',
      ),
  )
}

/**
 * Lets adapters check, before a service starts, what they need (see {@link WalletAdapter.checkAtStart}), all at the
 * same time. `adapters` are those that {@link walletAdapters} made of the settings. `warn` receives what does not stop
 * the start: RPCs that no adapter asks, and checks that take longer than 10 seconds, which the start does not wait for.
 *
 * Rejects with what a check rejects with.
 */
export async function checkAdapters(
  adapters: readonly WalletAdapter[],
  { adapters: configured, evmRpc }: AdapterOptions & { readonly adapters: readonly (string | WalletAdapter)[] },
  warn: StartWarning,
): Promise<void> {
  if (evmRpc !== undefined && !configured.includes('ethereum')) {
    warn('evmRpc is set, and the adapter ethereum, which would ask the RPCs, is not configured')
  }
  await Promise.all(adapters.map((adapter) => checkWithin(adapter, warn)))
}

/** Longest time in milliseconds that the check of an adapter holds the start. An RPC of ethereum has 5 seconds. */
const checkLimitMs = 10_000

async function checkWithin(adapter: WalletAdapter, warn: StartWarning): Promise<void> {
  const { id } = adapter
  const check = adapter.checkAtStart?.((text, fields) => warn(text, { adapter: id, ...fields }))
  if (check === undefined) return
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, checkLimitMs, 'late')
  })
  try {
    if ((await Promise.race([check, late])) !== 'late') return
    warn(`the check of adapter "${id}" took longer than ${checkLimitMs / 1000} seconds; the start goes on without it`)
  } finally {
    clearTimeout(timer)
  }
}

function findBuiltIn(id: string, options: AdapterOptions, tracing: Tracing | undefined): WalletAdapter {
  if (!isBuiltIn(id)) {
    throw new TypeError(`unknown adapter ${JSON.stringify(id)}; known adapters: ${adapterIds.join(', ')}`)
  }
  return builtIn[id].make(options, tracing)
}

function checkAdapter(adapter: WalletAdapter): WalletAdapter {
  requireAdapterId(adapter?.id)
  for (const name of ['verify', 'readAddress'] as const) {
    if (typeof adapter[name] !== 'function') throw new TypeError(`adapter "${adapter.id}" has no function ${name}`)
  }
  if (adapter.checkAtStart !== undefined && typeof adapter.checkAtStart !== 'function') {
    throw new TypeError(`adapter "${adapter.id}" has a checkAtStart that is not a function`)
  }
  return adapter
}

/** The wallet that a text `{adapter_id}:{address}` names, or why it names none. */
export type WalletKey =
  | (Pick<ProvenIdentity, 'adapterId' | 'address'> & { readonly problem?: undefined })
  | { readonly problem: string }

/**
 * Reads a text that names a wallet as `{adapter_id}:{address}`, with the address in any spelling. `undefined` if the
 * text does not begin with the id of an adapter, built in or among `adapters`, and a colon.
 */
export function readWalletKey(text: string, adapters: readonly WalletAdapter[]): WalletKey | undefined {
  const [, id, rest] = /^([a-z0-9-]+):(.*)$/s.exec(text) ?? []
  if (id === undefined || rest === undefined) return undefined
  const adapter = adapters.find((each) => each.id === id)
  if (adapter === undefined) return isBuiltIn(id) ? { problem: `the adapter ${id} is not configured` } : undefined
  const address = adapter.readAddress(rest.trim())
  return address === undefined ? { problem: `this is no address of ${id}` } : { adapterId: id, address }
}

/** A text that names a wallet, read. */
export interface WalletName {
  /** The wallets that it can be, one for each adapter, as far as the text alone shows. */
  readonly candidates: readonly ProvenIdentity[]
  /**
   * Whether it names a wallet that is known: for addresses that do not lead to the key, and adapters of an
   * application's own.
   */
  readonly fits: (wallet: Omit<ProvenIdentity, 'subject'>) => boolean
}

/**
 * Reads the name of a wallet: an address or a public key in hex, alone or behind the id of its adapter, as in
 * `nimiq:NQ…`. Returns `undefined` if no wallet can have this name. `configured` are the ids of adapters that it may
 * begin with, by default any.
 */
export function readWalletName(text: string, configured?: readonly string[]): WalletName | undefined {
  const [, prefix, rest] = /^([a-z0-9][a-z0-9-]{0,31}):(.+)$/.exec(text) ?? []
  const isNamed = prefix !== undefined && prefix !== 'eip155'
  if (isNamed && configured?.includes(prefix) === false) return undefined
  const name = (isNamed ? rest : text)?.trim() ?? ''
  const ids = isNamed ? [prefix] : adapterIds
  const isOf = (id: string, address: string): boolean | undefined =>
    isBuiltIn(id) ? isSameAddress(builtIn[id].make({}), address, name) : undefined
  const fits: WalletName['fits'] = ({ adapterId, address, publicKeyHex }) =>
    (!isNamed || adapterId === prefix) &&
    (address === name ||
      (publicKeyHex !== '' && publicKeyHex === name.toLowerCase()) ||
      isOf(adapterId, address) === true)
  const candidates = ids.flatMap((adapterId) => {
    const wallet = isBuiltIn(adapterId) ? builtIn[adapterId].read(name) : ofKey(name, () => '')
    return wallet === undefined ? [] : [{ adapterId, ...wallet }]
  })
  return candidates.length > 0 || ids.some((id) => isOf(id, name) ?? true) ? { candidates, fits } : undefined
}

function ofKey(hex: string, addressOf: (key: Uint8Array) => string): Wallet | undefined {
  const key = hexToBytes(hex)
  if (key === undefined || key.length !== 32) return undefined
  const publicKeyHex = bytesToHex(key)
  return { subject: publicKeyHex, publicKeyHex, address: addressOf(key) }
}

function ofAccount(text: string): Wallet | undefined {
  const address = readAccount(text)
  return address === undefined ? undefined : { subject: address.toLowerCase(), publicKeyHex: '', address }
}

function hexOfBase58(text: string): string | undefined {
  return solana.readAddress(text) !== undefined ? bytesToHex(base58.decode(text)) : undefined
}
