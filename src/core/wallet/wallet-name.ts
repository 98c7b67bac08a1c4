import { base58 } from '@scure/base'
import { bytesToHex, hexToBytes } from '../../shared/hex.ts'
import { ed25519 } from './ed25519.ts'
import { accountIdOf, checksummed, parseAccountId, parseAddress } from './ethereum/address.ts'
import { ethereum } from './ethereum/ethereum.ts'
import { nimiq } from './nimiq.ts'
import type { ProvenIdentity } from './proof.ts'
import { solana } from './solana.ts'
import type { WalletAdapter } from './wallet.ts'

/** A text that names a wallet, read. */
export interface WalletName {
  /** The wallets that it can be, one for each adapter, as far as the text alone tells. */
  readonly candidates: readonly ProvenIdentity[]
  /** Whether it names a wallet that is known: for addresses that do not lead to the key, and adapters of an application's own. */
  readonly fits: (wallet: ProvenIdentity) => boolean
}

/** The built-in adapters, with what turns an address or key into an identity, if that can be. */
const builtIn: ReadonlyMap<
  string,
  { readonly adapter: WalletAdapter; readonly read: (text: string) => Wallet | undefined }
> = new Map([
  [nimiq.id, { adapter: nimiq, read: (text) => ofKey(text, nimiq.deriveAddress) }],
  [ed25519.id, { adapter: ed25519, read: (text) => ofKey(text, ed25519.deriveAddress) }],
  ['ethereum', { adapter: ethereum(), read: ofAccount }],
  [solana.id, { adapter: solana, read: (text) => ofKey(hexOfBase58(text) ?? text, (key) => base58.encode(key)) }],
])

type Wallet = Omit<ProvenIdentity, 'adapterId'>

/**
 * Reads the name of a wallet: an address or a public key in hex, alone or behind the id of its adapter, as in `nimiq:NQ…`. Returns
 * `undefined` if no wallet can have this name.
 */
export function readWalletName(text: string): WalletName | undefined {
  const [, prefix, rest] = /^([a-z0-9][a-z0-9-]{0,31}):(.+)$/.exec(text) ?? []
  const isNamed = prefix !== undefined && prefix !== 'eip155'
  const name = (isNamed ? rest : text)?.trim() ?? ''
  const adapterIds = isNamed ? [prefix] : [...builtIn.keys()]
  const fits = ({ adapterId, address, publicKeyHex }: ProvenIdentity): boolean =>
    (!isNamed || adapterId === prefix) &&
    (address === name ||
      (publicKeyHex !== '' && publicKeyHex === name.toLowerCase()) ||
      builtIn.get(adapterId)?.adapter.sameAddress(address, name) === true)
  const candidates = adapterIds.flatMap((adapterId) => {
    const known = builtIn.get(adapterId)
    const wallet = known === undefined ? ofKey(name, () => '') : known.read(name)
    return wallet === undefined ? [] : [{ adapterId, ...wallet }]
  })
  const isName = (id: string): boolean => builtIn.get(id)?.adapter.sameAddress(name, name) ?? true
  return candidates.length > 0 || adapterIds.some(isName) ? { candidates, fits } : undefined
}

function ofKey(hex: string, addressOf: (key: Uint8Array) => string): Wallet | undefined {
  const key = hexToBytes(hex)
  if (key === undefined || key.length !== 32) return undefined
  const publicKeyHex = bytesToHex(key)
  return { subject: publicKeyHex, publicKeyHex, address: addressOf(key) }
}

function ofAccount(text: string): Wallet | undefined {
  const account = parseAccountId(text)
  const address = account?.address ?? parseAddress(text)
  if (address === undefined) return undefined
  const named = (spelling: string): string =>
    account === undefined ? spelling : accountIdOf(account.chainId, spelling)
  return { subject: named(address), publicKeyHex: '', address: named(checksummed(address)) }
}

function hexOfBase58(text: string): string | undefined {
  return solana.sameAddress(text, text) ? bytesToHex(base58.decode(text)) : undefined
}
