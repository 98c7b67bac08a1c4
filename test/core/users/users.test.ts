import { hash } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { KnownComputers } from '../../../src/core/order/known-computers.ts'
import type { ProvenIdentity } from '../../../src/core/wallet/wallet.ts'
import type { Store } from '../../../src/store/store.ts'
import { Random } from '../../http/generated/random.ts'
import type { TestHost } from '../../support/standalone.ts'
import { from } from '../order/support.ts'
import { atEveryEnd, endingAt, everyOrder, everyTwoSwitches, inRandomOrder, type Part } from './interleavings.ts'
import { hostOn, newWallet, openMemory, racedStores, type SignedIn, signIn, subjectsOf, unlink } from './support.ts'

// What the wallets of users go through: every order of the steps of two callers at the store, or of those that differ
// in where the callers take turns, and the end of a process before and after each step.

/** The id of the user that a wallet is by itself, as every release made it. */
function ownId({ adapterId, subject }: ProvenIdentity): string {
  return `usr_${hash('sha256', `${adapterId}:${subject}`, 'base64url').slice(0, 22)}`
}

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
  test('two first sign-ins of a wallet are one user, in every order of their steps', async () => {
    const store = await openMemory()
    const orders = await everyOrder(store, async (handle) => {
      const wallet = newWallet()
      const users = await Promise.all([1, 2].map(() => hostOn(handle).resolveUser(wallet)))
      expect(users).toEqual([{ id: ownId(wallet) }, { id: ownId(wallet) }])
      await expectAgreement(store, [wallet], [])
    })
    expect(orders).toBeGreaterThan(20)
  })

  test('two sign-ins of an unlinked wallet are one new user, in every order of their steps', async () => {
    const store = await openMemory()
    const unlinked = async () => {
      const wallet = newWallet()
      const { userId, session } = await userWith(hostOn(store), [wallet, newWallet()])
      await unlink(hostOn(store), session, wallet)
      return { wallet, before: userId }
    }
    const expectNew = async (wallet: ProvenIdentity, before: string, [one, two]: readonly string[]) => {
      expect(one).toBe(two)
      expect(one).not.toBe(before)
      expect(one).toMatch(/^usr_[\w-]{22}$/)
      await expectAgreement(store, [wallet], [])
    }
    const found = async (handle: Store, wallet: ProvenIdentity) => (await hostOn(handle).resolveUser(wallet)).id
    const orders = await everyOrder(store, async (handle) => {
      const { wallet, before } = await unlinked()
      await expectNew(wallet, before, await Promise.all([1, 2].map(() => found(handle, wallet))))
    })
    expect(orders).toBeGreaterThan(20)
  })

  /** Two users who want the same wallet, which nobody has seen. */
  async function rivals(store: Store) {
    const wallet = newWallet()
    const [one, two] = [newWallet(), newWallet()]
    const users = [await signIn(hostOn(store), one), await signIn(hostOn(store), two)] as const
    return { wallet, users, wallets: [wallet, one, two] }
  }

  test('of two users who link one wallet at once, one has it', async () => {
    const store = await openMemory()
    await everyTwoSwitches(store, {}, async () => {
      const { wallet, users, wallets } = await rivals(store)
      const linking =
        ({ session }: SignedIn): Part =>
        (handle) =>
          hostOn(handle).users.link(session, wallet)
      return {
        parts: [linking(users[0]), linking(users[1])],
        async check(outcomes) {
          expect(outcomes.map(reasonOf).sort()).toEqual(['WALLET_TAKEN', undefined])
          const winner = users[outcomes.findIndex(({ status }) => status === 'fulfilled')]
          expect((await expectAgreement(store, wallets, []))[0]).toBe(winner?.userId)
        },
      }
    })
  })

  test('a user who was found by one wallet gets no session by another that is not theirs', async () => {
    const store = await openMemory()
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
    const store = await openMemory()
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

  test('a wallet that is linked while it signs in for the first time is the one’s or the other’s', async () => {
    const store = await openMemory()
    const ends = new Set<boolean>()
    for (const one of [0, 1] as const) {
      await everyTwoSwitches(store, { one }, async () => {
        const { wallet, users, wallets } = await rivals(store)
        return {
          parts: [
            (handle) => hostOn(handle).users.link(users[0].session, wallet),
            (handle) => signIn(hostOn(handle), wallet),
          ],
          async check([linked, signedIn]) {
            const [owner] = await expectAgreement(store, wallets, [ownId(wallet)], fulfilled([signedIn]))
            expect(owner).toBe(linked.status === 'fulfilled' ? users[0].userId : ownId(wallet))
            expect(reasonOf(linked)).toBe(linked.status === 'fulfilled' ? undefined : 'WALLET_TAKEN')
            expect(fulfilled([signedIn])[0]?.userId).toBe(owner)
            ends.add(linked.status === 'fulfilled')
          },
        }
      })
    }
    expect(ends.size).toBe(2)
  })

  test('of two who unlink a user’s two wallets at once, one is refused', async () => {
    const store = await openMemory()
    await everyTwoSwitches(store, {}, async () => {
      const wallets = [newWallet(), newWallet()] as const
      const user = await userWith(hostOn(store), wallets)
      // Each by a session of the other wallet, which the other call does not end.
      const [one, two] = [user.session, user.others[0]?.session ?? user.session]
      return {
        parts: [
          (handle) => unlink(hostOn(handle), two, wallets[0]),
          (handle) => unlink(hostOn(handle), one, wallets[1]),
        ],
        async check(outcomes) {
          expect(outcomes.map(reasonOf).sort()).toEqual(['LAST_WALLET', undefined])
          expect(await subjectsOf(hostOn(store), user.userId)).toHaveLength(1)
          const owners = await expectAgreement(store, wallets, [user.userId], [user, ...user.others])
          expect(owners.filter((owner) => owner === user.userId)).toHaveLength(1)
        },
      }
    })
  })

  test.each([
    ['of a wallet that signs in while it is unlinked, no session at its old user is left', false],
    ['the same holds in a cluster, whose servers answer in any order', true],
  ] as const)('%s', async (_, lastFirst) => {
    const store = await openMemory()
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

  test('a wallet that is unlinked and linked again at once is its old user’s, or free', async () => {
    const store = await openMemory()
    for (const one of [0, 1] as const) {
      await everyTwoSwitches(store, { one }, async () => {
        const [kept, wallet] = [newWallet(), newWallet()]
        const user = await userWith(hostOn(store), [kept, wallet])
        return {
          parts: [
            (handle) => unlink(hostOn(handle), user.session, wallet),
            (handle) => hostOn(handle).users.link(user.session, wallet),
          ],
          async check(outcomes) {
            expect(outcomes.map(reasonOf)).toEqual([undefined, undefined])
            await expectAgreement(store, [kept, wallet], [user.userId], [user, ...user.others])
          },
        }
      })
    }
  })

  test('a wallet that is unlinked while another user links it is the other’s, or refused and free', async () => {
    const store = await openMemory()
    for (const one of [0, 1] as const) {
      await everyTwoSwitches(store, { one }, async () => {
        const [kept, wallet, others] = [newWallet(), newWallet(), newWallet()]
        const user = await userWith(hostOn(store), [kept, wallet])
        const other = await signIn(hostOn(store), others)
        return {
          parts: [
            (handle) => unlink(hostOn(handle), user.session, wallet),
            (handle) => hostOn(handle).users.link(other.session, wallet),
          ],
          async check([unlinked, linked]) {
            expect(reasonOf(unlinked)).toBeUndefined()
            expect([undefined, 'WALLET_TAKEN']).toContain(reasonOf(linked))
            const all = [kept, wallet, others]
            const owners = await expectAgreement(store, all, [user.userId, other.userId], [user, ...user.others])
            expect(owners[0]).toBe(user.userId)
            if (linked.status === 'fulfilled') expect(owners[1]).toBe(other.userId)
            else expect([user.userId, other.userId]).not.toContain(owners[1])
          },
        }
      })
    }
  })

  test('a process that ends at any step of a first sign-in leaves the wallet one user', async () => {
    const store = await openMemory()
    await atEveryEnd(
      store,
      async () => newWallet(),
      (handle, wallet) => signIn(hostOn(handle), wallet),
      async (wallet) => expect(await expectAgreement(store, [wallet], [])).toEqual([ownId(wallet)]),
    )
  })

  describe.each([
    ['that was never seen', false],
    ['that was unlinked from another user', true],
  ])('a process that ends at any step of linking a wallet %s', (_name, wasUnlinked) => {
    const prepare = async (store: Store) => {
      const { wallet, users, wallets } = await rivals(store)
      if (wasUnlinked) {
        await hostOn(store).users.link(users[1].session, wallet)
        await unlink(hostOn(store), users[1].session, wallet)
      }
      return { wallet, users, wallets }
    }
    type Prepared = Awaited<ReturnType<typeof prepare>>
    const link = (handle: Store, { users, wallet }: Prepared) => hostOn(handle).users.link(users[0].session, wallet)

    test('leaves the same user’s next link to go on', async () => {
      const store = await openMemory()
      await atEveryEnd(
        store,
        () => prepare(store),
        link,
        async (prepared) => {
          await link(store, prepared)
          const { users, wallets } = prepared
          expect((await expectAgreement(store, wallets, [users[1].userId]))[0]).toBe(users[0].userId)
        },
      )
    })

    test('leaves the wallet’s next sign-in one user, who lists it', async () => {
      const store = await openMemory()
      const ends = new Set<boolean>()
      await atEveryEnd(
        store,
        () => prepare(store),
        link,
        async ({ users, wallets }) => {
          const [owner] = await expectAgreement(
            store,
            wallets,
            users.map(({ userId }) => userId),
          )
          expect(owner).not.toBe(users[1].userId)
          ends.add(owner === users[0].userId)
        },
      )
      expect(ends.size).toBe(2)
    })

    test('leaves another user’s link a plain answer', async () => {
      const store = await openMemory()
      await atEveryEnd(
        store,
        () => prepare(store),
        link,
        async ({ users, wallet, wallets }) => {
          const [outcome] = await Promise.allSettled([hostOn(store).users.link(users[1].session, wallet)])
          expect([undefined, 'WALLET_TAKEN']).toContain(reasonOf(outcome))
          const [owner] = await expectAgreement(store, wallets, [])
          expect(owner).toBe(users[outcome.status === 'fulfilled' ? 1 : 0].userId)
        },
      )
    })
  })

  describe('a process that ends at any step of unlinking a wallet', () => {
    const computer = { ip: '192.0.2.1', userAgent: 'Browser/1.0' }
    const prepare = async (store: Store) => {
      const [kept, wallet] = [newWallet(), newWallet()]
      const user = await userWith(hostOn(store), [kept, wallet])
      await new KnownComputers(store).remember(wallet, 'c', { orderId: crypto.randomUUID(), at: store.now() }, computer)
      return { kept, wallet, user }
    }
    type Prepared = Awaited<ReturnType<typeof prepare>>
    const part = (handle: Store, { user, wallet }: Prepared) => unlink(hostOn(handle), user.session, wallet)

    const expectUnlinked = async (store: Store, { kept, wallet, user }: Prepared): Promise<void> => {
      for (const { token } of user.others) expect(await hostOn(store).introspect(token)).toBeUndefined()
      expect(await new KnownComputers(store).list(wallet)).toEqual([])
      // Last: whoever lists the wallets goes on with what was interrupted.
      expect(await subjectsOf(hostOn(store), user.userId)).toEqual([kept.subject])
      const owners = await expectAgreement(store, [kept, wallet], [user.userId], [user, ...user.others])
      expect(owners[0]).toBe(user.userId)
      expect(owners[1]).not.toBe(user.userId)
    }

    test('leaves a retry to go on', async () => {
      const store = await openMemory()
      await atEveryEnd(
        store,
        () => prepare(store),
        part,
        async (prepared) => {
          const [outcome] = await Promise.allSettled([part(store, prepared)])
          expect([undefined, 'WALLET_NOT_FOUND']).toContain(reasonOf(outcome))
          await expectUnlinked(store, prepared)
        },
      )
    })

    test('leaves the wallet’s next sign-in the old user with all, or a new user and nothing of the old one', async () => {
      const store = await openMemory()
      const ends = new Set<boolean>()
      await atEveryEnd(
        store,
        () => prepare(store),
        part,
        async (prepared) => {
          const { kept, wallet, user } = prepared
          const { userId } = await signIn(hostOn(store), wallet)
          ends.add(userId === user.userId)
          if (userId !== user.userId) return await expectUnlinked(store, prepared)
          expect((await subjectsOf(hostOn(store), userId)).sort()).toEqual([kept.subject, wallet.subject].sort())
          for (const { token } of user.others) expect(await hostOn(store).introspect(token)).toBeDefined()
        },
      )
      expect(ends.size).toBe(2)
    })
  })

  test('for all that is done at once, and wherever a process ends, each wallet has one user and no user loses the last one', async () => {
    const store = await openMemory()
    const random = new Random(Number(process.env.COUNTERSIGN_TEST_SEED ?? 20261122))
    for (let run = 0; run < 150; run++) {
      const wallets = [newWallet(), newWallet(), newWallet(), newWallet()] as const
      const users = [
        await userWith(hostOn(store), [wallets[0], wallets[1]]),
        await userWith(hostOn(store), [wallets[2]]),
      ]
      const sessions = users.flatMap((user) => [user, ...user.others])
      const parts = Array.from({ length: 4 }, (): Part => {
        const [wallet, { session }] = [random.pick(wallets), random.pick(sessions)]
        const act = random.pick<(host: TestHost) => Promise<unknown>>([
          async (host) => void sessions.push(await signIn(host, wallet)),
          (host) => host.users.link(session, wallet),
          (host) => unlink(host, session, wallet),
          (host) => host.users.list(session),
        ])
        const step = random.share() < 0.2 ? 1 + random.below(15) : 1000
        const isDone = random.share() < 0.5
        return (handle) => act(hostOn(endingAt(handle, step, isDone).handle))
      })
      const outcomes = await inRandomOrder(store, (below) => random.below(below), parts)
      for (const outcome of outcomes) {
        const known = [
          undefined,
          'WALLET_TAKEN',
          'WALLET_NOT_FOUND',
          'LAST_WALLET',
          'LOGIN_REFUSED',
          'STORE_UNAVAILABLE',
        ]
        expect(known).toContain(reasonOf(outcome))
      }
      for (const { userId } of users) expect(await subjectsOf(hostOn(store), userId)).not.toEqual([])
      await expectAgreement(
        store,
        wallets,
        users.map(({ userId }) => userId),
        sessions,
      )
    }
  })
})

test('a user has 20 wallets at most; a further one is refused and can still sign in by itself', async () => {
  const host = hostOn(await openMemory())
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
