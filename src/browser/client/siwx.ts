import type { Session } from '../../shared/session.ts'
import type { SessionCalls } from './sessions.ts'
import { type FormAdapterId, formText, HeldForms, type SignInFormClient, signInForm } from './sign-in-steps.ts'

/** The part of a client that AppKit's SIWX uses. */
export type SiwxClient = SignInFormClient & Pick<SessionCalls, 'getCurrentSession' | 'signOut'>

/** The fields of a text, as AppKit has them. `chainId` is CAIP-2. */
export interface SiwxData<ChainId extends string> {
  readonly accountAddress: string
  readonly chainId: ChainId
  readonly domain: string
  readonly uri: string
  readonly version: string
  readonly nonce: string
  readonly statement?: string
  readonly resources?: string[]
  readonly issuedAt?: string
  readonly expirationTime?: string
}

/** A text for the wallet to sign. */
export interface SiwxMessage<ChainId extends string> extends SiwxData<ChainId> {
  toString(): string
}

/** A session, as AppKit has it. */
export interface SiwxSession<ChainId extends string> {
  readonly data: SiwxData<ChainId>
  readonly message: string
  readonly signature: string
}

/** The functions of AppKit's `SIWXConfig`. */
export interface Siwx {
  /** The text for an account. */
  createMessage<ChainId extends string>(input: {
    readonly accountAddress: string
    readonly chainId: ChainId
  }): Promise<SiwxMessage<ChainId>>
  /** Signs in. */
  addSession(session: SiwxSession<string>): Promise<void>
  /** Ends the session if it is of this account. */
  revokeSession(chainId: string, address: string): Promise<void>
  /**
   * Signs in with the session whose text is the service's, and ends the session for an empty list. WalletConnect's
   * one-tap sign-in is over a text of its own, which the service does not accept: AppKit then asks for a signature.
   */
  setSessions(sessions: readonly SiwxSession<string>[]): Promise<void>
  /**
   * The session, if it is of this account. Empty if the service cannot be asked, so that the wallet stays connected.
   */
  getSessions<ChainId extends string>(chainId: ChainId, address: string): Promise<SiwxSession<ChainId>[]>
  /** Whether the wallet is disconnected if the user does not sign. */
  getRequired(): boolean
  /** Whether the session ends when the wallet disconnects. */
  readonly signOutOnDisconnect: boolean
}

/** Options of {@link siwx}. */
export interface SiwxOptions {
  /** Whether the wallet is disconnected if the user does not sign. Default: yes. */
  readonly required?: boolean | undefined
  /** Whether the session ends when the wallet disconnects. Default: yes. */
  readonly signOutOnDisconnect?: boolean | undefined
}

/**
 * AppKit's Sign In With X on a client of Countersign: the option `siwx` of `createAppKit`, for Ethereum's chains and
 * for Solana. A session is of one account; for another, AppKit asks for a signature.
 */
export function siwx(client: SiwxClient, { required = true, signOutOnDisconnect = true }: SiwxOptions = {}): Siwx {
  const steps = signInForm(client)
  const held = new HeldForms()

  const isOf = async (chainId: string, address: string): Promise<Session | undefined> => {
    const session = await client.getCurrentSession()
    return session !== undefined && isAccountOf(session, chainId, address) ? session : undefined
  }
  const addSession = async ({ data, signature }: SiwxSession<string>): Promise<void> => {
    const { accountAddress: address, chainId } = data
    await steps.verify(held.take(data.nonce), { address, ...chainOf(chainId), signature })
  }

  return {
    async createMessage({ accountAddress, chainId }) {
      const { adapterId, ...chain } = chainOf(chainId)
      // AppKit's own wallet fills its address in later.
      const address = addressForms[adapterId].test(accountAddress) ? accountAddress : undefined
      const nonce = await steps.issueNonce({ adapterId, account: { ...chain, ...(address && { address }) } })
      held.add(nonce)
      const { form } = nonce
      const { domain, uri, version, statement, issuedAt, expirationTime } = form
      const account = { address: form.address ?? accountAddress, ...chain }
      const text = formText(adapterId, form, account)
      return {
        accountAddress: account.address,
        chainId,
        ...{ domain, uri, version, statement, issuedAt, expirationTime },
        nonce: form.nonce,
        resources: [...form.resources],
        toString: () => text,
      }
    },
    addSession,
    async revokeSession(chainId, address) {
      if ((await isOf(chainId, address)) !== undefined) await client.signOut()
    },
    async setSessions(sessions) {
      if (sessions.length === 0) return await client.signOut()
      const own = sessions.find(({ data, message }) => {
        const nonce = held.get(data.nonce)
        if (nonce === undefined) return false
        const { adapterId, ...chain } = chainOf(data.chainId)
        return message === formText(adapterId, nonce.form, { address: data.accountAddress, ...chain })
      })
      if (own !== undefined) await addSession(own)
    },
    async getSessions(chainId, address) {
      const session = await isOf(chainId, address).catch(() => undefined)
      return session === undefined ? [] : [asSiwx(session, chainId, address)]
    },
    getRequired: () => required,
    signOutOnDisconnect,
  }
}

const addressForms = { ethereum: /^0x[0-9a-f]{40}$/i, solana: /^[1-9A-HJ-NP-Za-km-z]{32,44}$/ } as const

/** CAIP-2 references of Solana's clusters, by the names that its form has. */
const clusters: ReadonlyMap<string, string> = new Map([
  ['5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 'mainnet'],
  ['4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z', 'testnet'],
  ['EtWTRABZaYq6iMfeYKouRu166VU2xqa1', 'devnet'],
])

/** The adapter and the chain, as forms have it, of a CAIP-2 identifier. */
function chainOf(chainId: string): { readonly adapterId: FormAdapterId; readonly chainId: string } {
  const [namespace, reference = ''] = chainId.split(':')
  return namespace === 'solana'
    ? { adapterId: 'solana', chainId: clusters.get(reference) ?? reference }
    : { adapterId: 'ethereum', chainId: reference }
}

/** Whether a session is of an account. A key is the same account on all of its chains, a contract on one. */
function isAccountOf({ adapterId, address: own }: Session, chainId: string, address: string): boolean {
  if (adapterId !== chainOf(chainId).adapterId) return false
  if (adapterId === 'solana') return own === address
  const named = own.includes(':') ? `${chainId}:${address}` : address
  return own.toLowerCase() === named.toLowerCase()
}

/** A session in AppKit's form. The text that was signed is not kept. */
function asSiwx<ChainId extends string>(session: Session, chainId: ChainId, address: string): SiwxSession<ChainId> {
  const { host: domain = '', origin: uri = '' } = globalThis.location ?? {}
  const times = {
    issuedAt: new Date(session.createdAt).toISOString(),
    expirationTime: new Date(session.expiresAt).toISOString(),
  }
  const data = { accountAddress: address, chainId, domain, uri, version: '1', nonce: '', ...times }
  return { data, message: '', signature: '' }
}
