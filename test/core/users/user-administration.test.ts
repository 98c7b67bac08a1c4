import { hash, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { KnownComputers } from '../../../src/core/order/known-computers.ts'
import { type SearchableStore, UserAdministration } from '../../../src/core/users/user-administration.ts'
import type { ProvenIdentity } from '../../../src/core/wallet/wallet.ts'
import type { Store } from '../../../src/store/store.ts'
import { atEveryEnd, everyTwoSwitches, type Part } from './interleavings.ts'
import {
  administrationOn,
  hostOn,
  newWallet,
  openMemory,
  racedStores,
  type SignedIn,
  signIn,
  subjectsOf,
  unlink,
} from './support.ts'

// What operators do beside running services: at once with sign-ins, and by processes that end at any step.

const reasonOf = (outcome: PromiseSettledResult<unknown>): string | undefined =>
  outcome.status === 'fulfilled' ? undefined : (outcome.reason.reason ?? outcome.reason.message)

const ownId = ({ adapterId, subject }: ProvenIdentity): string =>
  `usr_${hash('sha256', `${adapterId}:${subject}`, 'base64url').slice(0, 22)}`

const computer = { ip: '192.0.2.77', userAgent: 'Kept browser/1.0' }

const remember = async (store: Store, wallet: ProvenIdentity): Promise<boolean> =>
  await new KnownComputers(store).remember(wallet, 'c', { orderId: randomUUID(), at: store.now() }, computer)

const isLive = async (store: Store, { token }: SignedIn): Promise<boolean> =>
  (await hostOn(store).introspect(token)) !== undefined

/**
 * A user with two wallets and a session of each. The first wallet made the user, and has a known computer, as the
 * second.
 */
async function twoWallets(store: Store) {
  const [wallet, second] = [newWallet(), newWallet()]
  const own = await signIn(hostOn(store), wallet)
  await hostOn(store).users.link(own.session, second)
  const other = await signIn(hostOn(store), second)
  for (const each of [wallet, second]) await remember(store, each)
  return { wallet, second, own, other, userId: own.userId }
}

/** All values that a store has, as one text. */
async function valuesOf(store: Store): Promise<string> {
  const values: string[] = []
  for await (const { key, value } of store.scan?.('') ?? []) values.push(`${key} ${value}`)
  return values.join('\n')
}

describe('operators', () => {
  describe('a block', () => {
    test.each(racedStores)(
      'during a sign-in, %s, leaves no session, and refuses the sign-in or ends it',
      async (_, open) => {
        const store = await open()
        const ends = new Set<string | undefined>()
        for (const one of [0, 1] as const) {
          await everyTwoSwitches(store, { one, stride: 1 }, async () => {
            const wallet = newWallet()
            await signIn(hostOn(store), wallet)
            const parts: [Part, Part] = [
              (handle) => administrationOn(handle).block(wallet),
              (handle) => signIn(hostOn(handle), wallet),
            ]
            return {
              parts,
              async check([blocked, signedIn]) {
                expect(reasonOf(blocked)).toBeUndefined()
                expect([undefined, 'LOGIN_REFUSED']).toContain(reasonOf(signedIn))
                ends.add(reasonOf(signedIn))
                expect((await administrationOn(store).find(ownId(wallet)))?.sessions).toEqual([])
                await expect(signIn(hostOn(store), wallet)).rejects.toMatchObject({ reason: 'LOGIN_REFUSED' })
              },
            }
          })
        }
        if (!store.shared) expect(ends.size).toBe(2)
      },
    )

    test('during the first sign-in of a wallet, and during one that resolveLogin decides, leaves no session', async () => {
      const store = await openMemory()
      for (const settings of [{}, { resolveLogin: () => ({ id: 'usr of the application' }) }]) {
        await everyTwoSwitches(store, { one: 1, stride: 1 }, async () => {
          const wallet = newWallet()
          return {
            parts: [
              (handle) => administrationOn(handle).block(wallet),
              (handle) => signIn(hostOn(handle, settings), wallet),
            ],
            async check([blocked, signedIn]) {
              expect(reasonOf(blocked)).toBeUndefined()
              if (signedIn.status === 'fulfilled') {
                expect(await isLive(store, signedIn.value as SignedIn)).toBe(false)
              } else expect(reasonOf(signedIn)).toBe('LOGIN_REFUSED')
              await expect(signIn(hostOn(store, settings), wallet)).rejects.toMatchObject({ reason: 'LOGIN_REFUSED' })
            },
          }
        })
      }
    })

    test('a block that ends at any step is completed by the next, and until then is whole or absent for sign-ins', async () => {
      const store = await openMemory()
      await atEveryEnd(
        store,
        () => twoWallets(store),
        (handle, { second }) => administrationOn(handle).block(second),
        async ({ own, other, second, userId }) => {
          await administrationOn(store).block(second)
          expect([await isLive(store, own), await isLive(store, other)]).toEqual([true, false])
          expect(await new KnownComputers(store).list(second)).toEqual([])
          await expect(signIn(hostOn(store), second)).rejects.toMatchObject({ reason: 'LOGIN_REFUSED' })
          expect(await administrationOn(store).unblock(second)).toBe(true)
          expect((await signIn(hostOn(store), second)).userId).toBe(userId)
        },
      )
    })

    test('outlasts unlinking, linking by another, and a move', async () => {
      const store = await openMemory()
      const [host, administration] = [hostOn(store), administrationOn(store)]
      const { second, own } = await twoWallets(store)
      const other = await signIn(host, newWallet())
      await administration.block(second)
      const refused = { reason: 'LOGIN_REFUSED' }
      await administration.move(second, other.userId)
      await expect(signIn(host, second)).rejects.toMatchObject(refused)
      await unlink(host, other.session, second)
      await expect(signIn(host, second)).rejects.toMatchObject(refused)
      await expect(host.users.link(own.session, second)).rejects.toMatchObject(refused)
      expect(await administration.unblock(second)).toBe(true)
      expect(await administration.unblock(second)).toBe(false)
      expect([own.userId, other.userId]).not.toContain((await signIn(host, second)).userId)
    })
  })

  describe('a move', () => {
    const prepare = async (store: Store) => {
      const user = await twoWallets(store)
      return { ...user, target: await signIn(hostOn(store), newWallet()) }
    }
    type Prepared = Awaited<ReturnType<typeof prepare>>
    const part = (handle: Store, { wallet, target }: Prepared) => administrationOn(handle).move(wallet, target.userId)

    /** That the wallet is the target's with all that belongs to that, and left nothing at its old user. */
    const expectMoved = async (
      store: Store,
      { wallet, second, own, other, target, userId }: Prepared,
    ): Promise<void> => {
      expect(await isLive(store, own)).toBe(false)
      expect(await isLive(store, other)).toBe(true)
      expect(await new KnownComputers(store).list(wallet)).toEqual([])
      expect(await new KnownComputers(store).list(second)).toHaveLength(1)
      expect(await administrationOn(store).ownerOf(wallet)).toEqual({ userId: target.userId })
      expect(await subjectsOf(hostOn(store), userId)).toEqual([second.subject])
      expect(await subjectsOf(hostOn(store), target.userId)).toContain(wallet.subject)
      expect((await signIn(hostOn(store), wallet)).userId).toBe(target.userId)
      expect((await signIn(hostOn(store), second)).userId).toBe(userId)
    }

    test('gives the wallet and nothing else to the other user', async () => {
      const store = await openMemory()
      const prepared = await prepare(store)
      expect(await part(store, prepared)).toBe(prepared.userId)
      await expectMoved(store, prepared)
      expect(await part(store, prepared)).toBeUndefined()
      expect((await store.get(`user:${prepared.userId}`))?.value).not.toContain(prepared.wallet.subject)
    })

    test('a move that ends at any step is completed by the next', async () => {
      const store = await openMemory()
      await atEveryEnd(
        store,
        () => prepare(store),
        part,
        async (prepared) => {
          await part(store, prepared)
          await expectMoved(store, prepared)
          expect((await store.get(`user:${prepared.userId}`))?.value).not.toContain(prepared.wallet.subject)
          expect(await valuesOf(store)).not.toContain('movedFrom')
        },
      )
    })

    test('a move that ends at any step leaves the wallet one user, who lists it', async () => {
      const store = await openMemory()
      const ends = new Set<boolean>()
      await atEveryEnd(
        store,
        () => prepare(store),
        part,
        async ({ wallet, target, userId }) => {
          const { userId: owner } = await signIn(hostOn(store), wallet)
          expect([userId, target.userId]).toContain(owner)
          ends.add(owner === userId)
          const [old, next] = [await subjectsOf(hostOn(store), userId), await subjectsOf(hostOn(store), target.userId)]
          expect([old.includes(wallet.subject), next.includes(wallet.subject)]).toEqual([
            owner === userId,
            owner !== userId,
          ])
        },
      )
      expect(ends.size).toBe(2)
    })

    test('a move that ends at any step is completed if the new user unlinks the wallet', async () => {
      const store = await openMemory()
      await atEveryEnd(
        store,
        () => prepare(store),
        part,
        async ({ wallet, own, target }) => {
          if ((await administrationOn(store).ownerOf(wallet)).userId !== target.userId) return
          await unlink(hostOn(store), target.session, wallet).catch(async () => {
            // The entry was not there yet: the wallet's sign-in writes it.
            await signIn(hostOn(store), wallet)
            await unlink(hostOn(store), target.session, wallet)
          })
          expect(await isLive(store, own)).toBe(false)
        },
      )
    })

    test('during a sign-in of the wallet leaves no session at the old user', async () => {
      const store = await openMemory()
      for (const one of [0, 1] as const) {
        await everyTwoSwitches(store, { one }, async () => {
          const prepared = await prepare(store)
          return {
            parts: [(handle) => part(handle, prepared), (handle) => signIn(hostOn(handle), prepared.wallet)],
            async check([moved, signedIn]) {
              expect(reasonOf(moved)).toBeUndefined()
              expect([undefined, 'LOGIN_REFUSED']).toContain(reasonOf(signedIn))
              const { sessions = [] } = (await administrationOn(store).find(prepared.userId)) ?? {}
              expect(sessions.filter(({ publicKeyHex }) => publicKeyHex === prepared.wallet.publicKeyHex)).toEqual([])
              await expectMoved(store, prepared)
            },
          }
        })
      }
    })

    test('while its old user unlinks the wallet is done, or refused because it is free', async () => {
      const store = await openMemory()
      for (const one of [0, 1] as const) {
        await everyTwoSwitches(store, { one, stride: 3 }, async () => {
          const prepared = await prepare(store)
          const { wallet, second, other, target, userId } = prepared
          return {
            parts: [(handle) => part(handle, prepared), (handle) => unlink(hostOn(handle), other.session, wallet)],
            async check([moved, unlinked]) {
              expect([undefined, 'WALLET_NOT_FOUND']).toContain(reasonOf(unlinked))
              expect([undefined, 'no user has this wallet']).toContain(reasonOf(moved))
              const { userId: owner } = await signIn(hostOn(store), wallet)
              if (moved.status === 'fulfilled') expect(owner).toBe(target.userId)
              else expect([userId, target.userId]).not.toContain(owner)
              expect(await subjectsOf(hostOn(store), userId)).toEqual([second.subject])
            },
          }
        })
      }
    })

    test('takes the only wallet of a user, who stays without one', async () => {
      const store = await openMemory()
      const [one, two] = [await signIn(hostOn(store), newWallet()), await signIn(hostOn(store), newWallet())]
      const { publicKeyHex } = two.session
      const wallet = { ...two.session, subject: publicKeyHex }
      expect(await administrationOn(store).move(wallet, one.userId)).toBe(two.userId)
      expect(await administrationOn(store).find(two.userId)).toMatchObject({ wallets: [], sessions: [] })
    })

    test('is refused if the user is unknown, or has as many wallets as a user can have', async () => {
      const store = await openMemory()
      const { session, userId } = await signIn(hostOn(store), newWallet())
      for (let i = 0; i < 19; i++) await hostOn(store).users.link(session, newWallet())
      const wallet = newWallet()
      const administration = administrationOn(store)
      await expect(administration.move(wallet, userId)).rejects.toThrow('no user has this wallet')
      const own = await signIn(hostOn(store), wallet)
      await expect(administration.move(wallet, userId)).rejects.toThrow('the user has 20 wallets')
      await expect(administration.move(wallet, 'usr_unknown')).rejects.toThrow('no user has this id')
      expect(await isLive(store, own)).toBe(true)
    })
  })

  describe('deleting a user', () => {
    const part = (handle: Store, { userId }: { readonly userId: string }) => administrationOn(handle).delete(userId)

    /** That nothing is left of the user, and that both wallets are new users. */
    const expectDeleted = async (
      store: Store,
      { wallet, second, own, other, userId }: Awaited<ReturnType<typeof twoWallets>>,
    ): Promise<void> => {
      expect([await isLive(store, own), await isLive(store, other)]).toEqual([false, false])
      for (const each of [wallet, second]) expect(await new KnownComputers(store).list(each)).toEqual([])
      expect(await administrationOn(store).find(userId)).toBeUndefined()
      expect(await hostOn(store).users.find(userId)).toBeUndefined()
      // What is left of the user is the mark, for ten minutes.
      const kept = (await valuesOf(store)).replaceAll(`"id":"${userId}"`, '').replaceAll(`user:${userId}`, '')
      const texts = [userId, wallet.subject, second.subject, own.session.ip, own.session.userAgent, computer.userAgent]
      for (const text of texts) expect(kept).not.toContain(text)
      const owners = [await signIn(hostOn(store), wallet), await signIn(hostOn(store), second)]
      expect(new Set([userId, ...owners.map((owner) => owner.userId)]).size).toBe(3)
      for (const owner of owners) await administrationOn(store).delete(owner.userId)
    }

    test('a move that ends at any step is completed by the next', async () => {
      const store = await openMemory()
      await atEveryEnd(
        store,
        () => twoWallets(store),
        part,
        async (prepared) => {
          expect(await part(store, prepared)).toBe(true)
          await expectDeleted(store, prepared)
        },
      )
    })

    test('a deletion that ends at any step leaves the wallets the old user with all, or new users', async () => {
      const store = await openMemory()
      const ends = new Set<boolean>()
      await atEveryEnd(
        store,
        () => twoWallets(store),
        part,
        async ({ wallet, second, userId }) => {
          const owners = [await signIn(hostOn(store), wallet), await signIn(hostOn(store), second)]
          const isOld = owners.map((owner) => owner.userId === userId)
          expect(isOld[0]).toBe(isOld[1])
          ends.add(isOld[0] === true)
          await part(store, { userId })
          for (const owner of owners) {
            expect(await isLive(store, owner)).toBe(!isOld[0])
            await administrationOn(store).delete(owner.userId)
          }
        },
      )
      expect(ends.size).toBe(2)
    })

    test('during a sign-in leaves nothing of the user, and the wallet none or a new one', async () => {
      const store = await openMemory()
      const ends = new Set<string>()
      for (const one of [0, 1] as const) {
        await everyTwoSwitches(store, { one }, async () => {
          const prepared = await twoWallets(store)
          return {
            parts: [(handle) => part(handle, prepared), (handle) => signIn(hostOn(handle), prepared.wallet)],
            async check([deleted, signedIn]) {
              expect(reasonOf(deleted)).toBeUndefined()
              expect([undefined, 'LOGIN_REFUSED']).toContain(reasonOf(signedIn))
              const made = signedIn.status === 'fulfilled' ? (signedIn.value as SignedIn) : undefined
              ends.add(made === undefined ? 'refused' : made.userId === prepared.userId ? 'ended' : 'new user')
              if (made !== undefined) expect(await isLive(store, made)).toBe(made.userId !== prepared.userId)
              if (made !== undefined) await administrationOn(store).delete(made.userId)
              await expectDeleted(store, prepared)
            },
          }
        })
      }
      expect([...ends].sort()).toEqual(['ended', 'new user', 'refused'])
    })

    test('while the user links a wallet leaves nothing of the user', async () => {
      const store = await openMemory()
      for (const one of [0, 1] as const) {
        await everyTwoSwitches(store, { one, stride: 2 }, async () => {
          const prepared = await twoWallets(store)
          const third = newWallet()
          return {
            parts: [
              (handle) => part(handle, prepared),
              (handle) => hostOn(handle).users.link(prepared.own.session, third),
            ],
            async check([deleted, linked]) {
              expect(reasonOf(deleted)).toBeUndefined()
              expect([undefined, 'SESSION_INVALID']).toContain(reasonOf(linked))
              const { userId } = await signIn(hostOn(store), third)
              expect(userId).not.toBe(prepared.userId)
              await administrationOn(store).delete(userId)
              await expectDeleted(store, prepared)
            },
          }
        })
      }
    })

    test('while a link is between its two writes stores no user again', async () => {
      const store = await openMemory()
      const { own, userId } = await twoWallets(store)
      const third = newWallet()
      let isDeleted = false
      const held = new Proxy(store, {
        get(target, name) {
          const value = Reflect.get(target, name)
          if (typeof value !== 'function') return value
          if (name === 'now') return value.bind(target)
          return async (...args: unknown[]) => {
            if (name === 'compareAndSet' && args[0] === `user:${userId}` && !isDeleted) {
              isDeleted = true
              await part(store, { userId })
            }
            return await value.apply(target, args)
          }
        },
      })
      const link = hostOn(held).users.link(own.session, third)
      await expect(link).rejects.toMatchObject({ reason: 'SESSION_INVALID' })
      expect(isDeleted).toBe(true)
      expect(await valuesOf(store)).not.toContain(third.subject)
      expect(await administrationOn(store).find(userId)).toBeUndefined()
    })

    test('a deletion that was interrupted knows all wallets, also if a sign-in has gone on with one of them and ended', async () => {
      const store = await openMemory()
      await atEveryEnd(
        store,
        async () => {
          const user = await twoWallets(store)
          const erased: string[] = []
          let fails = true
          const administration = new UserAdministration({
            store: store as SearchableStore,
            forgetComputers: async () => {},
            eraseTraces: async (_userId, wallets) => {
              if (fails) throw new Error('interrupted')
              erased.push(...wallets.map(({ subject }) => subject))
            },
          })
          await expect(administration.delete(user.userId)).rejects.toThrow('interrupted')
          fails = false
          return { ...user, erased, administration }
        },
        (handle, { second }) => signIn(hostOn(handle), second),
        async ({ userId, wallet, second, erased, administration }) => {
          const owner = (await administration.ownerOf(second)).userId ?? userId
          await administration.delete(userId)
          // Of a wallet that is a new user already, the traces can be that one's.
          expect(erased.sort()).toEqual(
            (owner === userId ? [wallet, second] : [wallet]).map(({ subject }) => subject).sort(),
          )
        },
      )
    })

    test('takes claims with it that a link left which a process did not complete', async () => {
      const store = await openMemory()
      const { own, userId } = await twoWallets(store)
      const third = newWallet()
      await hostOn(store).users.link(own.session, third)
      const stored = await store.get(`user:${userId}`)
      const { wallets, ...record } = JSON.parse(stored?.value ?? '')
      const without = { ...record, wallets: wallets.slice(0, 2) }
      await store.compareAndSet(`user:${userId}`, stored?.version ?? 0, JSON.stringify(without), 'forever')
      await administrationOn(store).delete(userId)
      await store.take(`user:${userId}`)
      expect((await signIn(hostOn(store), third)).userId).not.toBe(userId)
      expect(await valuesOf(store)).not.toContain(userId)
    })

    test('leaves other users alone', async () => {
      const store = await openMemory()
      const [one, two] = [await twoWallets(store), await twoWallets(store)]
      await part(store, one)
      expect([await isLive(store, two.own), await isLive(store, two.other)]).toEqual([true, true])
      expect(await administrationOn(store).find(two.userId)).toMatchObject({ wallets: [two.wallet, two.second] })
      expect(await part(store, { userId: 'usr_unknown' })).toBe(false)
    })

    test('ends the sessions of a user whom the application keeps', async () => {
      const store = await openMemory()
      const host = hostOn(store, { resolveLogin: () => ({ id: 'customer 7' }) })
      const wallet = newWallet()
      const made = await signIn(host, wallet)
      await remember(store, wallet)
      expect(await administrationOn(store).find('customer 7')).toEqual({
        id: 'customer 7',
        wallets: [],
        sessions: [made.session],
      })
      expect(await part(store, { userId: 'customer 7' })).toBe(true)
      expect(await isLive(store, made)).toBe(false)
      expect(await new KnownComputers(store).list(wallet)).toEqual([])
      expect(await part(store, { userId: 'customer 7' })).toBe(false)
    })
  })
})

test('a store that cannot be searched is refused', async () => {
  const store = await openMemory()
  const unsearchable = new Proxy(store, {
    get: (target, name) => (name === 'scan' ? undefined : Reflect.get(target, name)),
  })
  expect(() => administrationOn(unsearchable)).toThrow('cannot be searched')
})
