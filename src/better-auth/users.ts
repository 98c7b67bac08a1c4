import { createHash } from 'node:crypto'
import type { AuthContext } from '@better-auth/core'
import { runWithTransaction } from '@better-auth/core/context'
import { createPlaceholderEmail } from '@better-auth/core/utils/email'
import type { User } from 'better-auth'
import { CountersignError } from '../errors.ts'
import type { ProvenIdentity } from '../host/host.ts'
import { askResolveLogin, loginRefused } from '../host/resolve-login.ts'
import { newId } from '../token.ts'
import { KeyedLock } from './keyed-lock.ts'
import type { WalletSettings } from './settings.ts'

/** One for the process: the memory adapter, which needs it, is known to one process only. */
const lock = new KeyedLock()

/** A user with this address who is younger may be one that another instance makes for the same wallet now, milliseconds. */
const beingMadeMs = 10_000

/** Better Auth's users, and the wallets that are their accounts. */
export class WalletUsers {
  readonly #context: AuthContext
  readonly #settings: WalletSettings

  constructor(context: AuthContext, settings: WalletSettings) {
    this.#context = context
    this.#settings = settings
  }

  /**
   * The user whom `resolveLogin` names; without it the owner of the wallet's account, or a new user with that account. With
   * LOGIN_REFUSED nothing was created.
   */
  async resolve(identity: ProvenIdentity): Promise<User> {
    const { resolveLogin } = this.#settings
    if (resolveLogin === undefined) return await this.#sync(await this.#ownerOrNew(identity), identity)
    const { id } = await askResolveLogin(resolveLogin, identity)
    const user = await this.#context.internalAdapter.findUserById(id)
    if (user === null) {
      const cause = new TypeError('resolveLogin returned the id of no user of Better Auth')
      throw new CountersignError('INTERNAL', 'The server failed; its log says why', { cause })
    }
    return await this.#sync(user, identity)
  }

  /** Makes a wallet an account of a user; LOGIN_REFUSED when it is another user's. Once it is theirs, it changes nothing. */
  async link(userId: string, identity: ProvenIdentity): Promise<void> {
    await lock.run(keyOf(identity), async () => {
      const owner = await this.#owner(identity)
      if (owner !== undefined && owner.id !== userId) {
        throw new CountersignError(
          'LOGIN_REFUSED',
          'The wallet belongs to another user; sign in with it and unlink it there first',
        )
      }
      if (owner === undefined) await this.#addAccount(userId, identity)
      const user = owner ?? (await this.#context.internalAdapter.findUserById(userId))
      if (user !== null) await this.#sync(user, identity)
    })
  }

  async #ownerOrNew(identity: ProvenIdentity): Promise<User> {
    return await lock.run(keyOf(identity), async () => {
      const owner = await this.#owner(identity)
      if (owner !== undefined) return owner
      const email = placeholderEmail(identity)
      try {
        return await this.#make(identity, email)
      } catch (cause) {
        const madeElsewhere = await this.#owner(identity)
        if (madeElsewhere !== undefined) return madeElsewhere
        const namesake = await this.#context.internalAdapter.findUserByEmail(email)
        if (namesake === null || Date.now() < namesake.user.createdAt.getTime() + beingMadeMs) throw cause
        // The wallet was once this user's and no longer is: whoever holds it now is somebody else.
        return await this.#make(identity, placeholderEmail(identity, newId()))
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
      // A hook of the application answers false for one it does not want.
      if (created === null) throw loginRefused()
      await this.#addAccount(created.id, identity)
      return created
    })
  }

  async #addAccount(userId: string, identity: ProvenIdentity): Promise<void> {
    const { internalAdapter } = this.#context
    const account = await internalAdapter.linkAccount({ userId, ...accountKey(identity) })
    if (account === null) throw loginRefused()
    try {
      // No index of Better Auth's keeps two instances from adding one wallet to two users: whoever sees both steps back.
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
    // Its user was deleted around Better Auth.
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

function accountKey({ adapterId, publicKeyHex }: ProvenIdentity): { providerId: string; accountId: string } {
  return { providerId: adapterId, accountId: publicKeyHex }
}

function keyOf({ adapterId, publicKeyHex }: ProvenIdentity): string {
  return `${adapterId}:${publicKeyHex}`
}

/**
 * Better Auth's users have an email address. A wallet's user gets one under a name that is reserved never to exist
 * (RFC 6761 §6.4). Nobody is ever looked up by it to sign in.
 */
function placeholderEmail(identity: ProvenIdentity, salt = ''): string {
  const hash = createHash('sha256')
    .update(`${keyOf(identity)}${salt}`)
    .digest('hex')
    .slice(0, 32)
  return createPlaceholderEmail({ identifier: hash, namespace: 'wallet' })
}
