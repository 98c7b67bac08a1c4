import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { KnownComputers } from '../../../src/core/order/known-computers.ts'
import type { ProvenIdentity } from '../../../src/core/wallet/wallet.ts'
import type { Store } from '../../../src/store/store.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { everyTwoSwitches } from './interleavings.ts'
import { administrationOn, hostOn, newWallet, type SignedIn, signIn, subjectsOf, unlink } from './support.ts'

const reasonOf = (outcome: PromiseSettledResult<unknown>): string | undefined =>
  outcome.status === 'fulfilled' ? undefined : (outcome.reason.reason ?? outcome.reason.message)

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
    test('outlasts unlinking, linking by another, and a move', async () => {
      const store = await memoryStore()
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
      const store = await memoryStore()
      const prepared = await prepare(store)
      expect(await part(store, prepared)).toBe(prepared.userId)
      await expectMoved(store, prepared)
      expect(await part(store, prepared)).toBeUndefined()
      expect((await store.get(`user:${prepared.userId}`))?.value).not.toContain(prepared.wallet.subject)
    })

    test('takes the only wallet of a user, who stays without one', async () => {
      const store = await memoryStore()
      const [one, two] = [await signIn(hostOn(store), newWallet()), await signIn(hostOn(store), newWallet())]
      const { publicKeyHex } = two.session
      const wallet = { ...two.session, subject: publicKeyHex }
      expect(await administrationOn(store).move(wallet, one.userId)).toBe(two.userId)
      expect(await administrationOn(store).find(two.userId)).toMatchObject({ wallets: [], sessions: [] })
    })

    test('is refused if the user is unknown, or has as many wallets as a user can have', async () => {
      const store = await memoryStore()
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

    test('leaves nothing of the user', async () => {
      const store = await memoryStore()
      const user = await twoWallets(store)
      expect(await part(store, user)).toBe(true)
      await expectDeleted(store, user)
    })

    // Every interleaving with two switches takes 11 s with nothing beside.
    test('during a sign-in leaves nothing of the user, and the wallet none or a new one', {
      timeout: 180_000,
    }, async () => {
      const store = await memoryStore()
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
              // A deletion looks through all that a store has, which would be more with each order of steps.
              for await (const { key } of store.scan?.('') ?? []) await store.take(key)
            },
          }
        })
      }
      expect([...ends].sort()).toEqual(['ended', 'new user', 'refused'])
    })

    test('while a link is between its two writes stores no user again', async () => {
      const store = await memoryStore()
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

    test('takes claims with it that a link left which a process did not complete', async () => {
      const store = await memoryStore()
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
      const store = await memoryStore()
      const [one, two] = [await twoWallets(store), await twoWallets(store)]
      await part(store, one)
      expect([await isLive(store, two.own), await isLive(store, two.other)]).toEqual([true, true])
      expect(await administrationOn(store).find(two.userId)).toMatchObject({ wallets: [two.wallet, two.second] })
      expect(await part(store, { userId: 'usr_unknown' })).toBe(false)
    })

    test('ends the sessions of a user whom the application keeps', async () => {
      const store = await memoryStore()
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
  const store = await memoryStore()
  const unsearchable = new Proxy(store, {
    get: (target, name) => (name === 'scan' ? undefined : Reflect.get(target, name)),
  })
  expect(() => administrationOn(unsearchable)).toThrow('cannot be searched')
})
