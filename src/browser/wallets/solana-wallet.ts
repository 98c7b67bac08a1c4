import { getWallets } from '@wallet-standard/app'
import { given } from '../../shared/defined-fields.ts'
import { CountersignClientError } from '../client/errors.ts'
import { bytesOf, walletFailure } from '../client/wallet-answer.ts'
import { type Account, AccountWatch, type SwitchingWallet } from './account-watch.ts'
import { cleanIcon, cleanName, type Search } from './list.ts'

/** An account of Wallet Standard. */
export interface StandardAccount {
  readonly address: string
  /** Bytes, in any form that `readWalletAnswer` reads. */
  readonly publicKey: unknown
  readonly chains: readonly string[]
}

/** The part of a wallet of Wallet Standard that is used. */
export interface StandardWallet {
  readonly name: string
  readonly icon: string
  readonly chains: readonly string[]
  readonly accounts: readonly StandardAccount[]
  readonly features: Readonly<Record<string, unknown>>
}

interface Signed {
  readonly signedMessage: unknown
  readonly signature: unknown
  readonly signatureType?: string
}

/** The features that are used, as Wallet Standard and its extensions for Solana define them. */
interface Features {
  'standard:connect'?: { connect(): Promise<{ readonly accounts: readonly StandardAccount[] }> }
  'standard:events'?: { on(event: 'change', listener: (changes: { accounts?: unknown }) => void): () => void }
  'solana:signIn'?: {
    signIn(input: SolanaSignInInput): Promise<readonly (Signed & { readonly account: StandardAccount })[]>
  }
  'solana:signMessage'?: {
    signMessage(input: { account: StandardAccount; message: Uint8Array }): Promise<readonly Signed[]>
  }
  'solana:signOffchainMessage'?: {
    signOffchainMessage(input: OffchainInput): Promise<readonly (Omit<Signed, 'signedMessage'> & Offchain)[]>
  }
}

interface OffchainInput {
  readonly messageVersion: 1
  readonly account: StandardAccount
  readonly message: string
  readonly requiredSigners: readonly StandardAccount['publicKey'][]
}

interface Offchain {
  readonly signedOffchainMessage: unknown
}

/** The features of which a wallet needs one to sign a text. */
const signers = ['solana:signIn', 'solana:signMessage', 'solana:signOffchainMessage'] as const

const utf8 = new TextEncoder()

/** Whether a wallet can sign in and approve: it has accounts of Solana, and signs texts with them. */
export function isSolanaWallet({ chains, features }: StandardWallet): boolean {
  return chains.some(isSolana) && 'standard:connect' in features && signers.some((signer) => signer in features)
}

/**
 * A wallet of Wallet Standard, for the service's adapter `solana`. Forms are signed with `solana:signIn`, if the wallet
 * has it, so that it can warn of a foreign domain, and everything else with `solana:signMessage` or, without that,
 * `solana:signOffchainMessage`, in the envelope that the service expects of hardware wallets. It signs only with the
 * account that `getAccount` last returned: if the user has switched since, it fails with WALLET_WRONG_KEY.
 */
