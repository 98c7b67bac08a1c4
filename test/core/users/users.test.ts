import { describe, expect, test, vi } from 'vitest'
import type { ProvenIdentity } from '../../../src/core/wallet/wallet.ts'
import type { Store } from '../../../src/store/store.ts'
import { memoryStore } from '../../support/memory-store.ts'
import type { TestHost } from '../../support/standalone.ts'
import { from } from '../order/support.ts'
import { endInTurns, everyTwoSwitches } from './interleavings.ts'
import { hostOn, newWallet, racedStores, type SignedIn, signIn, subjectsOf, unlink } from './support.ts'

const reasonOf = (outcome: PromiseSettledResult<unknown>): string | undefined =>
  outcome.status === 'fulfilled' ? undefined : (outcome.reason.reason ?? String(outcome.reason))

/** A user with wallets, each of which has signed in. The first one made the user. */
async function userWith(host: TestHost, wallets: readonly [ProvenIdentity, ...ProvenIdentity[]]) {
  const own = await signIn(host, wallets[0])
  const others: SignedIn[] = []
  for (const wallet of wallets.slice(1)) {
    await host.users.link(own.session, wallet)
    others.push(await signIn(host, wallet))
  }
  return { ...own, others }
}

/**
 * That each wallet signs in as one user, who has it in the list, that no user lists another's, and that each session
 * that was made is over or its wallet's user's. Resolves with the users, in the order of the wallets.
 */
async function expectAgreement(
  store: Store,
  wallets: readonly ProvenIdentity[],
  users: readonly string[],
  sessions: readonly SignedIn[] = [],
): Promise<string[]> {
  const host = hostOn(store)
  const owners = new Map<string, string>()
  for (const wallet of wallets) {
    const { userId } = await signIn(host, wallet)
    expect((await signIn(host, wallet)).userId).toBe(userId)
    owners.set(wallet.subject, userId)
  }
  for (const user of new Set([...users, ...owners.values()])) {
    const owned = wallets.filter(({ subject }) => owners.get(subject) === user).map(({ subject }) => subject)
    expect((await subjectsOf(host, user)).sort()).toEqual(owned.sort())
  }
  for (const { token } of sessions) {
    const live = await host.introspect(token)
    if (live !== undefined) expect(live.userId).toBe(owners.get(live.publicKeyHex))
  }
  return [...owners.values()]
}

const fulfilled = (outcomes: readonly PromiseSettledResult<unknown>[]): SignedIn[] =>
  outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value as SignedIn)

