import { describe, expect, test } from 'vitest'
import { type AuditEvent, AuditTrail } from '../../../src/base/audit.ts'
import { storedOrders } from '../../../src/core/order/records.ts'
import type { IssuedSession } from '../../../src/core/users/host.ts'
import type { OrderEvent, StartOrderOptions } from '../../../src/shared/orders.ts'
import type { Store } from '../../../src/store/store.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { stores } from '../../support/stores.ts'
import { everyTwoSwitches } from '../users/interleavings.ts'
import { administrationOn } from '../users/support.ts'
import {
  Computer,
  desktop,
  from,
  type Going,
  type Instance,
  type InstanceOptions,
  issuedBy,
  makeInstance,
  otherCode,
  passTime,
  phone,
  reasonOf,
  Signer,
  signedIn,
  suiteStore,
  untilWaiting,
  withSession,
} from './support.ts'

const link = { kind: 'link' } as const
const minutes = 60_000

/** The addresses of the wallets of a session's user. */
async function addressesOf({ wallets }: Instance, session: IssuedSession): Promise<string[]> {
  return (await wallets.list(withSession(session))).wallets.map(({ address }) => address)
}

/** A user with a session, and an order of that session, which waits for the user of another wallet. */
async function waiting(instance: Instance, input: StartOrderOptions = link) {
  const [own, added] = [new Signer(), new Signer()]
  const session = await signedIn(instance, own)
  const order = await untilWaiting(instance, input, added, withSession(session))
  return { own, added, session, order }
}

/** The same, approved: with the code that the phone shows. */
async function approved(instance: Instance) {
  const all = await waiting(instance)
  const { returnCode } = await instance.orders.approve(all.order, phone)
  return { ...all, order: { ...all.order, returnCode: returnCode as string } }
}

function finalize({ orders }: Instance, order: Going & { readonly returnCode?: string }, session: IssuedSession) {
  return orders.finalize(order, withSession(session))
}

