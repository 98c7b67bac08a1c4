import { describe, expect, test, vi } from 'vitest'
import { type AuditEvent, AuditTrail } from '../../../src/base/audit.ts'
import type { RequestContext } from '../../../src/base/request.ts'
import { Inboxes } from '../../../src/core/order/inboxes.ts'
import { storedOrders } from '../../../src/core/order/records.ts'
import type { IssuedSession } from '../../../src/core/users/host.ts'
import type { ProvenIdentity } from '../../../src/core/wallet/wallet.ts'
import { Concurrency, LiveCount } from '../../../src/limits/concurrency.ts'
import type { InboxOrder, StartedOrder, StartOrderOptions } from '../../../src/shared/orders.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { stores } from '../../support/stores.ts'
import { administrationOn } from '../users/support.ts'
import {
  appOrigin,
  Computer,
  desktop,
  from,
  type Instance,
  type InstanceOptions,
  issuedBy,
  makeInstance,
  ownOrigin,
  passTime,
  phone,
  reasonOf,
  Signer,
  signedIn,
  suiteStore,
  untilApproved,
} from './support.ts'

const seconds = 1000
const minutes = 60 * seconds
const hours = 60 * minutes
const payload = '{"action":"delete"}'
const keyOf = (name: string): string => `${name}-start-key-of-thirty-two-characters`
const orderStartKeys = [`bot=${keyOf('bot')}`, `bot=${keyOf('new-bot')}`, `ci=${keyOf('ci')}`, keyOf('unnamed')]
const finalizeKey = 'a-finalize-key-of-a-backend'

/** The application's backend. */
function backend(name = 'bot'): RequestContext {
  const headers = new Headers({ authorization: `Bearer ${keyOf(name)}` })
  return from('http://internal:8080', { headers, originSource: 'Host header', ip: '198.51.100.7' })
}

/** A page of the service, with a session. */
function own({ token }: IssuedSession): RequestContext {
  return from(ownOrigin, { headers: new Headers({ authorization: `Bearer ${token}` }) })
}

let claims = 0
const newClaimKey = (): string => `claim-key-number-${++claims}-of-these-tests`

/** An order that a browser of its user has read, with the proof of a wallet. */
interface Read extends StartedOrder {
  readonly challengeToken: string
  readonly proof: { readonly publicKeyHex: string; readonly signatureHex: string }
  readonly message: string
}

/** A service with a user, and what user and backend do. */
class Scene {
  readonly instance: Instance
  readonly signer: Signer
  readonly session: IssuedSession

  constructor(instance: Instance, signer: Signer, session: IssuedSession) {
    this.instance = instance
    this.signer = signer
    this.session = session
  }

  get userId(): string {
    return this.session.session.userId
  }

  start(more: Partial<StartOrderOptions> = {}, request = backend()): Promise<StartedOrder> {
    const requester = { origin: appOrigin }
    const inboxUserId = this.userId
    return this.instance.orders.start({ kind: 'sign', inboxUserId, payload, requester, ...more }, request)
  }

  list(session = this.session): Promise<readonly InboxOrder[]> {
    return this.instance.orders.listInbox(own(session))
  }

  claim({ orderId }: { readonly orderId: string }, { claimKey = newClaimKey(), session = this.session } = {}) {
    return this.instance.orders.claimFromInbox({ orderId, claimKey }, own(session))
  }

  async read(order: StartedOrder, signer = this.signer, session = this.session): Promise<Read> {
    const { orderId } = order
    const { challengeToken } = await this.claim(order, { session })
    const { message } = await this.instance.orders.readChallenge({ orderId, challengeToken }, phone)
    return { ...order, challengeToken, message, proof: signer.prove(message) }
  }

  approve(order: Read) {
    return this.instance.orders.approve(order, phone)
  }

  async approved(more: Partial<StartOrderOptions> = {}, signer = this.signer): Promise<Read> {
    const order = await this.read(await this.start(more), signer)
    await this.approve(order)
    return order
  }

  finalize(order: StartedOrder, key: string | undefined = finalizeKey) {
    return this.instance.orders.finalize({ ...order, finalizeKey: key }, backend())
  }

