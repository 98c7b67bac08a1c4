import { createServer, type IncomingHttpHeaders } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { AuditEvent } from '../../../src/base/audit.ts'
import { createLogger, silentLogger } from '../../../src/base/log.ts'
import { createCountersign } from '../../../src/index.ts'
import { Webhook as Deliverer, WebhookQueue } from '../../../src/observe/audit/webhook.ts'
import { maxWaiting } from '../../../src/observe/delivery.ts'
import type { CountersignOptions } from '../../../src/service/config.ts'
import { mapStore, type StoreOperation } from '../../../src/store/map-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { signIn } from '../../support/flows.ts'
import { listening } from '../../support/listening.ts'
import { memoryStore } from '../../support/memory-store.ts'
import { startService } from '../../support/service.ts'
import { temporaryStore } from '../../support/temporary-folder.ts'

const secret = `whsec_${Buffer.from('a secret of the tests, and of no use to anybody').toString('base64')}`
const serviceSecret = 'a secret for tests and for nothing else'

/** What was delivered, checked with the library of Standard Webhooks. */
interface Delivered {
  readonly id: string
  readonly type: string
  readonly data: Record<string, unknown>
}

interface Receiver {
  readonly url: string
  readonly delivered: Delivered[]
  /** Requests that were answered with something else than 200, by status. */
  readonly failed: number[]
  /** Status of the next answers; `undefined` is no answer at all. */
  status: number | undefined
  /** Awaited before each answer. */
  beforeAnswer: () => Promise<unknown>
  /** Most requests that were under way at once. */
  readonly most: number
  stop(): void
}

