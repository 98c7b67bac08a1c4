import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OrderRecords, storedOrders } from '../../../src/core/order/records.ts'
import type { Store } from '../../../src/store/store.ts'
import { places } from './places.ts'
import { afterReading, Barrier } from './races.ts'
import {
  desktop,
  issuedBy,
  makeInstance,
  openOnOurClock,
  phone,
  Signer,
  untilApproved,
  untilWaiting,
} from './support.ts'

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

  /** Two instances on stores of their own over one database. */
  const twoInstances = (widen: (records: OrderRecords) => OrderRecords) =>
    [
      makeInstance(here, { records: widen(storedOrders(here)) }),
      makeInstance(there, { records: widen(storedOrders(there)) }),
    ] as const

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
