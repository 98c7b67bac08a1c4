import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KnownComputers } from '../../../src/core/order/known-computers.ts'
import type { OrderRecord } from '../../../src/core/order/order.ts'
import type { OrderResult } from '../../../src/core/order/orders.ts'
import { type OrderRecords, storedOrders } from '../../../src/core/order/records.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import type { TestHost } from '../../support/standalone.ts'
import { places } from './places.ts'
import { afterReading, Barrier, beforeWriting, unsteady } from './races.ts'
import {
  Computer,
  desktop,
  type Going,
  type Instance,
  type InstanceOptions,
  issuedBy,
  makeInstance,
  otherCode,
  phone,
  reasonOf,
  Signer,
  untilCode,
  untilWaiting,
} from './support.ts'

const settings = { confirmationCode: 'return' } as const
const claimKey = 'k'.repeat(22)

describe.each(places)('races of codes, take-backs and hand-overs on $name', ({ open }) => {
  let here: Store
  let there: Store

  beforeAll(async () => {
    const url = await open()
    here = await openStore(url)
    there = await openStore(url)
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })

  /** Two instances on stores of their own over one database. */
  const twoInstances = (options: (store: Store) => InstanceOptions = () => ({})) =>
    [makeInstance(here, { settings, ...options(here) }), makeInstance(there, { settings, ...options(there) })] as const

  const widened = (widen: (records: OrderRecords) => OrderRecords) =>
    twoInstances((store) => ({ records: widen(storedOrders(store)) }))

  const storedOf = async ({ orderId }: { readonly orderId: string }): Promise<OrderRecord> =>
    (await storedOrders(here).load(orderId))?.order as OrderRecord

  /** An order that its desktop can finalize, and whose computer is to be remembered. */
  async function approved(instance: Instance) {
    const computer = new Computer()
    const signer = new Signer()
    const input = { kind: 'login', computerKey: computer.computerKey } as const
    const order = await untilCode(instance, input, signer, { rememberComputer: true })
    const wallet = { adapterId: 'ed25519', subject: signer.publicKeyHex }
    return { order, wallet, finalization: { ...order, computerProof: computer.prove(order) } }
  }

  /** Whether anything is left of an order: its live sessions, and whether its computer is known. */
  async function leftOf({ order, wallet }: Awaited<ReturnType<typeof approved>>) {
    const { login } = await storedOf(order)
    const sessions = login === undefined ? [] : await makeInstance(here).host.listSessions(login.userId)
    return { sessions, known: (await new KnownComputers(here).list(wallet)).length > 0 }
  }

  /** The session token of a finalize, or the reason of its failure; `crashed` if it failed otherwise. */
  async function answerOf(call: Promise<OrderResult>): Promise<{ token?: string; reason?: string }> {
    try {
      return { token: issuedBy(await call).token }
    } catch (error) {
      return { reason: error instanceof Error && 'reason' in error ? String(error.reason) : 'crashed' }
    }
  }

  test('of twenty wrong return codes at once three are looked at, and the order is rejected', async () => {
    const order = await untilCode(twoInstances()[0])
    const barrier = new Barrier(20)
    const instances = widened((records) => afterReading(records, barrier))
    const returnCode = otherCode(order.returnCode)
    const reasons = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        reasonOf(instances[i % 2 === 0 ? 0 : 1].orders.finalize({ ...order, returnCode }, desktop)),
      ),
    )
    expect(reasons.filter((reason) => reason === 'RETURN_CODE_WRONG')).toHaveLength(3)
    expect(reasons.filter((reason) => reason === 'ORDER_REJECTED')).toHaveLength(17)
    expect(await storedOf(order)).toMatchObject({ status: 'rejected', wrongReturnCodes: 3 })
    expect(await reasonOf(instances[0].orders.finalize(order, desktop))).toBe('ORDER_REJECTED')
  })

  test('a right return code among nineteen wrong ones makes one session or none, and three wrong ones are looked at', async () => {
    for (let round = 0; round < 5; round++) {
      const order = await untilCode(twoInstances()[0])
      const barrier = new Barrier(20)
      const instances = widened((records) => afterReading(records, barrier))
      const wrong = { ...order, returnCode: otherCode(order.returnCode) }
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          answerOf(instances[i % 2 === 0 ? 0 : 1].orders.finalize(i === 7 ? order : wrong, desktop)),
        ),
      )
      const { status, wrongReturnCodes } = await storedOf(order)
      expect(wrongReturnCodes).toBe(3)
      expect(answers.filter(({ reason }) => reason === 'RETURN_CODE_WRONG')).toHaveLength(3)
      expect(answers.filter(({ token }) => token !== undefined)).toHaveLength(status === 'finalized' ? 1 : 0)
      expect(await reasonOf(instances[0].orders.finalize(order, desktop))).toBe(`ORDER_${status.toUpperCase()}`)
    }
  })

  test('of twenty redemptions of one ticket one wins', async () => {
    const order = await untilWaiting(twoInstances()[0])
    const { ticket } = await twoInstances()[0].orders.handOver(order, phone)
    const barrier = new Barrier(20)
    const instances = widened((records) => afterReading(records, barrier))
    const redemptions = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => {
        const own = i % 3 === 0 ? {} : { claimKey: `${i}`.padStart(22, 'k') }
        return instances[i % 2 === 0 ? 0 : 1].orders.redeem({ ticket, ...own }, phone)
      }),
    )
    const won = redemptions.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    expect(won).toHaveLength(1)
    for (const one of redemptions) if (one.status === 'rejected') expect(one.reason.reason).toBe('HANDOVER_INVALID')
    const { challengeToken } = won[0] as { challengeToken: string }
    expect(await reasonOf(instances[0].orders.approve(order, phone))).toBe('ORDER_TOKEN_INVALID')
    expect(await reasonOf(instances[0].orders.approve({ ...order, challengeToken }, phone))).toBeUndefined()
  })

  test('an approval by the old browser and a redemption at once: one of them', async () => {
    const seen = new Set<string>()
    for (let round = 0; round < 20; round++) {
      const order = await untilWaiting(twoInstances()[0])
      const { ticket } = await twoInstances()[0].orders.handOver(order, phone)
      const barrier = new Barrier(2)
      const [first, second] = widened((records) => beforeWriting(records, barrier))
      const outcomes = await Promise.all([
        reasonOf(first.orders.approve(order, phone)),
        reasonOf(second.orders.redeem({ ticket }, phone)),
      ])
      expect([
        [undefined, 'ORDER_ALREADY_APPROVED'],
        ['ORDER_TOKEN_INVALID', undefined],
      ]).toContainEqual(outcomes)
      seen.add(String(outcomes))
    }
    expect(seen.size).toBe(2)
  })

  test('an approval and a new ticket at once: no ticket of an approved order is good', async () => {
    for (let round = 0; round < 10; round++) {
      const order = await untilWaiting(twoInstances()[0])
      const barrier = new Barrier(2)
      const [first, second] = widened((records) => beforeWriting(records, barrier))
      const [approval, handOver] = await Promise.allSettled([
        first.orders.approve(order, phone),
        second.orders.handOver(order, phone),
      ])
      expect(approval).toMatchObject({ status: 'fulfilled', value: { status: 'approved' } })
      if (handOver.status === 'rejected') expect(handOver.reason.reason).toBe('ORDER_ALREADY_APPROVED')
      else expect(await reasonOf(first.orders.redeem(handOver.value, phone))).toBe('ORDER_ALREADY_APPROVED')
    }
  })

  test('a retried claim and a redemption at once: who claims gets the old token, which approves nothing', async () => {
    for (let round = 0; round < 10; round++) {
      const [plain] = twoInstances()
      const started = await plain.orders.start({ kind: 'login' }, desktop)
      const claim = { ...started, claimKey }
      const { challengeToken } = await plain.orders.claim(claim, phone)
      const order = { ...started, challengeToken }
      const { message } = await plain.orders.readChallenge(order, phone)
      const { ticket } = await plain.orders.handOver(order, phone)
      const barrier = new Barrier(2)
      const [first, second] = widened((records) => afterReading(records, barrier))
      const [again, redeemed] = await Promise.all([
        first.orders.claim(claim, phone),
        second.orders.redeem({ ticket, claimKey }, phone),
      ])
      expect(again.challengeToken).toBe(challengeToken)
      expect(redeemed.challengeToken).not.toBe(challengeToken)
      const proof = new Signer().prove(message)
      expect(await reasonOf(plain.orders.approve({ ...order, proof }, phone))).toBe('ORDER_TOKEN_INVALID')
      expect((await plain.orders.claim(claim, phone)).challengeToken).toBe(challengeToken)
    }
  })

  test('a finalize and a take-back at once: nothing is left, and the desktop is refused or has a dead token', async () => {
    const seen = new Set<string>()
    for (let round = 0; round < 30; round++) {
      const [first, second] = twoInstances((store) => {
        const slow = unsteady(store)
        return { records: storedOrders(slow), computers: new KnownComputers(slow), wrapHost: onStore(slow) }
      })
      const going = await approved(twoInstances()[0])
      const { order, finalization } = going
      const finalizing = answerOf(first.orders.finalize(finalization, desktop))
      // Not before the order is finalized: that would reject it.
      while ((await storedOf(order)).status === 'approved') await new Promise((resolve) => setImmediate(resolve))
      const { status, sessionEnded } = await second.orders.reject(order, phone)
      const { token, reason } = await finalizing
      seen.add(`${sessionEnded} ${reason ?? 'token'}`)
      expect(status).toBe('finalized')
      if (token === undefined) expect(reason).toBe('ORDER_REJECTED')
      else expect([sessionEnded, await first.host.introspect(token)]).toEqual([true, undefined])
      expect(await leftOf(going)).toEqual({ sessions: [], known: false })
      expect(await answerOf(second.orders.finalize(finalization, desktop))).toEqual({ reason: 'ORDER_REJECTED' })
      expect((await first.orders.reject(order, phone)).sessionEnded).toBe(sessionEnded)
    }
    expect(seen.size).toBeGreaterThan(1)
  })

  test('a take-back while the session is about to be made keeps it from being made', async () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const wrapHost = (host: TestHost) => {
      const create = host.createSession.bind(host)
      host.createSession = async (...args) => {
        reached.resolve()
        await gate.promise
        return await create(...args)
      }
      return host
    }
    const going = await approved(twoInstances()[0])
    const { order, finalization } = going
    const [first, second] = [makeInstance(here, { settings, wrapHost }), makeInstance(there, { settings })]
    const finalizing = answerOf(first.orders.finalize(finalization, desktop))
    await reached.promise
    expect(await second.orders.reject(order, phone)).toEqual({
      orderId: order.orderId,
      status: 'finalized',
      sessionEnded: false,
    })
    gate.resolve()
    expect(await finalizing).toEqual({ reason: 'ORDER_REJECTED' })
    expect(await leftOf(going)).toEqual({ sessions: [], known: false })
  })

  test('a take-back while the computer is about to be remembered keeps it from being known', async () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    class Held extends KnownComputers {
      override async remember(...args: Parameters<KnownComputers['remember']>): Promise<boolean> {
        reached.resolve()
        await gate.promise
        return await super.remember(...args)
      }
    }
    const going = await approved(twoInstances()[0])
    const { order, finalization } = going
    const first = makeInstance(here, { settings, computers: new Held(here) })
    const second = makeInstance(there, { settings })
    const finalizing = answerOf(first.orders.finalize(finalization, desktop))
    await reached.promise
    expect((await second.orders.reject(order, phone)).sessionEnded).toBe(true)
    gate.resolve()
    const { token } = await finalizing
    expect(await second.host.introspect(String(token))).toBeUndefined()
    expect(await leftOf(going)).toEqual({ sessions: [], known: false })
  })

  test('a wrong code, a take-back and a crash in finalize, in any order: nothing is left', async () => {
    const seen = new Set<string>()
    for (let round = 0; round < 30; round++) {
      const dying = (when: 'before' | 'after') => (host: TestHost) => {
        const create = host.createSession.bind(host)
        host.createSession = async (...args) => {
          if (when === 'after') await create(...args)
          throw new Error('killed')
        }
        return host
      }
      const when = round % 2 === 0 ? 'before' : 'after'
      const crashing = makeInstance(here, {
        settings,
        records: storedOrders(unsteady(here)),
        wrapHost: dying(when),
      })
      const slow = unsteady(there)
      const other = makeInstance(there, { settings, records: storedOrders(slow), wrapHost: onStore(slow) })
      const going = await approved(twoInstances()[0])
      const { order, finalization } = going
      const wrong = { ...finalization, returnCode: otherCode(order.returnCode) }
      const [crash, guess, retry, verdict] = await Promise.all([
        answerOf(crashing.orders.finalize(finalization, desktop)),
        answerOf(other.orders.finalize(wrong, desktop)),
        answerOf(other.orders.finalize(finalization, desktop)),
        other.orders.reject(order, phone),
      ])
      seen.add(`${verdict.status} ${crash.reason} ${guess.reason} ${retry.reason}`)
      expect(['crashed', 'ORDER_REJECTED']).toContain(crash.reason)
      expect(['RETURN_CODE_WRONG', 'ORDER_REJECTED']).toContain(guess.reason)
      if (retry.token === undefined) expect(retry.reason).toBe('ORDER_REJECTED')
      else expect(await other.host.introspect(retry.token)).toBeUndefined()
      expect(await answerOf(other.orders.finalize(finalization, desktop))).toEqual({ reason: 'ORDER_REJECTED' })
      expect(await leftOf(going)).toEqual({ sessions: [], known: false })
    }
    expect(seen.size).toBeGreaterThan(2)
  })

  describe('a crash', () => {
    test('between storing the finalize and making the session, then a take-back, then the desktop’s retry', async () => {
      const wrapHost = (host: TestHost) => {
        host.createSession = () => Promise.reject(new Error('killed'))
        return host
      }
      const going = await approved(twoInstances()[0])
      const { order, finalization } = going
      const crashing = makeInstance(here, { settings, wrapHost })
      expect(await answerOf(crashing.orders.finalize(finalization, desktop))).toEqual({ reason: 'crashed' })
      const [first, second] = twoInstances()
      expect((await second.orders.reject(order, phone)).sessionEnded).toBe(false)
      expect(await answerOf(first.orders.finalize(finalization, desktop))).toEqual({ reason: 'ORDER_REJECTED' })
      expect(await leftOf(going)).toEqual({ sessions: [], known: false })
    })

    /** An order with a session and a known computer, and what its take-back says that crashes in one of its steps. */
    async function crashInTakeBack(options: InstanceOptions, records: OrderRecords = storedOrders(here)) {
      const going = await approved(twoInstances()[0])
      const { token } = await answerOf(twoInstances()[0].orders.finalize(going.finalization, desktop))
      expect(await leftOf(going)).toMatchObject({ sessions: [{}], known: true })
      const crashing = makeInstance(here, { settings, records, ...options })
      await expect(crashing.orders.reject(going.order, phone)).rejects.toThrow('killed')
      const [first, second] = twoInstances()
      // From the first step on the desktop gets nothing more.
      expect(await answerOf(second.orders.finalize(going.finalization, desktop))).toEqual({ reason: 'ORDER_REJECTED' })
      const order: Going = going.order
      expect(await first.orders.reject(order, phone)).toMatchObject({ status: 'finalized', sessionEnded: true })
      expect(await first.host.introspect(String(token))).toBeUndefined()
      expect(await leftOf(going)).toEqual({ sessions: [], known: false })
      expect(await second.orders.reject(order, phone)).toMatchObject({ sessionEnded: true })
    }

    test('before the session is ended leaves it to the phone’s retry', async () => {
      await crashInTakeBack({
        wrapHost: (host) => {
          host.endOrderSession = () => Promise.reject(new Error('killed'))
          return host
        },
      })
    })

    test('after the session is ended: the retry says that it was live, and forgets the computer', async () => {
      class Dying extends KnownComputers {
        override forgetOfOrder(): Promise<void> {
          return Promise.reject(new Error('killed'))
        }
      }
      await crashInTakeBack({ computers: new Dying(here) })
    })

    test('before it is stored what became of the session: the retry says the same', async () => {
      const records = storedOrders(here)
      await crashInTakeBack(
        {},
        {
          ...records,
          async compareAndSet(order, version) {
            if (order.takenBack?.sessionEnded !== undefined) throw new Error('killed')
            return await records.compareAndSet(order, version)
          },
        },
      )
    })
  })

  test('the secret is rotated between approval and finalize: each code that the phone was shown is right', async () => {
    const rotated = makeInstance(there, { settings, secrets: ['second secret', 'first secret'] })
    for (const which of ['before', 'after'] as const) {
      const order = await untilCode(twoInstances()[0])
      const { returnCode: after } = await rotated.orders.readChallenge(order, phone)
      expect(after).toMatch(/^\d{6}$/)
      expect((await rotated.orders.approve(order, phone)).returnCode).toBe(after)
      const returnCode = { before: order.returnCode, after }[which]
      expect((await rotated.orders.finalize({ ...order, returnCode }, desktop)).status).toBe('finalized')
    }
  })

  test('a code that was made with a secret that is gone is wrong', async () => {
    const order = await untilCode(twoInstances()[0])
    const forgetful = makeInstance(there, { settings, secrets: ['second secret'] })
    const { returnCode } = await forgetful.orders.readChallenge(order, phone)
    // One in a million is the same.
    if (returnCode === order.returnCode) return
    expect(await reasonOf(forgetful.orders.finalize(order, desktop))).toBe('RETURN_CODE_WRONG')
  })

  /**
   * Lets the host's sessions go by another handle of the store, and be made after the steps of a take-back or before.
   */
  const onStore = (store: Store) => (host: TestHost) => {
    const other = makeInstance(store).host
    host.createSession = async (...args) => {
      await sleep(Math.random() * 30)
      return await other.createSession(...args)
    }
    host.endOrderSession = other.endOrderSession.bind(other)
    return host
  }
})
