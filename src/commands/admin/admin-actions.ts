import { cancelOrder } from '../../core/order/change.ts'
import { Inboxes } from '../../core/order/inboxes.ts'
import { KnownComputers, type StoredComputer } from '../../core/order/known-computers.ts'
import type { OrderRecord } from '../../core/order/order.ts'
import { ordersOf, storedOrders } from '../../core/order/records.ts'
import { forgetLinkNonces } from '../../core/sign-in/nonce.ts'
import {
  type AdministeredUser,
  type AdministeredWallet,
  AdministrationError,
  type Imported,
  type SearchableStore,
  UserAdministration,
  type UserPlace,
} from '../../core/users/user-administration.ts'
import { readWalletName, type WalletName, walletAdapters } from '../../core/wallet/adapters.ts'
import type { ProvenIdentity, WalletAdapter } from '../../core/wallet/wallet.ts'
import { WebhookQueue } from '../../observe/audit/webhook.ts'
import { resolveSettings, type Settings } from '../../service/config.ts'
import { peopleOf } from '../../service/start-checks.ts'
import { given, pick } from '../../shared/defined-fields.ts'
import type { InboxOrder } from '../../shared/orders.ts'
import type { Store } from '../../store/store.ts'
import { UsageError } from '../command-line.ts'
import { eraseUser, exportUser, sessionEnds } from '../oidc.ts'
import { keysNotToRevive } from '../stored-kinds.ts'
import { readImportFile } from './import-file.ts'

/** A wallet that an operator named, and whose it is. */
export interface NamedWallet {
  readonly wallet: ProvenIdentity
  /** The user who has it or, if the application keeps its users itself, those who are signed in with it. */
  readonly userIds: readonly string[]
  /** Epoch milliseconds; absent if it is not blocked. */
  readonly blockedAt?: number
}

/** A user in a list. */
export interface ListedUser extends AdministeredUser {
  /** Time of the newest of the live sessions, epoch milliseconds; absent if there is none. */
  readonly lastSignInAt?: number
  /** Groups that the user has with any of the wallets, by the people file. */
  readonly groups: readonly string[]
}

/** Settings of the service that say which wallets there are, and what is said of their users. */
export type AdminSettings = Pick<Settings, 'people' | 'admit' | 'adapters' | 'evmRpc'>

/** Everything that is stored about a user, without secrets: no token, nonce, code or signature, and no hash of one. */
export interface UserExport extends AdministeredUser, Awaited<ReturnType<typeof exportUser>> {
  readonly wallets: readonly (AdministeredWallet & { readonly knownComputers: readonly StoredComputer[] })[]
  readonly orders: readonly ExportedOrder[]
  /** Newest first. */
  readonly inbox: readonly InboxOrder[]
}

const exportedOfOrder = [
  'orderId',
  'kind',
  'status',
  'history',
  'origin',
  'requester',
  'returnTo',
  'displayTitle',
  'displaySummary',
  'payloadHash',
  'payload',
  'expectedAddress',
  'expectedPublicKeyHex',
  'starter',
  'inboxUserId',
] as const satisfies readonly (keyof OrderRecord)[]

const exportedOfProof = ['adapterId', 'subject', 'publicKeyHex', 'address'] as const

/** Stored fields of an order. */
type ExportedOrder = Pick<OrderRecord, (typeof exportedOfOrder)[number]> & { readonly approvedBy?: ProvenIdentity }

/** What operators do to a store, and to what services keep in it. */
export class AdminActions {
  readonly users: UserAdministration
  readonly store: SearchableStore
  readonly #computers: KnownComputers
  readonly #inboxes: Inboxes
  readonly #settings: AdminSettings