describe('wallets:', () => {
  test('a user who was found by one wallet gets no session by another that is not theirs', async () => {
    const store = await memoryStore()
    const host = hostOn(store)
    const [own, foreign] = [newWallet(), newWallet()]
    await signIn(host, own)
    await signIn(host, foreign)
    const user = await host.resolveUser(own)
    const refused = host.createSession(user, foreign, from('http://shop.example'))
    await expect(refused).rejects.toMatchObject({ reason: 'LOGIN_REFUSED' })
    expect(await host.listSessions(user.id)).toHaveLength(1)
  })

  test('a user whose wallet is being unlinked gets no session by it that the unlinking would not find', async () => {
    const store = await memoryStore()
    const host = hostOn(store)
    const [own, second] = [newWallet(), newWallet()]
    const { session } = await signIn(host, own)
    await host.users.link(session, second)
    const other = await signIn(host, second)
    const user = await host.resolveUser(own)
    const members = store.members.bind(store)
    // The wallet is marked, its claim is still there, and its sessions have been listed.
    const listed = vi.spyOn(store, 'members').mockImplementationOnce(async (set) => {
      const ids = await members(set)
      const refused = host.createSession(user, own, from('http://shop.example'))
      await expect(refused).rejects.toMatchObject({ reason: 'LOGIN_REFUSED' })
      return ids
    })
    await unlink(host, other.session, own)
    expect(listed).toHaveBeenCalled()
    expect((await host.listSessions(user.id)).map(({ id }) => id)).toEqual([other.session.id])
  })

  test.each([
    ['of a wallet that signs in while it is unlinked, no session at its old user is left', false],
    ['the same holds in a cluster, whose servers answer in any order', true],
  ] as const)('%s', async (_, lastFirst) => {
    const store = await memoryStore()
    const ends = new Set<string>()
    for (const one of [0, 1] as const) {
      await everyTwoSwitches(store, { one, stride: 1, lastFirst }, async () => {
        const [kept, wallet] = [newWallet(), newWallet()]
        const user = await userWith(hostOn(store), [kept, wallet])
        return {
          parts: [(handle) => unlink(hostOn(handle), user.session, wallet), (handle) => signIn(hostOn(handle), wallet)],
          async check([unlinked, signedIn]) {
            expect(reasonOf(unlinked)).toBeUndefined()
            const sessions = [user, ...user.others, ...fulfilled([signedIn])]
            const owners = await expectAgreement(store, [kept, wallet], [user.userId], sessions)
            expect(owners[0]).toBe(user.userId)
            expect(owners[1]).not.toBe(user.userId)
            expect([undefined, 'LOGIN_REFUSED']).toContain(reasonOf(signedIn))
            ends.add(reasonOf(signedIn) ?? (fulfilled([signedIn])[0]?.userId === user.userId ? 'ended' : 'new user'))
          },
        }
      })
    }
    expect([...ends].sort()).toEqual(['LOGIN_REFUSED', 'ended', 'new user'])
  })

  test('a wallet that is taken back while its user links it does not keep the two calls busy for ever', async () => {
    const store = await memoryStore()
    for (let first = 0; first < 20; first++) {
      const wallet = newWallet()
      const { session } = await userWith(hostOn(store), [newWallet(), newWallet()])
      const withdraw = (handle: Store) => hostOn(handle).users.withdraw(session, wallet, 0)
      const link = (handle: Store) => hostOn(handle).users.link(session, wallet)
      expect(await endInTurns(store, [link, withdraw], first)).toBe(true)
    }
  })

  test.each(racedStores)(
    '30 links of one wallet at once by six users on two instances, %s: one user has it',
    async (_, open) => {
      const store = await open()
      const hosts = [hostOn(store), hostOn(store)]
      const host = (number: number) => hosts[number % 2] as TestHost
      const wallet = newWallet()
      const users: SignedIn[] = []
      for (let i = 0; i < 6; i++) users.push(await signIn(host(i), newWallet()))
      const outcomes = await Promise.allSettled(
        Array.from({ length: 30 }, (_, i) => host(i).users.link((users[i % 6] as SignedIn).session, wallet)),
      )
      const winners = users.filter((_, user) =>
        outcomes.some((each, i) => i % 6 === user && each.status === 'fulfilled'),
      )
      expect(winners).toHaveLength(1)
      expect(new Set(outcomes.map(reasonOf))).toEqual(new Set(['WALLET_TAKEN', undefined]))
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
      for (let i = 0; i < 2; i++) expect((await signIn(host(i), wallet)).userId).toBe(winners[0]?.userId)
    },
  )
})

test('a user has 20 wallets at most; a further one is refused and can still sign in by itself', async () => {
  const host = hostOn(await memoryStore())
  const { session, userId } = await signIn(host, newWallet())
  const linked = Array.from({ length: 19 }, newWallet)
  for (const wallet of linked) await host.users.link(session, wallet)
  const further = newWallet()
  await expect(host.users.link(session, further)).rejects.toMatchObject({
    reason: 'INVALID_REQUEST',
    message: expect.stringContaining('20 wallets'),
  })
  expect(await host.users.list(session)).toHaveLength(20)
  expect((await signIn(host, further)).userId).not.toBe(userId)
  await unlink(host, session, linked[0] as ProvenIdentity)
  await host.users.link(session, newWallet())
  expect(await host.users.list(session)).toHaveLength(20)
})
