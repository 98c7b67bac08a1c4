import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type OrderRecords, storedOrders } from '../../../src/core/order/records.ts'
import type { StartedOrder } from '../../../src/shared/orders.ts'
import type { Store } from '../../../src/store/store.ts'
import { places } from './places.ts'
import { afterReading, Barrier, beforeWriting } from './races.ts'
import {
  desktop,
  type Instance,
  type InstanceOptions,
  issuedBy,
  makeInstance,
  openOnOurClock,
  otherCode,
  outcomeOf,
  phone,
  reasonOf,
  Signer,
  untilApproved,
  untilCode,
  untilWaiting,
} from './support.ts'

/**
 * What a watcher is told, up to the end of the order. `onHeartbeat` is called for each heartbeat, first once the watch
 * is in force.
 */
async function statusesOf(
  { orders }: Instance,
  order: StartedOrder,
  afterSequence: number,
  onHeartbeat: () => void,
): Promise<string[]> {
  const statuses: string[] = []
  const events = orders.watch({ ...order, afterSequence }, desktop, AbortSignal.timeout(20_000))
  for await (const { status, heartbeat } of events) {
    if (heartbeat) onHeartbeat()
    else statuses.push(status)
  }
  return statuses
}

describe.each(places)('races on $name', ({ open, dump }) => {
  let here: Store
  let there: Store

  beforeAll(async () => {
    const url = await open()
    here = await openOnOurClock(url)
    there = await openOnOurClock(url)
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Two instances on stores of their own over one database. */
  const twoInstances = (widen: (records: OrderRecords) => OrderRecords, host: InstanceOptions['host'] = {}) =>
    [
      makeInstance(here, { host, records: widen(storedOrders(here)) }),
      makeInstance(there, { host, records: widen(storedOrders(there)) }),
    ] as const

  test('of fifty claims one gets the challenge token', async () => {
    const order = await makeInstance(here).orders.start({ kind: 'login' }, desktop)
    const barrier = new Barrier(50)
    const instances = twoInstances((records) => afterReading(records, barrier))
    const claims = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) => {
        const own = i % 3 === 0 ? {} : { claimKey: `${i}`.padStart(22, 'k') }
        return instances[i % 2 === 0 ? 0 : 1].orders.claim({ ...order, ...own }, phone)
      }),
    )
    const tokens = claims.flatMap((claim) => (claim.status === 'fulfilled' ? [claim.value.challengeToken] : []))
    expect(tokens).toHaveLength(1)
    for (const claim of claims) {
      if (claim.status === 'rejected') expect(claim.reason.reason).toBe('ORDER_ALREADY_CLAIMED')
    }
    const challengeToken = tokens[0] as string
    expect(await reasonOf(instances[0].orders.readChallenge({ ...order, challengeToken }, phone))).toBeUndefined()
  })

  test('fifty tries of one phone get one token', async () => {
    const order = await makeInstance(here).orders.start({ kind: 'login' }, desktop)
    const barrier = new Barrier(50)
    const instances = twoInstances((records) => afterReading(records, barrier))
    const claim = { ...order, claimKey: 'k'.repeat(22) }
    const claims = await Promise.all(
      Array.from({ length: 50 }, (_, i) => instances[i % 2 === 0 ? 0 : 1].orders.claim(claim, phone)),
    )
    expect(new Set(claims.map(({ challengeToken }) => challengeToken)).size).toBe(1)
    expect((await storedOrders(here).load(order.orderId))?.version).toBe(2)
  })

  test('approve, reject, cancel and expire at once: one verdict, told alike by all', async () => {
    const plain = [makeInstance(here), makeInstance(there)] as const
    const told = { approved: 'ORDER_ALREADY_APPROVED', rejected: 'ORDER_REJECTED', cancelled: 'ORDER_CANCELLED' }
    const verdicts = new Set<string>()
    for (let round = 0; round < 30; round++) {
      const order = await untilWaiting(plain[0])
      const inForce = plain.map(() => Promise.withResolvers<void>())
      const watchers = plain.map((instance, i) => statusesOf(instance, order, 3, inForce[i]!.resolve))
      const barrier = new Barrier(4)
      const [first, second] = twoInstances((records) => beforeWriting(records, barrier))
      // A watcher that begins later would find the order expired before the fourth call does.
      await Promise.all(inForce.map(({ promise }) => promise))
      vi.useFakeTimers({ toFake: ['Date'], now: order.expiresAt - 1 })
      const calls = {
        approved: outcomeOf(first.orders.approve(order, phone)),
        rejected: outcomeOf(second.orders.reject(order, phone)),
        cancelled: outcomeOf(first.orders.cancel(order, desktop)),
      }
      // Not vi.waitFor, which sets a faked clock on.
      while (barrier.held < 3) await new Promise((resolve) => setImmediate(resolve))
      // Those three have decided; for the fourth the time is up.
      vi.setSystemTime(order.expiresAt)
      const late = await outcomeOf(second.orders.readChallenge(order, phone))
      const outcomes = {
        approved: await calls.approved,
        rejected: await calls.rejected,
        cancelled: await calls.cancelled,
      }

      const stored = await storedOrders(here).load(order.orderId)
      const steps = stored!.order.history.slice(3).map(({ status }) => status)
      const verdict = steps.join(', ')
      verdicts.add(verdict)
      const inTurn = ['approved, cancelled', 'approved, rejected']
      expect(['approved', 'rejected', 'cancelled', 'expired', ...inTurn]).toContain(verdict)
      for (const [status, { reason }] of Object.entries(outcomes)) {
        const happened = steps.includes(status as 'approved')
        expect({ status, won: reason === undefined }).toEqual({ status, won: happened })
        const others = steps.map((step) => (step === 'expired' ? 'ORDER_EXPIRED' : told[step as 'approved']))
        if (!happened) expect(others).toContain(reason)
      }
      if (steps.includes('expired')) expect(late.reason).toBe('ORDER_EXPIRED')

      for (const instance of plain) {
        const last = steps.at(-1)
        // Rejecting an approved order would end it.
        const again = last === 'approved' ? undefined : await reasonOf(instance.orders.reject(order, phone))
        const now = [again, await reasonOf(instance.orders.approve(order, phone))]
        if (last === 'approved') expect(now).toEqual([undefined, undefined])
        else if (last === 'rejected') expect(now).toEqual([undefined, 'ORDER_REJECTED'])
        else expect(new Set(now)).toEqual(new Set([last === 'expired' ? 'ORDER_EXPIRED' : 'ORDER_CANCELLED']))
      }
      if (steps.at(-1) === 'approved') await plain[0].orders.cancel(order, desktop)
      for (const seen of await Promise.all(watchers)) {
        expect(seen).toEqual(steps.at(-1) === 'approved' ? [...steps, 'cancelled'] : steps)
      }
      vi.useRealTimers()
    }
    expect(verdicts.size).toBeGreaterThan(1)
  })

  test('of twenty finalizes on two instances comes one session', async () => {
    const plain = makeInstance(here)
    const order = await untilApproved(plain)
    const barrier = new Barrier(20)
    const instances = twoInstances((records) => afterReading(records, barrier))
    const finalized = await Promise.all(
      Array.from({ length: 20 }, (_, i) => instances[i % 2 === 0 ? 0 : 1].orders.finalize(order, desktop)),
    )
    const issued = finalized.map(issuedBy)
    expect(new Set(issued.map(({ token }) => token)).size).toBe(1)
    expect(new Set(issued.map(({ session }) => session.id)).size).toBe(1)
    const [{ session }] = issued as [(typeof issued)[0]]
    expect(await plain.host.listSessions(session.userId)).toEqual([session])
    const stored = await storedOrders(here).load(order.orderId)
    expect(stored?.order.history).toHaveLength(5)
  })

  test('twenty finalizes of a user that the application names anew each time are for one of them', async () => {
    let asked = 0
    const host = { resolveLogin: () => ({ id: `user ${asked++}` }) }
    const barrier = new Barrier(20)
    const records = afterReading(storedOrders(here), barrier)
    const order = await untilApproved(makeInstance(here, { host }))
    const instance = makeInstance(here, { host, records })
    const finalized = await Promise.all(Array.from({ length: 20 }, () => instance.orders.finalize(order, desktop)))
    expect(new Set(finalized.map((one) => issuedBy(one).session.userId)).size).toBe(1)
    expect(asked).toBe(20)
  })

  test('a finalize and a cancel at once: one of them, and no session of a cancelled order', async () => {
    const host = { resolveLogin: ({ publicKeyHex }: { publicKeyHex: string }) => ({ id: publicKeyHex }) }
    for (let round = 0; round < 10; round++) {
      const order = await untilApproved(makeInstance(here))
      const barrier = new Barrier(2)
      const instances = twoInstances((records) => beforeWriting(records, barrier), host)
      const outcomes = await Promise.all([
        reasonOf(instances[0].orders.finalize(order, desktop)),
        reasonOf(instances[1].orders.cancel(order, desktop)),
      ])
      expect([
        [undefined, 'ORDER_FINALIZED'],
        ['ORDER_CANCELLED', undefined],
      ]).toContainEqual(outcomes)
      const sessions = await instances[0].host.listSessions(order.proof.publicKeyHex)
      expect(sessions).toHaveLength(outcomes[0] === undefined ? 1 : 0)
    }
  })

  test('three parallel guesses of the return code are all there are, however many try', async () => {
    const order = await untilCode(makeInstance(here, { settings: { confirmationCode: 'return' } }))
    const barrier = new Barrier(30)
    const instances = twoInstances((records) => afterReading(records, barrier))
    const reasons = await Promise.all(
      Array.from({ length: 30 }, (_, i) => {
        const guess = { ...order, returnCode: otherCode(order.returnCode) }
        return reasonOf(instances[i % 2 === 0 ? 0 : 1].orders.finalize(guess, desktop))
      }),
    )
    expect(reasons.filter((reason) => reason === 'RETURN_CODE_WRONG')).toHaveLength(3)
    expect(reasons.filter((reason) => reason === 'ORDER_REJECTED')).toHaveLength(27)
  })

  test('a dump of the store holds no token', async () => {
    const instance = makeInstance(here)
    const { orders } = instance
    const claimKey = 'q7'.repeat(11)
    const secrets: string[] = [claimKey]
    const started = await orders.start({ kind: 'login' }, desktop)
    const { challengeToken } = await orders.claim({ ...started, claimKey }, phone)
    const phoneInput = { orderId: started.orderId, challengeToken }
    const { message } = await orders.readChallenge(phoneInput, phone)
    await orders.approve({ ...phoneInput, proof: new Signer().prove(message) }, phone)
    const { token } = issuedBy(await orders.finalize(started, desktop))
    secrets.push(started.claimToken, started.desktopToken, challengeToken, token, ...token.split('.'))
    for (const kind of ['login', 'sign'] as const) {
      const going = [
        await orders.start({ kind }, desktop),
        await untilWaiting(instance, { kind }),
        await untilApproved(instance, { kind }),
        await untilWaiting(instance, { kind }),
        await untilWaiting(instance, { kind }),
      ]
      await orders.reject(going[3] as Awaited<ReturnType<typeof untilWaiting>>, phone)
      await orders.cancel(going[4]!, desktop)
      for (const order of going) {
        secrets.push(order.claimToken, order.desktopToken)
        if ('challengeToken' in order) secrets.push(String(order.challengeToken))
      }
    }
    const dumped = await dump()
    expect(dumped).toContain(started.orderId)
    expect(secrets.length).toBeGreaterThan(30)
    for (const secret of secrets) {
      const bare = secret.replace(/^cs[a-z]_/, '')
      expect(dumped).not.toContain(bare)
      expect(dumped).not.toContain(Buffer.from(bare, 'base64url').toString('hex'))
    }
  })
})