describe.each(stores)('orders that add a wallet, on $name:', async ({ open }) => {
  const store = await suiteStore(open)

  const instanceOf = (options?: InstanceOptions) => makeInstance(store, options)

  test('the wallet that approves signs in as the user who started, from then on', async () => {
    const instance = instanceOf()
    const { order, session, added } = await approved(instance)
    const result = await finalize(instance, order, session)
    expect(result).toEqual({
      orderId: order.orderId,
      status: 'finalized',
      kind: 'link',
      redirectTo: '/',
      wallet: {
        adapterId: 'ed25519',
        subject: added.publicKeyHex,
        publicKeyHex: added.publicKeyHex,
        address: expect.stringMatching(/^NQ/),
        linkedAt: expect.any(Number),
        current: false,
      },
      cookies: [],
    })
    expect((await signedIn(instance, added)).session.userId).toBe(session.session.userId)
    expect(await addressesOf(instance, session)).toHaveLength(2)
  })

  test('the text names the user and the wallet of the session, and then the order', async () => {
    const instance = instanceOf()
    const { order, session } = await waiting(instance)
    const { userId, address } = session.session
    expect(order.message).toMatch(/^Example requests approval\nAction: auth\.link\n/)
    expect(order.message).toContain(
      `\nUser: ${userId}\nSession Account: ${address}\nOrder ID: ${order.orderId}\nKind: link`,
    )
    expect(order.message).not.toContain('\nCode: ')
    const challenge = await instance.orders.readChallenge(order, phone)
    expect(challenge).toMatchObject({ action: 'auth.link', kind: 'link', sessionAccount: address })
    expect(challenge).toMatchObject({ canRememberComputer: false })
    expect(challenge).not.toHaveProperty('confirmationCode')
  })

  test('a preview shows no account', async () => {
    const instance = instanceOf()
    const session = await signedIn(instance)
    const { orderId, claimToken } = await instance.orders.start(link, withSession(session))
    const preview = await instance.orders.preview({ orderId, claimToken }, phone)
    expect(preview.kind).toBe('link')
    const { userId, id, address } = session.session
    for (const secret of [userId, id, address]) expect(JSON.stringify(preview)).not.toContain(secret)
  })

  test('the event of the approval names the wallet, and no other event does', async () => {
    const instance = instanceOf()
    const { order, session, added } = await approved(instance)
    const { wallet } = (await finalize(instance, order, session)) as { wallet: { address: string } }
    const events: OrderEvent[] = []
    const watch = { ...order, afterSequence: 0 }
    for await (const event of instance.orders.watch(watch, desktop, new AbortController().signal)) events.push(event)
    const named = events.filter((event) => 'address' in event || 'adapterId' in event)
    expect(named).toMatchObject([
      { status: 'approved', adapterId: 'ed25519', address: wallet.address, returnCodeRequired: true },
    ])
    expect((await signedIn(instance, added)).session.address).toBe(wallet.address)
  })

  describe('a code is always asked for,', () => {
    test.each(['compare', 'return'] as const)('with confirmationCode %s', async (confirmationCode) => {
      const instance = instanceOf({ settings: { confirmationCode } })
      const { order, session } = await approved(instance)
      expect(order).toMatchObject({ confirmationCode: '', returnCode: expect.stringMatching(/^\d{6}$/) })
      const { returnCode: _code, ...without } = order
      expect(await reasonOf(finalize(instance, without, session))).toBe('RETURN_CODE_REQUIRED')
      const guess = { ...order, returnCode: otherCode(order.returnCode) }
      for (let n = 0; n < 3; n++) expect(await reasonOf(finalize(instance, guess, session))).toBe('RETURN_CODE_WRONG')
      expect(await reasonOf(finalize(instance, order, session))).toBe('ORDER_REJECTED')
      expect(await addressesOf(instance, session)).toHaveLength(1)
    })

    test('also from a computer that is known for both wallets', async () => {
      const instance = instanceOf({ settings: { confirmationCode: 'return' } })
      const [own, added, computer] = [new Signer(), new Signer(), new Computer()]
      for (const signer of [own, added]) {
        const login = { kind: 'login', computerKey: computer.computerKey } as const
        const order = await untilWaiting(instance, login, signer)
        const { returnCode } = await instance.orders.approve({ ...order, rememberComputer: true }, phone)
        const request = { ...order, returnCode, computerProof: computer.prove(order) }
        await instance.orders.finalize(request, desktop)
      }
      const session = await signedIn(instance, own)
      const keyed = { ...link, computerKey: computer.computerKey }
      expect(await reasonOf(instance.orders.start(keyed, withSession(session)))).toBe('INVALID_REQUEST')
      const order = await untilWaiting(instance, link, new Signer(), withSession(session))
      const { returnCode } = await instance.orders.approve({ ...order, rememberComputer: true }, phone)
      expect(returnCode).toMatch(/^\d{6}$/)
    })
  })

  describe('who starts one', () => {
    test('has a session of the last ten minutes that no order made', async () => {
      const instance = instanceOf()
      expect(await reasonOf(instance.orders.start(link, desktop))).toBe('SESSION_REQUIRED')
      const login = await untilWaiting(instance)
      await instance.orders.approve(login, phone)
      const byOrder = issuedBy(await instance.orders.finalize(login, desktop))
      expect(await reasonOf(instance.orders.start(link, withSession(byOrder)))).toBe('SESSION_NOT_FRESH')
      const session = await signedIn(instance)
      passTime(10 * minutes - 1000)
      await instance.orders.start(link, withSession(session))
      passTime(1000)
      expect(await reasonOf(instance.orders.start(link, withSession(session)))).toBe('SESSION_NOT_FRESH')
    })

    test('comes from a trusted origin', async () => {
      const instance = instanceOf()
      const { headers } = withSession(await signedIn(instance))
      const elsewhere = from('https://evil.example', { headers })
      expect(await reasonOf(instance.orders.start(link, elsewhere))).toBe('ORIGIN_NOT_TRUSTED')
    })

    test('needs no start key where others do', async () => {
      const instance = instanceOf({ settings: { orderStartKeys: ['k'.repeat(32)] } })
      const session = await signedIn(instance)
      expect(await reasonOf(instance.orders.start({ kind: 'login' }, withSession(session)))).toBe('START_KEY_REQUIRED')
      const { order } = await approved(instance)
      expect(order.status).toBe('created')
      const keyed = from('https://app.example', { headers: new Headers({ authorization: `Bearer ${'k'.repeat(32)}` }) })
      expect(await reasonOf(instance.orders.start(link, keyed))).toBe('SESSION_INVALID')
    })

    test.each([
      ['display_title', { displayTitle: 'Claim your prize' }],
      ['display_summary', { displaySummary: 'Two clicks' }],
      ['payload_hash', { payloadHash: 'abc' }],
      ['payload', { payload: '{}' }],
      ['computer_key', { computerKey: new Computer().computerKey }],
      ['expected_address', { adapterId: 'nimiq', expectedAddress: 'NQ07 0000 0000 0000 0000 0000 0000 0000 0000' }],
      ['expected_public_key_hex', { adapterId: 'nimiq', expectedPublicKeyHex: '11'.repeat(32) }],
      ['requester', { requester: { origin: 'https://app.example' } }],
    ] as const)('cannot say %s', async (field, more) => {
      const instance = instanceOf()
      const request = withSession(await signedIn(instance))
      const start = instance.orders.start({ ...link, ...more }, request)
      await expect(start).rejects.toMatchObject({ reason: 'INVALID_REQUEST', metadata: { field } })
      await instance.orders.start({ ...link, adapterId: 'nimiq', returnTo: '/account' }, request)
    })

    test('gets NOT_ENABLED where the application keeps its users', async () => {
      const instance = instanceOf({ host: { resolveLogin: () => ({ id: 'user' }) } })
      const request = withSession(await signedIn(instance))
      expect(await reasonOf(instance.orders.start(link, request))).toBe('NOT_ENABLED')
    })
  })

  describe('an approval is refused, and the order stays,', () => {
    test('by a wallet of another user', async () => {
      const instance = instanceOf()
      const { order } = await waiting(instance)
      const taken = new Signer()
      await signedIn(instance, taken)
      const proof = taken.prove(order.message)
      expect(await reasonOf(instance.orders.approve({ ...order, proof }, phone))).toBe('WALLET_TAKEN')
      expect((await instance.orders.approve(order, phone)).status).toBe('approved')
    })

    test('by a wallet that an operator has blocked', async () => {
      const instance = instanceOf({ blocks: true })
      const { order, added } = await waiting(instance)
      const { publicKeyHex } = added
      const wallet = { adapterId: 'ed25519', subject: publicKeyHex, publicKeyHex, address: '' }
      const administration = administrationOn(store)
      await administration.block(wallet)
      expect(await reasonOf(instance.orders.approve(order, phone))).toBe('LOGIN_REFUSED')
      await administration.unblock(wallet)
      expect((await instance.orders.approve(order, phone)).status).toBe('approved')
    })

    test('by a twenty-first wallet', async () => {
      const instance = instanceOf()
      const { order, session, added } = await waiting(instance)
      for (let n = 0; n < 19; n++) {
        const publicKeyHex = new Signer().publicKeyHex
        const more = { adapterId: 'ed25519', subject: publicKeyHex, publicKeyHex, address: `NQ ${publicKeyHex}` }
        await instance.host.users.link(session.session, more)
      }
      await expect(instance.orders.approve(order, phone)).rejects.toMatchObject({
        reason: 'INVALID_REQUEST',
        message: expect.stringContaining('20 wallets'),
      })
      const stored = await storedOrders(store).load(order.orderId)
      expect(stored?.order.status).toBe('waiting_user')
      expect((await signedIn(instance, added)).session.userId).not.toBe(session.session.userId)
    })

    test('by a signature for anything else; and the signature of a link counts for nothing else', async () => {
      const instance = instanceOf()
      const { order, session, added } = await waiting(instance)
      const login = await untilWaiting(instance, { kind: 'login' }, added)
      const sign = await untilWaiting(instance, { kind: 'sign' }, added)
      const other = await waiting(instance)
      const nonce = await instance.signIn.issueNonce(undefined, {}, desktop)
      const { challenge } = await instance.wallets.links.issueNonce(undefined, {}, withSession(session))
      const proofs = [login, sign, other.order, nonce, challenge].map(({ message }) => added.prove(message))
      for (const proof of proofs) {
        expect(await reasonOf(instance.orders.approve({ ...order, proof }, phone))).toBe('SIGNATURE_INVALID')
      }
      for (const elsewhere of [login, sign, other.order]) {
        const proof = order.proof
        expect(await reasonOf(instance.orders.approve({ ...elsewhere, proof }, phone))).toBe('SIGNATURE_INVALID')
      }
      expect(await reasonOf(instance.signIn.verify(nonce.nonceId, order.proof, desktop))).toBe('SIGNATURE_INVALID')
      const direct = instance.wallets.link(challenge.nonceId, order.proof, withSession(session))
      expect(await reasonOf(direct)).toBe('SIGNATURE_INVALID')
    })
  })

  describe('finalizing takes the session that started:', () => {
    test('no other, of that user or of another, and none that has ended', async () => {
      const instance = instanceOf()
      const { order, session, own } = await approved(instance)
      const others = [await signedIn(instance, own), await signedIn(instance)]
      for (const other of others) expect(await reasonOf(finalize(instance, order, other))).toBe('SESSION_REQUIRED')
      expect(await reasonOf(instance.orders.finalize(order, desktop))).toBe('SESSION_REQUIRED')
      const stored = await storedOrders(store).load(order.orderId)
      expect(stored?.order).toMatchObject({ status: 'approved' })
      expect(stored?.order).not.toHaveProperty('wrongReturnCodes')
      await finalize(instance, order, session)
      for (const other of others) expect(await reasonOf(finalize(instance, order, other))).toBe('SESSION_REQUIRED')
    })

    test('it tells nothing of the order before: neither its state nor whether a code is right', async () => {
      const instance = instanceOf()
      const { order, session } = await approved(instance)
      const other = await signedIn(instance)
      for (const returnCode of [undefined, otherCode(order.returnCode), order.returnCode]) {
        const request = { ...order, returnCode }
        expect(await reasonOf(instance.orders.finalize(request, withSession(other)))).toBe('SESSION_REQUIRED')
      }
      await instance.orders.cancel(order, desktop)
      expect(await reasonOf(finalize(instance, order, other))).toBe('SESSION_REQUIRED')
      expect(await reasonOf(finalize(instance, order, session))).toBe('ORDER_CANCELLED')
    })

    test.each([
      ['signed out', (instance: Instance, session: IssuedSession) => instance.host.signOut(withSession(session))],
      ['revoked', ({ host }: Instance, { session }: IssuedSession) => host.revokeSession(session.userId, session.id)],
      [
        'ended with its wallet',
        async ({ host }: Instance, { session }: IssuedSession) => {
          const { publicKeyHex } = new Signer()
          const wallet = { adapterId: 'ed25519', subject: publicKeyHex, publicKeyHex, address: `NQ ${publicKeyHex}` }
          await host.users.link(session, wallet)
          await host.users.unlink(session, (wallets) => wallets.find(({ address }) => address === session.address))
        },
      ],
    ] as const)('none that was %s in between', async (_, endOf) => {
      const instance = instanceOf()
      const { order, session, added } = await approved(instance)
      await endOf(instance, session)
      expect(await reasonOf(finalize(instance, order, session))).toBe('SESSION_INVALID')
      expect((await signedIn(instance, added)).session.userId).not.toBe(session.session.userId)
    })

    test('it need not be fresh any more', async () => {
      const instance = instanceOf()
      const own = new Signer()
      const session = await signedIn(instance, own)
      passTime(10 * minutes - 1000)
      const order = await untilWaiting(instance, link, new Signer(), withSession(session))
      const { returnCode } = await instance.orders.approve(order, phone)
      passTime(60_000)
      await instance.orders.finalize({ ...order, returnCode }, withSession(session))
      expect(await addressesOf(instance, session)).toHaveLength(2)
    })
  })

  test('a wallet that became another user’s in between stays theirs, and the order stays approved', async () => {
    const instance = instanceOf()
    const { order, session, added } = await approved(instance)
    const theirs = await signedIn(instance, added)
    expect(await reasonOf(finalize(instance, order, session))).toBe('WALLET_TAKEN')
    expect((await storedOrders(store).load(order.orderId))?.order.status).toBe('approved')
    expect((await signedIn(instance, added)).session.userId).toBe(theirs.session.userId)
    expect(await addressesOf(instance, session)).toHaveLength(1)
  })

  test('a second finalize within 60 seconds has the same answer, and a later one none', async () => {
    const instance = instanceOf()
    const { order, session } = await approved(instance)
    const first = await finalize(instance, order, session)
    passTime(59_000)
    expect(await finalize(instanceOf(), order, session)).toEqual(first)
    passTime(1000)
    expect(await reasonOf(finalize(instance, order, session))).toBe('ORDER_FINALIZED')
  })

  test('a wallet that the user has already changes nothing, and taking the order back leaves it', async () => {
    const instance = instanceOf()
    const { own, session, order: first } = await approved(instance)
    await finalize(instance, first, session)
    const order = await untilWaiting(instance, link, own, withSession(session))
    const again = await instance.orders.approve(order, phone)
    await finalize(instance, { ...order, returnCode: again.returnCode as string }, session)
    const answer = { orderId: order.orderId, status: 'finalized', walletUnlinked: false }
    expect(await instance.orders.reject(order, phone)).toEqual(answer)
    expect(await addressesOf(instance, session)).toHaveLength(2)
  })

  describe('taking back', () => {
    test('unlinks the wallet and ends its sessions, and the computer cannot finalize again', async () => {
      const instance = instanceOf()
      const { order, session, added } = await approved(instance)
      await finalize(instance, order, session)
      const byAdded = await signedIn(instance, added)
      const answer = { orderId: order.orderId, status: 'finalized', walletUnlinked: true }
      expect(await instanceOf().orders.reject(order, phone)).toEqual(answer)
      expect(await instance.host.introspect(byAdded.token)).toBeUndefined()
      expect(await instance.host.introspect(session.token)).toBeDefined()
      expect(await addressesOf(instance, session)).toHaveLength(1)
      expect(await reasonOf(finalize(instance, order, session))).toBe('ORDER_REJECTED')
      expect(await instance.orders.reject(order, phone)).toEqual(answer)
      expect((await signedIn(instance, added)).session.userId).not.toBe(session.session.userId)
    })

    test('leaves the wallet if it is the user’s only one', async () => {
      const instance = instanceOf()
      const { order, session, added } = await approved(instance)
      await finalize(instance, order, session)
      const { session: byAdded } = await signedIn(instance, added)
      const { address } = session.session
      await instance.host.users.unlink(byAdded, (wallets) => wallets.find((wallet) => wallet.address === address))
      expect(await instance.orders.reject(order, phone)).toMatchObject({ status: 'finalized', walletUnlinked: false })
      expect((await signedIn(instance, added)).session.userId).toBe(session.session.userId)
    })
  })
})

