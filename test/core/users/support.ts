import { randomBytes, randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { AdminActions } from '../../../src/commands/admin/admin-actions.ts'
import type { Session } from '../../../src/core/users/host.ts'
import type { UserAdministration } from '../../../src/core/users/user-administration.ts'
import type { ProvenIdentity } from '../../../src/core/wallet/wallet.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { onPostgres, ordinaryStore } from '../../support/ordinary-store.ts'
import { TestHost, type TestHostOptions, trustedOrigin } from '../../support/standalone.ts'
import { redisUrl } from '../../support/stores.ts'
import { from } from '../order/support.ts'

/** Where the races are run whose parts may be at two instances: in memory, and on Redis or PostgreSQL. */
export const racedStores: readonly (readonly [name: string, open: () => Promise<Store>])[] = onPostgres
  ? [['on PostgreSQL', openPostgres]]
  : [['in memory', memoryStore], ...(redisUrl === undefined ? [] : ([['on Redis', openRedis]] as const))]

/** Redis with a prefix of its own, because what searches the store reads all of it. */
async function openRedis(): Promise<Store> {
  const store = await openStore(String(await redisUrl?.()), { keyPrefix: `users-${randomUUID()}` })
  onTestFinished(() => store.close())
  return store
}

async function openPostgres(): Promise<Store> {
  const store = await openStore((await ordinaryStore()).store)
  onTestFinished(() => store.close())
  return store
}

/** A standalone host as one process has it. */
export function hostOn(store: Store, options?: TestHostOptions): TestHost {
  return new TestHost(store, options)
}

/** What an operator's command has of a store. */
export function administrationOn(store: Store): UserAdministration {
  return new AdminActions(store).users
}

/** A wallet that has not been seen before, and has proven itself. */
export function newWallet(): ProvenIdentity {
  const key = randomBytes(32).toString('hex')
  return { adapterId: 'nimiq', subject: key, publicKeyHex: key, address: `NQ ${key}` }
}

/** A session with its token. */
export interface SignedIn {
  readonly userId: string
  readonly session: Session
  readonly token: string
}

/** Signs a wallet in. */
export async function signIn(host: TestHost, wallet: ProvenIdentity): Promise<SignedIn> {
  const user = await host.resolveUser(wallet)
  const { session, token } = await host.createSession(user, wallet, from(trustedOrigin))
  return { userId: user.id, session, token }
}

/** Takes a wallet from the user of a session. */
export async function unlink(host: TestHost, session: Session, { subject }: ProvenIdentity): Promise<void> {
  await host.users.unlink(session, (wallets) => wallets.find((wallet) => wallet.subject === subject))
}

/** The subjects of the wallets of a user. */
export async function subjectsOf(host: TestHost, userId: string): Promise<string[]> {
  // Of no wallet, so that asking changes nothing.
  const session = { userId, adapterId: 'none', publicKeyHex: '', address: '' } as Session
  return (await host.users.list(session)).map(({ subject }) => subject)
}
