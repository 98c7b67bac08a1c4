import type { AuthContext } from '@better-auth/core'
import { runWithTransaction } from '@better-auth/core/context'
import { createPlaceholderEmail } from '@better-auth/core/utils/email'
import type { User } from 'better-auth'
import { newId } from '../base/token.ts'
import { askResolveLogin } from '../core/users/application.ts'
import type { Session } from '../core/users/host.ts'
import { type ProvenIdentity, type WalletIdentity, walletOf } from '../core/wallet/wallet.ts'
import { hostUnavailable, refused } from '../shared/errors.ts'
import { bytesToHex } from '../shared/hex.ts'
import { guarded } from './failures.ts'
import { KeyedLock } from './once-marks.ts'
import { keyringOf, type WalletSettings } from './settings.ts'

/** One for the process: the memory adapter, which needs it, is known to one process only. */
const lock = new KeyedLock()

/**
 * Age in ms up to which another user with the same address may be one that another instance is creating for this
 * wallet.
 */
const beingMadeMs = 10_000

/** Better Auth's users and their wallets, which are accounts. */
export class WalletUsers {
  readonly #context: AuthContext
  readonly #settings: WalletSettings

  constructor(context: AuthContext, settings: WalletSettings) {
    this.#context = context
    this.#settings = settings
  }

  /**
   * The user that `resolveLogin` names. Without `resolveLogin`: the owner of the wallet's account, or a new user with
   * that account. If it rejects with LOGIN_REFUSED, nothing was created.
   */
  async resolve(identity: ProvenIdentity): Promise<User> {
    const { resolveLogin } = this.#settings
    if (resolveLogin === undefined) return await this.#sync(await this.#ownerOrNew(identity), identity)
    const { id } = await askResolveLogin(resolveLogin, identity)
    const user = await this.#context.internalAdapter.findUserById(id)
    if (user === null) {
      throw hostUnavailable(new TypeError('resolveLogin returned an id that no user of Better Auth has'))
    }
    return await this.#sync(user, identity)
  }

  /**
   * Adds a wallet to a user as an account. WALLET_TAKEN if it is another user's. Does nothing if it is theirs already.
   */
  async link(userId: string, identity: ProvenIdentity): Promise<void> {
    await lock.run(keyOf(identity), async () => {
      const owner = await this.#owner(identity)
      if (owner !== undefined && owner.id !== userId) throw refused('WALLET_TAKEN')
      if (owner === undefined) await this.#addUntaken(userId, identity)
      const user = owner ?? (await this.#context.internalAdapter.findUserById(userId))
      if (user !== null) await this.#sync(user, identity)
    })
  }

  async #addUntaken(userId: string, identity: ProvenIdentity): Promise<void> {
    try {
      await this.#addAccount(userId, identity)
    } catch (cause) {
      // Another instance may have added it to another user meanwhile.
      const owner = await this.#owner(identity)
      throw owner !== undefined && owner.id !== userId ? refused('WALLET_TAKEN') : cause
    }
  }

  async #ownerOrNew(identity: ProvenIdentity): Promise<User> {
    return await lock.run(keyOf(identity), async () => {
      const owner = await this.#owner(identity)
      if (owner !== undefined) return owner
      const email = placeholderEmail(this.#context, identity)
      try {
        return await this.#make(identity, email)
      } catch (cause) {
        const madeElsewhere = await this.#owner(identity)
        if (madeElsewhere !== undefined) return madeElsewhere
        const namesake = await this.#context.internalAdapter.findUserByEmail(email)
        if (namesake === null || Date.now() < namesake.user.createdAt.getTime() + beingMadeMs) throw cause
        // The wallet was unlinked from this user, so its holder gets a new one.
        return await this.#make(identity, placeholderEmail(this.#context, identity, newId()))
      }
    })
  }

  async #make(identity: ProvenIdentity, email: string): Promise<User> {
    const { adapter, internalAdapter } = this.#context
    return await runWithTransaction(adapter, async () => {
      const created = await internalAdapter.createUser(
        { name: identity.address, email, emailVerified: false },
        { method: 'wallet' },
      )
      // A hook of the application refused.
      if (created === null) throw refused('LOGIN_REFUSED')
      await this.#addAccount(created.id, identity)
      return created
    })
  }

  async #addAccount(userId: string, identity: ProvenIdentity): Promise<void> {
    const { internalAdapter } = this.#context
    const account = await internalAdapter.linkAccount({ userId, ...accountKey(identity) })
    if (account === null) throw refused('LOGIN_REFUSED')
    try {
      // No index of Better Auth keeps two instances from adding one wallet to two users. An instance that sees both
      // undoes its own.
      await internalAdapter.findAccountByKey(accountKey(identity))
    } catch (cause) {
      await internalAdapter.deleteAccount(account.id)
      throw cause
    }
  }

  async #owner(identity: ProvenIdentity): Promise<User | undefined> {
    const found = await this.#context.internalAdapter.findAccountOwnerByKey(accountKey(identity))
    if (found === null) return undefined
    if (found.kind === 'owned') return found.user
    // Its user was deleted without Better Auth's knowledge.
    await this.#context.internalAdapter.deleteAccount(found.account.id)
    return undefined
  }

  async #sync(user: User, { address, publicKeyHex }: ProvenIdentity): Promise<User> {
    const { syncAddressToUser, syncPublicKeyToUser } = this.#settings
    const wanted: Record<string, string> = {
      ...(syncAddressToUser ? { walletAddress: address } : {}),
      ...(syncPublicKeyToUser ? { walletPublicKeyHex: publicKeyHex } : {}),
    }
    const known = user as Record<string, unknown>
    if (Object.entries(wanted).every(([field, value]) => known[field] === value)) return user
    return (await this.#context.internalAdapter.updateUser(user.id, wanted)) ?? user
  }
}

function accountKey({ adapterId, subject }: ProvenIdentity): { providerId: string; accountId: string } {
  return { providerId: adapterId, accountId: subject }
}

function keyOf({ adapterId, subject }: ProvenIdentity): string {
  return `${adapterId}:${subject}`
}

/**
 * A placeholder for the email address that every user of Better Auth has, under a domain that can never exist
 * (`.invalid`, RFC 6761 §6.4). It is never used to sign in. It follows from Better Auth's secret: anyone who could work
 * it out from a wallet could ask sign-up endpoints whether the wallet has an account, or take the address first. The
 * user of a wallet is found by its account, so a change of the secret changes the addresses of new users only.
 */
function placeholderEmail(context: AuthContext, identity: ProvenIdentity, salt = ''): string {
  const { adapterId, subject } = identity
  const [bytes] = keyringOf(context).derive('placeholder address', [adapterId, subject, salt])
  return createPlaceholderEmail({ identifier: bytesToHex(bytes.subarray(0, 16)), namespace: 'wallet' })
}

/**
 * The wallets of a session's user: their accounts with wallet adapters. With `resolveLogin` wallets are not accounts,
 * and this is the wallet that the session was made with.
 */
export async function walletsOfUser(
  { internalAdapter }: AuthContext,
  { resolveLogin, adapterIds }: WalletSettings,
  session: Session,
): Promise<WalletIdentity[]> {
  if (resolveLogin !== undefined) return [walletOf(session)]
  const accounts = await guarded(() => internalAdapter.findAccounts(session.userId))
  return accounts
    .filter(({ providerId }) => adapterIds.has(providerId))
    .map(({ providerId, accountId }) => ({ adapterId: providerId, subject: accountId }))
}