export function solanaWallet(wallet: StandardWallet): SwitchingWallet {
  const features = wallet.features as Features
  /** A wallet's `solana:signIn` once returned another text than that of its input. */
  let rewritesForms = false

  const accountOf = (accounts: readonly StandardAccount[]): StandardAccount | undefined =>
    accounts.find(({ chains }) => chains.some(isSolana))

  const connected = async (): Promise<StandardAccount> => {
    const open = accountOf(wallet.accounts)
    if (open !== undefined) return open
    const { accounts } = (await features['standard:connect']?.connect()) ?? { accounts: [] }
    const account = accountOf(accounts) ?? accountOf(wallet.accounts)
    if (account === undefined) {
      throw new CountersignClientError('WALLET_FAILED', 'The wallet gave no account of Solana. Is it locked?')
    }
    return account
  }

  /** The account that the text is for, as the wallet has it now. */
  const askedAccount = async (): Promise<StandardAccount> => {
    const account = await connected()
    if (watch.asked !== undefined && account.address !== watch.asked.address) throw switched()
    return account
  }

  /** Nothing from Mobile Wallet Adapter (0.6.0) that is connected already: it signs in only as it connects. */
  const signIn = async (input: SolanaSignInInput) => {
    try {
      return (await features['solana:signIn']?.signIn(input)) ?? []
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('no sign in result')) throw error
      rewritesForms = true
      return []
    }
  }

  const signForm = async (text: string, input: SolanaSignInInput): Promise<unknown> => {
    // Before the wallet shows anything: it may sign in with any account that is selected.
    if (watch.asked !== undefined) await askedAccount()
    const [output] = await signIn(input)
    if (output === undefined) return undefined
    const { account } = output
    if (account.address !== (input.address ?? watch.asked?.address ?? account.address)) throw switched()
    if (holds(output, withAddress(text, account.address))) return answer(output, account)
    rewritesForms = true
    return undefined
  }

  const signMessage = async (textFor: (address: string) => string): Promise<unknown> => {
    const account = await askedAccount()
    const text = textFor(account.address)
    const output = await signText(account, text)
    if (output === undefined || !holds(output, text)) {
      throw new CountersignClientError('WALLET_FAILED', 'The wallet signed another text than asked for')
    }
    // The user may have switched while the wallet asked.
    await askedAccount()
    return answer(output, account)
  }

  const signText = async (account: StandardAccount, text: string): Promise<Signed | undefined> => {
    const plain = features['solana:signMessage']
    if (plain !== undefined) return (await plain.signMessage({ account, message: utf8.encode(text) }))[0]
    const offchain = features['solana:signOffchainMessage']
    if (offchain === undefined) throw new CountersignClientError('WALLET_FAILED', 'The wallet cannot sign this text')
    const requiredSigners = [account.publicKey]
    const input = { messageVersion: 1, account, message: text, requiredSigners } as const
    const [output] = await offchain.signOffchainMessage(input)
    return output && { ...output, signedMessage: output.signedOffchainMessage }
  }

  const watch = new AccountWatch((report) => {
    const stop = features['standard:events']?.on('change', (changes) => {
      if (!('accounts' in changes)) return
      const account = accountOf(wallet.accounts)
      report(() => account && described(account))
    })
    return () => stop?.()
  })

  return {
    adapterId: 'solana',
    getAccount: () => coded(() => watch.ask(async () => described(await connected()))),
    onAccountChange: (listener) => watch.subscribe(listener),
    sign: (message) =>
      coded(async () => {
        const form = readSolanaForm(message)
        if (form === undefined) return signMessage(() => message)
        const signed = 'solana:signIn' in features && !rewritesForms ? await signForm(message, form) : undefined
        return signed ?? signMessage((address) => withAddress(message, address))
      }),
  }
}

/** Clusters in the order of preference, as the service's adapter names them. */
const clusters = ['mainnet', 'devnet', 'testnet', 'localnet'] as const

function isSolana(chain: string): boolean {
  return chain.startsWith('solana:')
}

function described({ address, chains }: StandardAccount): Account {
  const cluster = clusters.find((name) => chains.includes(`solana:${name}`))
  return { address, ...given({ chainId: cluster }) }
}

/**
 * Whether signed bytes are a text, or an off-chain envelope of Solana around it, in which hardware wallets sign. Mobile
 * Wallet Adapter returns them with the signature behind them.
 */
function holds({ signedMessage, signature }: Signed, text: string): boolean {
  const [whole, end] = [bytesOf(signedMessage), bytesOf(signature)]
  if (whole === undefined || end === undefined) return false
  const length = whole.length - end.length
  const bytes =
    length > 0 && end.every((byte, index) => whole[length + index] === byte) ? whole.slice(0, length) : whole
  const [wanted, envelope] = [[...utf8.encode(text)], [0xff, ...utf8.encode('solana offchain')]]
  const header = bytes.length - wanted.length
  const isEnvelope = header > envelope.length && envelope.every((byte, index) => bytes[index] === byte)
  return (header === 0 || isEnvelope) && wanted.every((byte, index) => bytes[header + index] === byte)
}