  /** `settings` are the service's, for what a file says of users. */
  constructor(opened: Store, settings: AdminSettings = resolveSettings()) {
    this.#settings = settings
    const store = searchable(opened)
    this.store = store
    this.#computers = new KnownComputers(store)
    this.#inboxes = new Inboxes(store)
    this.users = new UserAdministration({
      store,
      sessionEnds: sessionEnds(store),
      forgetComputers: (wallet) => this.#computers.forgetOthers(wallet, undefined),
      eraseTraces: async (userId, wallets) => {
        await eraseUser(store, userId)
        await this.#inboxes.erase(userId)
        for (const { orderId } of await ordersOf(this.#scan, { userId, wallets })) {
          await cancelOrder(storedOrders(store), orderId)
        }
        await forgetLinkNonces(store, userId)
        await new WebhookQueue(store).forget({ userId, wallets })
      },
    })
  }

  /**
   * Drops what a copy of the past must not revive, and resolves with the number of values. Lists keep the ids of what
   * is gone until these expire.
   */
  async dropPast(keepSessions: boolean): Promise<number> {
    const past = keysNotToRevive(keepSessions)
    let dropped = 0
    for await (const { key } of this.#scan('')) {
      if (past.test(key) && (await this.store.take(key)) !== undefined) dropped += 1
    }
    return dropped
  }

  /** The user with this id. Rejects with an {@link AdministrationError} if nothing is known of one. */
  async user(userId: string): Promise<AdministeredUser> {
    const user = await this.users.find(userId)
    if (user === undefined) throw new AdministrationError('no user has this id')
    return user
  }

  /**
   * The wallets that a text can name and of which something is known. Rejects with a `UsageError` if it can name none.
   */
  async known(text: string): Promise<NamedWallet[]> {
    const { candidates, fits } = nameIn(text)
    const wallets = candidates.length === 0 ? await this.users.walletsThat(fits) : candidates
    const found: NamedWallet[] = []
    for (const wallet of wallets) {
      const { userId, blockedAt } = await this.users.ownerOf(wallet)
      const userIds = userId === undefined ? await this.users.usersWithSessionsOf(wallet) : [userId]
      const block = blockedAt === undefined ? {} : { blockedAt }
      if (userIds.length > 0 || blockedAt !== undefined) found.push({ wallet, userIds, ...block })
    }
    return found
  }

  /**
   * The one wallet that a text names. It need not be known if the text alone says which wallet it is. Rejects with an
   * {@link AdministrationError} otherwise.
   */
  async wallet(text: string): Promise<ProvenIdentity> {
    const known = (await this.known(text)).map(({ wallet }) => wallet)
    const wallets = known.length === 0 ? nameIn(text).candidates : known
    const [wallet, other] = wallets
    if (wallet === undefined) {
      throw new AdministrationError(
        'no user or session has this address. Use the public key in hex: the address does not tell the key',
      )
    }
    if (other === undefined) return wallet
    const names = wallets.map(({ adapterId, subject }) => `${adapterId}:${subject}`).join(' or ')
    throw new AdministrationError(`this can be several wallets: use ${names}`)
  }

  /** The users behind a place in the list of all, newest first, with their groups by the people file. */
  async list(limit: number, after: UserPlace | undefined): Promise<ListedUser[]> {
    const people = await peopleOf(this.#settings, this.#adapters)
    const users = await this.users.list(limit, after)
    return users.map((user) => {
      const times = user.sessions.map(({ createdAt }) => createdAt)
      const { id: userId, firstWallet } = user
      const keys = user.wallets.map((wallet) => ({ ...wallet, userId, firstWallet }))
      const groups = keys.flatMap((key) => people.find(key)?.groups ?? [])
      return {
        ...user,
        ...(times.length === 0 ? {} : { lastSignInAt: Math.max(...times) }),
        groups: [...new Set(groups)],
      }
    })
  }

  /**
   * Gives the wallets of a file to the users that it names; to one who exists only with `add`. Resolves with the
   * numbers of all, and what was new.
   */
  async import(file: string, add: boolean): Promise<Imported & { readonly wallets: number; readonly users: number }> {
    const wallets = await readImportFile(file, this.#adapters)
    const users = new Set(wallets.map(({ userId }) => userId)).size
    return { wallets: wallets.length, users, ...(await this.users.import(wallets, add)) }
  }

  get #adapters(): readonly WalletAdapter[] {
    return walletAdapters(this.#settings.adapters, this.#settings)
  }

  /** Everything that is stored about a user. */
  async export(userId: string): Promise<UserExport> {
    const user = await this.user(userId)
    const wallets = await Promise.all(
      user.wallets.map(async (wallet) => ({ ...wallet, knownComputers: await this.#computers.list(wallet) })),
    )
    const orders = await ordersOf(this.#scan, { userId, wallets })
    const inbox = (await this.#inboxes.list(userId)).map(({ startKeyId: _startKeyId, ...entry }) => entry)
    return { ...user, wallets, orders: orders.map(exported), inbox, ...(await exportUser(this.store, userId)) }
  }

  get #scan(): SearchableStore['scan'] {
    return (beginning) => this.store.scan(beginning)
  }
}

/** The store, if it can be searched. Throws an {@link AdministrationError} otherwise. */
export function searchable(store: Store): SearchableStore {
  if (!isSearchable(store)) throw new AdministrationError(`${store.description} cannot be searched`)
  return store
}

function isSearchable(store: Store): store is SearchableStore {
  return store.scan !== undefined
}

function nameIn(text: string): WalletName {
  const name = readWalletName(text)
  if (name !== undefined) return name
  throw new UsageError(
    `${JSON.stringify(text)} isn't a wallet. Use an address or a public key in hex, such as nimiq:NQ… or ethereum:0x…`,
  )
}

function exported(order: OrderRecord): ExportedOrder {
  const { proof } = order
  return {
    ...pick(order, exportedOfOrder),
    ...given({ approvedBy: proof && pick(proof, exportedOfProof) }),
  }
}