async function startReceiver(secretOf = secret): Promise<Receiver> {
  const webhook = new Webhook(secretOf)
  const delivered: Delivered[] = []
  const failed: number[] = []
  let underWay = 0
  let most = 0
  const server = createServer(async (request, response) => {
    most = Math.max(most, ++underWay)
    response.once('close', () => underWay--)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    await receiver.beforeAnswer()
    const { status } = receiver
    if (status === undefined) return
    if (status === 200) {
      const { type, data } = webhook.verify(Buffer.concat(chunks).toString(), plain(request.headers)) as Delivered
      delivered.push({ id: String(request.headers['webhook-id']), type, data })
    } else failed.push(status)
    response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('thank you')
  })
  const receiver: Receiver = {
    url: `${await listening(server)}/hook?key=of-the-operator`,
    delivered,
    failed,
    status: 200,
    beforeAnswer: async () => {},
    get most() {
      return most
    },
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
  return receiver
}

function plain(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}

async function newSession(url: string): Promise<string> {
  return (await signIn(url)).session.id
}

const patience = { timeout: 30_000, interval: 20 }

describe('a webhook', () => {
  const options = async (more: CountersignOptions): Promise<CountersignOptions> => ({
    store: temporaryStore(),
    secret: serviceSecret,
    ...more,
    webhook: { secret, ...more.webhook },
  })

  test('gets each event once, signed as Standard Webhooks has it', async () => {
    const receiver = await startReceiver()
    const { url } = await startService(await options({ webhook: { url: receiver.url } }))
    const sessions = [await newSession(url), await newSession(url), await newSession(url)]
    await vi.waitFor(() => expect(receiver.delivered).toHaveLength(3), patience)
    expect(receiver.delivered.map(({ type }) => type)).toEqual(Array(3).fill('sign_in.succeeded'))
    expect(receiver.delivered.map(({ data }) => data.sessionId).sort()).toEqual(sessions.sort())
  })

  test('a webhook that failed gets each event once by its id when it has recovered, after a restart of the service too', async () => {
    const receiver = await startReceiver()
    receiver.status = 503
    const given = await options({ webhook: { url: receiver.url }, logger: silentLogger, port: 0, rateLimit: false })
    const first = await createCountersign(given)
    const url = `http://localhost:${await first.listen()}`
    const sessions = [await newSession(url), await newSession(url), await newSession(url), await newSession(url)]
    await vi.waitFor(() => expect(receiver.failed.length).toBeGreaterThan(0), patience)
    await first.close(500)
    receiver.status = 200
    await startService(given)
    await vi.waitFor(() => expect(receiver.delivered.length).toBeGreaterThanOrEqual(4), patience)
    expect(receiver.delivered.map(({ data }) => data.sessionId).sort()).toEqual(sessions.sort())
    expect(new Set(receiver.delivered.map(({ id }) => id)).size).toBe(4)
  })

  test('gets the events of two instances once each, although both look for what is left', async () => {
    const receiver = await startReceiver()
    receiver.status = 500
    const given = await options({ webhook: { url: receiver.url } })
    const urls = [(await startService(given)).url, (await startService(given)).url]
    const sessions: string[] = []
    for (let count = 0; count < 12; count++) sessions.push(await newSession(urls[count % 2] as string))
    receiver.status = 200
    await vi.waitFor(() => expect(receiver.delivered.length).toBeGreaterThanOrEqual(12), patience)
    // Time for whatever would be delivered twice.
    await setTimeout(6_000)
    expect(receiver.delivered.map(({ data }) => data.sessionId).sort()).toEqual(sessions.sort())
  })

  test('a webhook that refuses an event gets it again, and others meanwhile', async () => {
    const receiver = await startReceiver()
    receiver.status = 400
    const { url } = await startService(await options({ webhook: { url: receiver.url } }))
    const refused = await newSession(url)
    await vi.waitFor(() => expect(receiver.failed).toEqual([400]), patience)
    receiver.status = 200
    const taken = await newSession(url)
    await vi.waitFor(() => expect(receiver.delivered).toHaveLength(2), patience)
    expect(receiver.delivered.map(({ data }) => data.sessionId)).toEqual([taken, refused])
  })
})

describe('a webhook that is away', () => {
  test.each([
    ['does not listen', (receiver: Receiver) => receiver.stop()],
    [
      'does not answer',
      async (receiver: Receiver) => {
        receiver.status = undefined
      },
    ],
    [
      'redirects',
      async (receiver: Receiver) => {
        receiver.status = 302
      },
    ],
  ])('and %s delays and fails no sign-in, and stops the service no longer than usual', async (_how, leave) => {
    const receiver = await startReceiver()
    await leave(receiver)
    const lines: string[] = []
    const logger = createLogger({ write: (line) => lines.push(line) }, 'debug')
    const { url, service } = await startService({ webhook: { url: receiver.url, secret }, logger })
    await Promise.all(Array.from({ length: 20 }, () => newSession(url)))
    expect(receiver.delivered).toEqual([])
    await service.close(500)
    expect(lines.join('')).not.toMatch(/of-the-operator|whsec_/)
    expect(lines.filter((line) => line.includes('webhook is away')).length).toBeLessThanOrEqual(1)
  })

  test('leaves a bounded number of events in the store, the newest', async () => {
    const receiver = await startReceiver()
    receiver.status = 503
    const store = await memoryStore()
    const given = { store, webhook: { url: receiver.url, secret } }
    const { url } = await startService(given)
    // As if they had been waiting: nobody reads these before they are due, long from now.
    const later = String(Date.now() + 86_400_000).padStart(15, '0')
    const old = Array.from({ length: maxWaiting }, (_, index) => `${later}.old-${index}`)
    for (const member of old) await store.addMember('webhooks', member, { ttlMs: 60_000 })
    await newSession(url)
    await vi.waitFor(async () => expect(await store.members('webhooks')).toHaveLength(maxWaiting), patience)
    const waiting = await store.members('webhooks')
    expect(waiting.filter((member) => !member.includes('old-'))).toHaveLength(1)
  })
})

/** Most deliveries at a time. */
const maxDeliveries = 8

function eventOf(id: string): AuditEvent {
  return { id, type: 'order.cancelled', time: Date.now(), orderId: `order-of-${id}`, kind: 'login' }
}

function startDelivering(store: Store, { url }: Receiver): Deliverer {
  const deliverer = new Deliverer({ url, secrets: [secret] }, { store, log: silentLogger, tracing: undefined })
  onTestFinished(() => deliverer.close(1_000))
  return deliverer
}

describe('a webhook with a backlog', () => {
  test('gets a bounded number of deliveries at once, of waiting and of new events together', async () => {
    const store = await memoryStore()
    const waiting = Array.from({ length: 200 }, (_, index) => `waiting-${index}`)
    const fresh = Array.from({ length: 200 }, (_, index) => `fresh-${index}`)
    const queue = new WebhookQueue(store)
    for (const id of waiting) await queue.add(eventOf(id), false)
    const receiver = await startReceiver()
    receiver.beforeAnswer = () => setTimeout(10)
    const deliverer = startDelivering(store, receiver)
    for (const id of fresh) {
      deliverer.sink(eventOf(id))
      await setTimeout(2)
    }
    await vi.waitFor(() => expect(receiver.delivered.length).toBeGreaterThanOrEqual(400), patience)
    expect(receiver.delivered.map(({ id }) => id).sort()).toEqual([...waiting, ...fresh].sort())
    expect(receiver.most).toBe(maxDeliveries)
    await vi.waitFor(async () => expect(await store.members('webhooks')).toEqual([]), patience)
  })

  test('gets it with a bounded number of reads of the list of all that waits', async () => {
    const store = await memoryStore()
    const queue = new WebhookQueue(store)
    for (let count = 0; count < 800; count++) await queue.add(eventOf(`waiting-${count}`), false)
    const steps: StoreOperation[] = []
    const counting = mapStore(store, {
      around(operation, step) {
        steps.push(operation)
        return step()
      },
    })
    const receiver = await startReceiver()
    startDelivering(counting, receiver)
    await vi.waitFor(async () => expect(await store.members('webhooks')).toEqual([]), patience)
    expect(new Set(receiver.delivered.map(({ id }) => id)).size).toBe(800)
    // What is due, whether anything has become due meanwhile, and a look of the timer or two.
    expect(steps.filter((operation) => operation === 'members').length).toBeLessThanOrEqual(4)
  })

  test('gets one event only until it is known to be back', async () => {
    const store = await memoryStore()
    const receiver = await startReceiver()
    receiver.status = 503
    const deliverer = startDelivering(store, receiver)
    deliverer.sink(eventOf('first'))
    await vi.waitFor(() => expect(receiver.failed).toHaveLength(1), patience)
    const queue = new WebhookQueue(store)
    for (let count = 0; count < 50; count++) await queue.add(eventOf(`waiting-${count}`), false)
    await vi.waitFor(() => expect(receiver.failed).toHaveLength(2), patience)
    expect(receiver.most).toBe(1)
    receiver.status = 200
    await vi.waitFor(() => expect(receiver.delivered).toHaveLength(51), patience)
  })

  test('gets nothing from an instance that another one has taken over from', async () => {
    const store = await memoryStore()
    let aheadMs = 0
    const later = { ...mapStore(store, {}), now: () => store.now() + aheadMs }
    const [slow, quick] = [await startReceiver(), await startReceiver()]
    const answering = Promise.withResolvers<void>()
    slow.beforeAnswer = () => answering.promise
    const first = startDelivering(later, slow)
    for (let count = 0; count < 20; count++) first.sink(eventOf(`event-${count}`))
    await vi.waitFor(async () => expect(await store.members('webhooks')).toHaveLength(20), patience)
    await vi.waitFor(() => expect(slow.most).toBe(maxDeliveries), patience)
    aheadMs = 60_000
    startDelivering(later, quick)
    await vi.waitFor(() => expect(quick.delivered).toHaveLength(20), patience)
    answering.resolve()
    await vi.waitFor(() => expect(slow.delivered.length).toBeGreaterThanOrEqual(maxDeliveries), patience)
    // Time for those that waited behind them.
    await setTimeout(500)
    expect(slow.delivered).toHaveLength(maxDeliveries)
  })
})

test('both secrets of a list sign, so that a receiver can change from one to the other', async () => {
  const next = `whsec_${Buffer.from('the next secret of the tests').toString('base64')}`
  const receivers = [await startReceiver(secret), await startReceiver(next)]
  for (const receiver of receivers) {
    const { url } = await startService({ webhook: { url: receiver.url, secret: [secret, next] } })
    await newSession(url)
    await vi.waitFor(() => expect(receiver.delivered).toHaveLength(1), patience)
  }
})

test('an address without a secret, or a secret without an address, stops the start', async () => {
  const both =
    /^webhook\.url \(COUNTERSIGN_WEBHOOK_URL\) and webhook\.secret \(COUNTERSIGN_WEBHOOK_SECRET\) need each other/
  await expect(startService({ webhook: { url: 'https://hooks.example/' } })).rejects.toThrow(both)
  await expect(startService({ webhook: { secret } })).rejects.toThrow(both)
})