function answer({ signature, signatureType = 'ed25519' }: Signed, { address, publicKey }: StandardAccount): unknown {
  if (signatureType !== 'ed25519') {
    throw new CountersignClientError('WALLET_FAILED', 'The wallet signed with another scheme than Ed25519')
  }
  return { publicKey, signature, address }
}

function switched(): CountersignClientError {
  return new CountersignClientError('WALLET_WRONG_KEY', 'The user has switched to another account')
}

async function coded<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (thrown) {
    throw walletFailure(thrown)
  }
}

/** Finds wallets of Solana that register by Wallet Standard, and drops those that unregister. */
export const searchSolana: Search = (found) => {
  if (globalThis.window === undefined) return () => {}
  const { get, on } = getWallets()
  const removals = new Map<StandardWallet, () => void>()
  const add = (...wallets: readonly StandardWallet[]): void => {
    for (const wallet of wallets) {
      const label = removals.has(wallet) ? undefined : labelOf(wallet)
      if (label === undefined) continue
      const remove = found.add({
        id: `wallet-standard:${label.name}`,
        ...label,
        adapterId: 'solana',
        kind: 'page',
        connect: () => solanaWallet(wallet),
      })
      removals.set(wallet, remove)
    }
  }
  const stops = [
    on('register', add),
    on('unregister', (...wallets) => {
      for (const wallet of wallets) {
        removals.get(wallet)?.()
        removals.delete(wallet)
      }
    }),
  ]
  add(...get())
  return () => {
    for (const stop of stops) stop()
  }
}

/** `undefined` if it is no wallet of Solana, or none at all: any script can register anything. */
function labelOf(wallet: StandardWallet): { readonly name: string; readonly icon?: string } | undefined {
  try {
    return isSolanaWallet(wallet) ? { name: cleanName(wallet.name, 'Solana'), ...cleanIcon(wallet.icon) } : undefined
  } catch {
    return undefined
  }
}

/** The fields of a sign-in form, as the feature `solana:signIn` takes them. */
export interface SolanaSignInInput {
  readonly domain: string
  /** Absent: the wallet fills it in. */
  readonly address?: string
  readonly statement: string
  readonly uri: string
  readonly version: string
  readonly chainId?: string
  readonly nonce: string
  readonly issuedAt: string
  readonly expirationTime: string
  readonly resources: readonly string[]
}

/** The layout in which the service writes its forms: Sign-In With Solana, with all of these lines and no others. */
const layout = new RegExp(
  [
    '^(?<domain>[^\\n]+) wants you to sign in with your Solana account:',
    '(?<address>[1-9A-HJ-NP-Za-km-z]*)',
    '',
    '(?<statement>[^\\n]+)',
    '',
    'URI: (?<uri>[^\\n]+)',
    'Version: (?<version>[^\\n]+)(?:\\nChain ID: (?<chainId>[^\\n]+))?',
    'Nonce: (?<nonce>[^\\n]+)',
    'Issued At: (?<issuedAt>[^\\n]+)',
    'Expiration Time: (?<expirationTime>[^\\n]+)',
    'Resources:(?<resources>(?:\\n- [^\\n]+)+)$',
  ].join('\\n'),
)

/** Reads a form that the service wrote. `undefined` for any other text, such as that of a sign order. */
export function readSolanaForm(text: string): SolanaSignInInput | undefined {
  const fields = layout.exec(text)?.groups as Record<keyof SolanaSignInInput, string> | undefined
  if (fields === undefined) return undefined
  const { address, chainId, resources, ...others } = fields
  return {
    ...others,
    ...given({ address: address || undefined, chainId }),
    resources: resources.split('\n- ').slice(1),
  }
}

/** The form with its account's address, if it has none. */
export function withAddress(text: string, address: string): string {
  const [first, own, ...rest] = text.split('\n')
  return own === '' ? [first, address, ...rest].join('\n') : text
}