  /** Adds a wallet to the user by a session that was made now. */
  async link(signer: Signer): Promise<void> {
    const { wallets } = this.instance
    const { token } = await signedIn(this.instance, this.signer)
    const request = from(appOrigin, { headers: new Headers({ authorization: `Bearer ${token}` }) })
    const { challenge } = await wallets.links.issueNonce(undefined, {}, request)
    await wallets.link(challenge.nonceId, signer.prove(challenge.message), request)
  }
}

function identityOf({ publicKeyHex }: Signer): ProvenIdentity {
  return { adapterId: 'ed25519', subject: publicKeyHex, publicKeyHex, address: '' }
}

describe.each(stores)('orders for an inbox, on $name:', async ({ open }) => {
  const store = await suiteStore(open)

  async function setUp({ settings, ...options }: InstanceOptions = {}): Promise<Scene> {
    const instance = makeInstance(store, { blocks: true, ...options, settings: { orderStartKeys, ...settings } })
    const signer = new Signer()
    return new Scene(instance, signer, await signedIn(instance, signer))
  }

  describe('the list', () => {
    test('has the newest first, and an order from its start to its approval, on another instance too', async () => {
      const scene = await setUp()
      const other = makeInstance(store, { settings: { orderStartKeys } })
      const first = await scene.start({ displayTitle: 'First' })
      passTime(seconds)
      const second = await scene.start({ displayTitle: 'Second', displaySummary: 'More' }, backend('unnamed'))
      const ids = async () => (await other.orders.listInbox(own(scene.session))).map(({ orderId }) => orderId)
      expect(await ids()).toEqual([second.orderId, first.orderId])
      const [newest] = await scene.list()
      expect(newest).toEqual({
        orderId: second.orderId,
        displayTitle: 'Second',
        displaySummary: 'More',
        createdAt: second.expiresAt - hours,
        expiresAt: second.expiresAt,
      })
      await scene.approve(await scene.read(first))
      expect(await ids()).toEqual([second.orderId])
    })

    test.each([
      [
        'a rejection',
        async (scene: Scene, order: StartedOrder) => scene.instance.orders.reject(await scene.read(order), phone),
      ],
      ['a cancellation', (scene: Scene, order: StartedOrder) => scene.instance.orders.cancel(order, backend())],
      ['its end', async () => passTime(30 * minutes)],
    ])('loses an order by %s', async (_, end) => {
      const scene = await setUp()
      const order = await scene.start({ ttlSeconds: 1800 })
      expect(await scene.list()).toHaveLength(1)
      await end(scene, order)
      expect(await scene.list()).toEqual([])
    })

    test.each([
      ['was approved', async (scene: Scene, order: Read) => scene.approve(order), 'ORDER_ALREADY_APPROVED'],
      [
        'is over',
        async (scene: Scene, order: Read) => scene.instance.orders.cancel(order, backend()),
        'ORDER_CANCELLED',
      ],
      ['was never stored', async (_: Scene, { orderId }: Read) => store.take(`order:{${orderId}}`), 'ORDER_NOT_FOUND'],
    ])('loses at a claim what a crash left of an order that %s', async (_, end, reason) => {
      const scene = await setUp()
      const order = await scene.read(await scene.start())
      const [left] = await new Inboxes(store).list(scene.userId)
      await end(scene, order)
      const inboxes = new Inboxes(store)
      await inboxes.takeOut(scene.userId, order.orderId)
      await inboxes.enter(scene.userId, left as NonNullable<typeof left>)
      expect(await reasonOf(scene.claim(order))).toBe(reason)
      expect(await scene.list()).toEqual([])
    })

    test('extends no session', async () => {
      const scene = await setUp()
      passTime(50 * minutes)
      await scene.list()
      passTime(11 * minutes)
      expect(await reasonOf(scene.list())).toBe('SESSION_INVALID')
    })

    test('is for the user whose it is, at this application', async () => {
      const scene = await setUp()
      const order = await scene.start()
      const stranger = await signedIn(scene.instance)
      expect(await scene.list(stranger)).toEqual([])
      expect(await reasonOf(scene.claim(order, { session: stranger }))).toBe('ORDER_NOT_FOUND')
      const elsewhere = makeInstance(store, { settings: { appName: 'Elsewhere', orderStartKeys } })
      expect(await elsewhere.orders.listInbox(own(scene.session))).toEqual([])
      expect(await scene.list()).toHaveLength(1)
    })
  })

  describe('who waits too long:', () => {
    test('the sixth order of a start key, or of keys with one name, is refused until one is answered', async () => {
      const scene = await setUp()
      const started = [await scene.start()]
      for (let n = 1; n < 5; n++) started.push(await scene.start({}, backend(n % 2 === 0 ? 'bot' : 'new-bot')))
      const [first] = started as [StartedOrder]
      for (const name of ['bot', 'new-bot']) {
        await expect(scene.start({}, backend(name))).rejects.toMatchObject({
          reason: 'RATE_LIMITED',
          metadata: { limit: 'inbox' },
          retryAfterMs: expect.toSatisfy((ms: number) => ms > 59 * minutes && ms <= hours),
        })
      }
      await scene.start({}, backend('ci'))
      await scene.approve(await scene.read(first))
      await scene.start()
      expect(await reasonOf(scene.start())).toBe('RATE_LIMITED')
      expect(await scene.list()).toHaveLength(6)
      passTime(hours)
      await scene.start()
    })

    test('the sixth order of a key without a name', async () => {
      const scene = await setUp()
      for (let n = 0; n < 5; n++) await scene.start({}, backend('unnamed'))
      expect(await reasonOf(scene.start({}, backend('unnamed')))).toBe('RATE_LIMITED')
    })

    test('the twenty-first order of a user, whatever the keys', async () => {
      const names = [1, 2, 3, 4, 5].map((n) => `key-${n}`)
      const scene = await setUp({ settings: { orderStartKeys: names.map((name) => `${name}=${keyOf(name)}`) } })
      const longest = { displayTitle: '😀'.repeat(120), displaySummary: '😀'.repeat(500) }
      for (let n = 0; n < 20; n++) await scene.start(longest, backend(names[n % 4]))
      expect(await reasonOf(scene.start({}, backend('key-5')))).toBe('RATE_LIMITED')
      const other = new Scene(scene.instance, scene.signer, await signedIn(scene.instance))
      await other.start({}, backend('key-5'))
    })
  })

  describe('a start', () => {
    test.each([
      ['inbox_user_id', { kind: 'login', payload: undefined }],
      ['payload', { payload: undefined }],
      ['payload', { payload: undefined, payloadHash: 'abc' }],
      ['computer_key', { computerKey: new Computer().computerKey }],
      ['inbox_user_id', { inboxUserId: 'usr_of_nobody' }],
      ['inbox_user_id', { inboxUserId: 'usr\nOrigin: https://evil.example' }],
      ['ttl_seconds', { inboxUserId: undefined, ttlSeconds: 60 }],
      ['requester', { requester: undefined }],
    ] as const)('names the field %s that does not fit', async (field, more) => {
      const scene = await setUp()
      const start = scene.start(more as Partial<StartOrderOptions>)
      await expect(start).rejects.toMatchObject({ reason: 'INVALID_REQUEST', metadata: { field } })
      expect(await scene.list()).toEqual([])
    })

    test('takes a start key', async () => {
      const scene = await setUp()
      expect(await reasonOf(scene.start({}, desktop))).toBe('START_KEY_REQUIRED')
      expect(await reasonOf(scene.start({}, own(scene.session)))).toBe('START_KEY_REQUIRED')
      const named = from(undefined, { headers: new Headers({ authorization: `Bearer bot=${keyOf('bot')}` }) })
      expect(await reasonOf(scene.start({}, named))).toBe('START_KEY_REQUIRED')
      const open = makeInstance(store)
      const input = { kind: 'sign', payload, inboxUserId: scene.userId } as const
      await expect(open.orders.start(input, desktop)).rejects.toMatchObject({ metadata: { field: 'inbox_user_id' } })
    })

    test('has an hour, or the life that it asks for', async () => {
      const scene = await setUp()
      const now = Date.now()
      const [usual, long] = [await scene.start(), await scene.start({ ttlSeconds: 86_400 })]
      expect(usual.expiresAt - now).toSatisfy((ms: number) => ms >= hours && ms < hours + minutes)
      expect(long.expiresAt - now).toSatisfy((ms: number) => ms >= 24 * hours && ms < 24 * hours + minutes)
      passTime(23 * hours)
      expect(await scene.list(await signedIn(scene.instance, scene.signer))).toHaveLength(1)
    })

    test('for a user who is deleted meanwhile leaves nothing', async () => {
      const memory = await memoryStore()
      const records = storedOrders(memory)
      const created: string[] = []
      const slow = {
        ...records,
        create: async (order: Parameters<typeof records.create>[0]) => {
          await administrationOn(memory).delete(order.inboxUserId as string)
          created.push(order.orderId)
          await records.create(order)
        },
      }
      const instance = makeInstance(memory, { settings: { orderStartKeys }, records: slow })
      const scene = new Scene(instance, new Signer(), await signedIn(instance))
      expect(await reasonOf(scene.start())).toBe('INVALID_REQUEST')
      expect((await records.load(created[0] as string))?.order.status).toBe('cancelled')
      expect(await new Inboxes(memory).list(scene.userId)).toEqual([])
    })

    test('that the store refuses leaves no entry', async () => {
      const records = storedOrders(store)
      const full = { ...records, create: () => Promise.reject(Object.assign(new Error('full'), { reason: 'FULL' })) }
      const scene = await setUp({ records: full })
      expect(await reasonOf(scene.start())).toBe('FULL')
      expect(await scene.list()).toEqual([])
    })

    test('counts on the ceiling of orders, in steps of a minute', async () => {
      const slots = new Concurrency('orders', { orders: 1, networkShare: 1 } as never, console as never)
      const live = new LiveCount(slots)
      const scene = await setUp({ live })
      vi.spyOn(slots, 'refused').mockImplementation(() => {})
      // In the middle of a minute.
      passTime(minutes - (Date.now() % minutes) + 30 * seconds)
      await scene.start({ ttlSeconds: 60 })
      expect(await reasonOf(scene.start())).toBe('SERVER_BUSY')
      // Forgotten ten minutes after its end, in the middle of a minute.
      passTime(11 * minutes + seconds)
      expect(live.use(Date.now()).held).toBe(1)
      passTime(30 * seconds)
      expect(live.use(Date.now()).held).toBe(0)
      expect(await reasonOf(scene.start({ inboxUserId: 'usr_of_nobody' }))).toBe('INVALID_REQUEST')
      expect(live.use(Date.now()).held).toBe(0)
    })

    test('asks for no digits, no return code and no network, whatever the settings', async () => {
      const scene = await setUp({ settings: { confirmationCode: 'return', proximity: 'enforce' } })
      const order = await scene.read(await scene.start())
      expect(order).toMatchObject({ confirmationCode: '', claimToken: '', claimUrl: '' })
      expect(order.message).not.toContain('\nCode: ')
      const challenge = await scene.instance.orders.readChallenge(order, phone)
      expect(challenge).not.toHaveProperty('confirmationCode')
      expect(challenge).toMatchObject({ canRememberComputer: false })
      expect(challenge.requester).toEqual({
        origin: appOrigin,
        ip: '',
        userAgent: '',
        startedWithKey: true,
        startedBy: 'bot',
      })
      expect(await scene.approve(order)).not.toHaveProperty('returnCode')
      expect(await scene.finalize(order)).toMatchObject({ kind: 'sign' })
    })
  })

  test('a session of an order sees nothing and claims nothing', async () => {
    const scene = await setUp({ settings: { orderStartKeys: undefined } })
    const login = await untilApproved(scene.instance, { kind: 'login' }, scene.signer)
    const relayed = issuedBy(await scene.instance.orders.finalize(login, desktop))
    expect(relayed.session.userId).toBe(scene.userId)
    const order = await new Scene(
      makeInstance(store, { settings: { orderStartKeys } }),
      scene.signer,
      scene.session,
    ).start()
    expect(await reasonOf(scene.list(relayed))).toBe('SESSION_NOT_FRESH')
    expect(await reasonOf(scene.claim(order, { session: relayed }))).toBe('SESSION_NOT_FRESH')
    expect(await scene.list()).toHaveLength(1)
  })

  describe('claims', () => {
    test('from two sessions: the newer one approves, and the older one can only reject', async () => {
      const scene = await setUp()
      const events: AuditEvent[] = []
      const started = await scene.start()
      const older = await scene.read(started)
      const ticket = await scene.instance.orders.handOver(older, phone)
      const again = await signedIn(scene.instance, scene.signer)
      const audited = makeInstance(store, {
        settings: { orderStartKeys },
        audit: new AuditTrail(Date.now, [(event) => events.push(event)]),
      })
      const newer = await new Scene(audited, scene.signer, again).read(started)
      expect(events.map(({ type }) => type)).toEqual(['order.claimed'])
      expect(newer.challengeToken).not.toBe(older.challengeToken)
      const { orders } = scene.instance
      expect(await reasonOf(orders.readChallenge(older, phone))).toBe('ORDER_TOKEN_INVALID')
      expect(await reasonOf(scene.approve(older))).toBe('ORDER_TOKEN_INVALID')
      expect(await reasonOf(orders.handOver(older, phone))).toBe('ORDER_TOKEN_INVALID')
      expect(await reasonOf(orders.redeem({ ticket: ticket.ticket }, phone))).toBe('HANDOVER_INVALID')
      expect((await scene.approve(newer)).status).toBe('approved')
      expect((await orders.reject(older, phone)).status).toBe('rejected')
      expect(await reasonOf(scene.finalize(newer))).toBe('ORDER_REJECTED')
    })

    test('with one claim key get one answer, from that session only', async () => {
      const scene = await setUp()
      const order = await scene.start()
      const claimKey = newClaimKey()
      const [first, second] = await Promise.all([scene.claim(order, { claimKey }), scene.claim(order, { claimKey })])
      expect(second).toEqual(first)
      const session = await signedIn(scene.instance, scene.signer)
      expect((await scene.claim(order, { claimKey, session })).challengeToken).not.toBe(first.challengeToken)
      expect(await scene.claim(order, { claimKey })).toMatchObject({ challengeToken: first.challengeToken })
      expect(await reasonOf(scene.instance.orders.readChallenge({ ...order, ...first }, phone))).toBe(
        'ORDER_TOKEN_INVALID',
      )
    })

    test('are over once the order is approved', async () => {
      const scene = await setUp()
      const order = await scene.approved()
      expect(await reasonOf(scene.claim(order))).toBe('ORDER_ALREADY_APPROVED')
      expect(await reasonOf(scene.finalize(order))).toBe(undefined)
      expect(await reasonOf(scene.claim(order))).toBe('ORDER_FINALIZED')
    })

    test('are handed over to another browser as ever', async () => {
      const scene = await setUp()
      const order = await scene.read(await scene.start())
      const { ticket } = await scene.instance.orders.handOver(order, phone)
      const { challengeToken } = await scene.instance.orders.redeem({ ticket }, phone)
      expect((await scene.approve({ ...order, challengeToken })).status).toBe('approved')
    })

    test('do not find a scanned order', async () => {
      const scene = await setUp()
      const scanned = await scene.start({ inboxUserId: undefined })
      expect(await reasonOf(scene.claim(scanned))).toBe('ORDER_NOT_FOUND')
    })
  })

  describe('an approval, and the first finalize, take a wallet', () => {
    const approvalOf = async (scene: Scene, signer: Signer) => {
      const order = await scene.read(await scene.start(), signer)
      const reason = await reasonOf(scene.approve(order))
      await scene.instance.orders.cancel(order, backend())
      return reason
    }

    test('of that user: another’s is WRONG_WALLET, and the order stays', async () => {
      const scene = await setUp()
      const order = await scene.read(await scene.start())
      for (const stranger of [new Signer(), new Signer()]) {
        if (stranger !== undefined) await signedIn(scene.instance, stranger)
        const proof = stranger.prove(order.message)
        expect(await reasonOf(scene.approve({ ...order, proof }))).toBe('WRONG_WALLET')
      }
      const unknown = new Signer()
      expect(await reasonOf(scene.approve({ ...order, proof: unknown.prove(order.message) }))).toBe('WRONG_WALLET')
      expect((await scene.approve(order)).status).toBe('approved')
    })

    test('that was added 24 hours before the order began; the first one of a user counts at once', async () => {
      const scene = await setUp()
      expect(await approvalOf(scene, scene.signer)).toBe(undefined)
      passTime(minutes)
      const added = new Signer()
      await scene.link(added)
      const early = await scene.read(await scene.start({ ttlSeconds: 86_400 }), added)
      passTime(24 * hours - seconds)
      const session = await signedIn(scene.instance, scene.signer)
      const later = new Scene(scene.instance, scene.signer, session)
      expect(await reasonOf(later.approve(early))).toBe('WRONG_WALLET')
      expect(await approvalOf(later, added)).toBe('WRONG_WALLET')
      passTime(2 * seconds)
      expect(await approvalOf(later, added)).toBe(undefined)
    })

    test('that does not become the first by unlinking the one before', async () => {
      const scene = await setUp()
      passTime(minutes)
      const added = new Signer()
      await scene.link(added)
      const { host } = scene.instance
      const order = await scene.read(await scene.start())
      await host.users.unlink(scene.session.session, (wallets) =>
        wallets.find(({ subject }) => subject === scene.signer.publicKeyHex),
      )
      expect(await reasonOf(scene.approve(order))).toBe('WRONG_WALLET')
      expect(await reasonOf(scene.approve({ ...order, proof: added.prove(order.message) }))).toBe('WRONG_WALLET')
    })

    const leaving: readonly (readonly [string, string, (scene: Scene) => Promise<unknown>])[] = [
      [
        'unlinked',
        'WRONG_WALLET',
        async ({ instance: { host }, session: { session }, signer }) => {
          const other = identityOf(new Signer())
          await host.users.link(session, other)
          await host.users.unlink(session, (wallets) => wallets.find(({ subject }) => subject === signer.publicKeyHex))
        },
      ],
      [
        'moved to another user',
        'WRONG_WALLET',
        async ({ instance, signer }) => {
          const { session } = await signedIn(instance)
          await administrationOn(store).move(identityOf(signer), session.userId)
        },
      ],
      ['blocked', 'LOGIN_REFUSED', async ({ signer }) => administrationOn(store).block(identityOf(signer))],
    ]

    test.each(leaving)('that is not %s between claim and approval', async (_, reason, leave) => {
      const scene = await setUp()
      const order = await scene.read(await scene.start())
      await leave(scene)
      expect(await reasonOf(scene.approve(order))).toBe(reason)
    })

    test.each(leaving)(
      'that is not %s between approval and finalize; a retry asks no more',
      async (_, reason, leave) => {
        const scene = await setUp()
        const [finalized, order] = [await scene.approved(), await scene.approved()]
        const first = await scene.finalize(finalized)
        await leave(scene)
        expect(await reasonOf(scene.finalize(order))).toBe(reason)
        expect((await storedOrders(store).load(order.orderId))?.order.status).toBe('approved')
        expect(await scene.finalize(finalized)).toEqual(first)
      },
    )

    test('that a block stops only as long as it lasts', async () => {
      const scene = await setUp()
      const order = await scene.approved()
      const administration = administrationOn(store)
      await administration.block(identityOf(scene.signer))
      expect(await reasonOf(scene.finalize(order))).toBe('LOGIN_REFUSED')
      await administration.unblock(identityOf(scene.signer))
      expect(await scene.finalize(order)).toMatchObject({ status: 'finalized' })
    })

    test('that the order asks for, if it does', async () => {
      const scene = await setUp()
      const added = new Signer()
      await scene.link(added)
      passTime(25 * hours)
      const session = await signedIn(scene.instance, scene.signer)
      const later = new Scene(scene.instance, scene.signer, session)
      const { address } = session.session
      const expected = { adapterId: 'ed25519', expectedAddress: address }
      const order = await later.read(await later.start(expected), added)
      expect(await reasonOf(later.approve(order))).toBe('WRONG_WALLET')
      expect(await reasonOf(later.approve({ ...order, proof: scene.signer.prove(order.message) }))).toBe(undefined)
    })
  })

  describe('the finalize key', () => {
    test('gets the same answer until the order is forgotten, and no other key any', async () => {
      const scene = await setUp()
      const order = await scene.approved()
      const first = await scene.finalize(order)
      expect(first).toMatchObject({ kind: 'sign', status: 'finalized', proofArtifact: { payload } })
      passTime(9 * minutes)
      expect(await scene.finalize(order)).toEqual(first)
      expect(await reasonOf(scene.finalize(order, 'the-key-of-another-process'))).toBe('ORDER_FINALIZED')
      passTime(minutes)
      expect(await reasonOf(scene.finalize(order))).toBe('ORDER_NOT_FOUND')
    })

    test('is stored as a hash, with the first finalize only', async () => {
      const scene = await setUp()
      const order = await scene.read(await scene.start())
      expect(await reasonOf(scene.finalize(order, 'a-key-that-came-too-early-01'))).toBe('ORDER_NOT_APPROVED')
      await scene.approve(order)
      expect(await scene.finalize(order)).toMatchObject({ status: 'finalized' })
      const stored = JSON.stringify(await storedOrders(store).load(order.orderId))
      expect(stored).not.toContain(finalizeKey)
      expect(stored).toContain('finalizeKeyHash')
    })

    test('of one process twice at once: both get the answer', async () => {
      const scene = await setUp()
      const order = await scene.approved()
      const [one, other] = await Promise.all([scene.finalize(order), scene.finalize(order)])
      expect(other).toEqual(one)
    })

    test('is required for an inbox, and refused for every other order', async () => {
      const scene = await setUp()
      const order = await scene.approved()
      const refusal = { reason: 'INVALID_REQUEST', metadata: { field: 'finalize_key' } }
      const { orders } = scene.instance
      await expect(orders.finalize(order, backend())).rejects.toMatchObject(refusal)
      const open = makeInstance(store)
      const scanned = await untilApproved(open, { kind: 'sign', payload })
      await expect(open.orders.finalize({ ...scanned, finalizeKey }, desktop)).rejects.toMatchObject(refusal)
      expect(await open.orders.finalize(scanned, desktop)).toMatchObject({ status: 'finalized' })
    })

    test('counts in the ten minutes after the approval, or until the end of the order if that is later', async () => {
      const scene = await setUp()
      const early = await scene.read(await scene.start())
      expect((await scene.approve(early)).finishBy).toBe(early.expiresAt)
      const late = await scene.read(await scene.start({ ttlSeconds: 30 }))
      passTime(29 * seconds)
      const { finishBy = 0 } = await scene.approve(late)
      expect(finishBy - Date.now()).toSatisfy((ms: number) => ms > 9.9 * minutes && ms <= 10 * minutes)
      passTime(10 * minutes)
      expect(await reasonOf(scene.finalize(late))).toBe('ORDER_EXPIRED')
      expect(await scene.finalize(early)).toMatchObject({ status: 'finalized' })
      passTime(10 * minutes)
      expect(await reasonOf(scene.finalize(late))).toBe('ORDER_NOT_FOUND')
    })
  })

  test('a user who is deleted takes the inbox along; until then an export has it', async () => {
    const memory = await memoryStore()
    const instance = makeInstance(memory, { settings: { orderStartKeys } })
    const signer = new Signer()
    const scene = new Scene(instance, signer, await signedIn(instance, signer))
    const order = await scene.start({ displayTitle: 'Erase me' })
    const { AdminActions } = await import('../../../src/commands/admin/admin-actions.ts')
    const actions = new AdminActions(memory)
    const exported = await actions.export(scene.userId)
    expect(exported.inbox).toMatchObject([{ orderId: order.orderId, displayTitle: 'Erase me', startedBy: 'bot' }])
    expect(exported.orders).toMatchObject([{ orderId: order.orderId, inboxUserId: scene.userId }])
    await actions.users.delete(scene.userId)
    expect(await new Inboxes(memory).list(scene.userId)).toEqual([])
    expect((await storedOrders(memory).load(order.orderId))?.order.status).toBe('cancelled')
  })
})