describe('a take-back at the same time as the finalize', () => {
  async function prepared(store: Store) {
    const all = await approved(makeInstance(store))
    const part = (act: (instance: Instance) => Promise<unknown>) => (handle: Store) => act(makeInstance(handle))
    return {
      ...all,
      finalizing: part((instance) => finalize(instance, all.order, all.session)),
      takingBack: part((instance) => instance.orders.reject(all.order, phone)),
    }
  }

  /** The wallet is not the user's, and no session of it is left there. */
  async function expectFree(store: Store, { session, added }: Awaited<ReturnType<typeof prepared>>): Promise<void> {
    const instance = makeInstance(store)
    expect(await addressesOf(instance, session)).toHaveLength(1)
    const sessions = await instance.host.listSessions(session.session.userId)
    expect(sessions.map(({ id }) => id)).toEqual([session.session.id])
    expect((await signedIn(instance, added)).session.userId).not.toBe(session.session.userId)
  }

  test.each([0, 1] as const)('leaves no wallet, in whatever order their steps happen; part %s begins', async (one) => {
    const store = await memoryStore()
    const ends = new Set<string>()
    await everyTwoSwitches(store, { one, stride: 1 }, async () => {
      const all = await prepared(store)
      return {
        parts: [all.finalizing, all.takingBack],
        async check([finalized, rejected]) {
          expect(rejected.status).toBe('fulfilled')
          await expectFree(store, all)
          ends.add(finalized.status)
        },
      }
    })
    expect([...ends].sort()).toEqual(['fulfilled', 'rejected'])
  })

  test('leaves none either if the wallet signs in meanwhile', async () => {
    const store = await memoryStore()
    await everyTwoSwitches(store, { one: 1, stride: 1 }, async () => {
      const all = await prepared(store)
      const signingIn = (handle: Store) => signedIn(makeInstance(handle), all.added)
      return {
        parts: [
          all.takingBack,
          async (handle) => await Promise.allSettled([all.finalizing(handle), signingIn(handle)]),
        ],
        async check() {
          const instance = makeInstance(store)
          const held = await addressesOf(instance, all.session)
          expect(held).toHaveLength(1)
          const sessions = await instance.host.listSessions(all.session.session.userId)
          expect(sessions.map(({ id }) => id)).toEqual([all.session.session.id])
        },
      }
    })
  })
})

test('events say what was linked and unlinked, by which order, once', async () => {
  const store = await memoryStore()
  const events: AuditEvent[] = []
  const instance = makeInstance(store, { audit: new AuditTrail(Date.now, [(event) => events.push(event)]) })
  const { order, session, added } = await approved(instance)
  await finalize(instance, order, session)
  passTime(1000)
  await finalize(instance, order, session)
  await instance.orders.reject(order, phone)
  await instance.orders.reject(order, phone)
  const { userId, id: sessionId } = session.session
  const about = { orderId: order.orderId, userId, sessionId, publicKeyHex: added.publicKeyHex }
  expect(events.filter(({ type }) => type.startsWith('wallet.'))).toMatchObject([
    { type: 'wallet.linked', ...about },
    { type: 'wallet.unlinked', ...about },
  ])
  expect(events.filter(({ type }) => ['order.finalized', 'order.taken_back'].includes(type))).toMatchObject([
    { type: 'order.finalized', kind: 'link', ...about },
    { type: 'order.taken_back', kind: 'link', ...about },
  ])
})
