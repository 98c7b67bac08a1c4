import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { openCounted } from '../support/counted-store.ts'
import { approveOrder } from '../support/flows.ts'
import { listening } from '../support/listening.ts'
import type { Holder } from '../support/orders.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'

const secret = 'a secret for tests and for nothing else'

type Order = Holder & { readonly claimToken: string }

const lifetime = [
  [1, 'created'],
  [2, 'claimed'],
  [3, 'waiting_user'],
  [4, 'approved'],
  [5, 'finalized'],
]

async function answered(calling: Promise<RestAnswer>): Promise<RestAnswer['json']> {
  const { status, json } = await calling
  expect(status, JSON.stringify(json)).toBe(200)
  return json
}

async function startOrder(url: string): Promise<Order> {
  return await answered(rest(url, '/cross-device/start', { kind: 'sign' }))
}

async function poll(
  url: string,
  { orderId, desktopToken }: Holder,
  query: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<RestAnswer> {
  const search = new URLSearchParams({ orderId, ...query })
  return await rest(url, `/cross-device/events?${search}`, undefined, {
    authorization: `Bearer ${desktopToken}`,
    accept: 'application/json',
    ...headers,
  })
}

/** Sequences and states of the events that a poll answers. */
async function polled(...call: Parameters<typeof poll>): Promise<[number, string][]> {
  const { events } = await answered(poll(...call))
  return events.map(({ sequence, status }: { sequence: number; status: string }) => [sequence, status])
}

/** Everything that a client hears that only polls, each time from the next of the addresses. */
async function follow(urls: readonly string[], order: Holder): Promise<[number, string][]> {
  const told: [number, string][] = []
  for (let n = 0; told.at(-1)?.[1] !== 'finalized'; n++) {
    told.push(...(await polled(urls[n % urls.length] as string, order, { after: String(told.at(-1)?.[0] ?? 0) })))
  }
  return told
}

/** What phone and desktop do, over one service and the other. */
async function finish(phone: string, desktop: string, { orderId, claimToken, desktopToken }: Order): Promise<void> {
  await approveOrder(phone, { orderId, claimToken })
  await answered(rest(desktop, '/cross-device/finalize', { orderId, desktopToken }))
}

/** A proxy that passes an answer on only when it is complete, as some do whatever the answer says. */
async function startBufferingProxy(target: string): Promise<string> {
  const proxy = createServer(async (request, response) => {
    const { authorization = '', accept = '' } = request.headers
    const answer = await fetch(target + request.url, { headers: { authorization, accept } })
    const body = await answer.arrayBuffer()
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    response.end(Buffer.from(body))
  })
  return await listening(proxy)
}

test('a client that only polls hears of each transition once and in order, through a proxy that holds streams back', async () => {
  const { url } = await startService({ enforceOrigin: false })
  const order = await startOrder(url)
  const following = follow([await startBufferingProxy(url)], order)
  await finish(url, url, order)
  expect(await following).toEqual(lifetime)
})

test.skipIf(redisUrl === undefined)('two instances take turns at a client’s polls, and it misses nothing', async () => {
  const options = { store: (await redisUrl?.()) ?? '', secret, enforceOrigin: false }
  const [{ url: one }, { url: two }] = [await startService(options), await startService(options)]
  const order = await startOrder(one)
  const following = follow([one, two], order)
  await finish(two, one, order)
  expect(await following).toEqual(lifetime)
})

test('a poll has the fields of the stream’s data, and everything that is newer at once', async () => {
  const { url } = await startService()
  const order = await startOrder(url)
  const { orderId, claimToken, desktopToken } = order
  await answered(rest(url, '/cross-device/claim', { orderId, claimToken }))
  const streamed = await fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}`, {
    headers: { authorization: `Bearer ${desktopToken}`, 'last-event-id': '0' },
  })
  await answered(rest(url, '/cross-device/cancel', { orderId, desktopToken }))
  const data = (await streamed.text()).matchAll(/^data: (.*)$/gm)
  const { events } = await answered(poll(url, order, { after: '0' }))
  expect(events).toEqual([...data].map(([, json]) => JSON.parse(json as string)))
  expect(events).toHaveLength(3)
  expect(await polled(url, order, { after: '2' })).toEqual([[3, 'cancelled']])
  // As a stream does without Last-Event-ID, which counts here too.
  expect(await polled(url, order)).toEqual([[3, 'cancelled']])
  expect(await polled(url, order, {}, { 'last-event-id': '1' })).toHaveLength(2)
  expect(await polled(url, order, { after: '2' }, { 'last-event-id': '1' })).toHaveLength(1)
})

// Less than the 25 seconds for which a poll waits that has something to wait for.
test('a poll of an order that is over does not wait', { timeout: 15_000 }, async () => {
  const { url } = await startService()
  const order = await startOrder(url)
  await answered(rest(url, '/cross-device/cancel', { orderId: order.orderId, desktopToken: order.desktopToken }))
  expect(await polled(url, order, { after: '2' })).toEqual([])
})

test('a poll that hears nothing ends with no events when its time is over', { timeout: 15_000 }, async () => {
  const { store, watches } = await openCounted()
  const { url } = await startService({ store })
  const order = await startOrder(url)
  const { headers, json } = await poll(url, order, { after: '1', wait: '0' })
  expect(json).toEqual({ events: [] })
  expect(headers.get('content-type')).toBe('application/json')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(await polled(url, order, { after: '1', wait: '1' })).toEqual([])
  await expect.poll(watches).toBe(0)
})

test('a poll ends with its caller', async () => {
  const { store, watches } = await openCounted()
  const { url } = await startService({ store })
  const { orderId, desktopToken } = await startOrder(url)
  const leaving = new AbortController()
  const answer = fetch(`${url}/api/auth/cross-device/events?orderId=${orderId}&after=1`, {
    headers: { authorization: `Bearer ${desktopToken}`, accept: 'application/json' },
    signal: leaving.signal,
  })
  await expect.poll(watches).toBe(1)
  leaving.abort()
  await expect(answer).rejects.toThrow('aborted')
  await expect.poll(watches, { timeout: 10_000 }).toBe(0)
})

test('a server that drains answers the polls that wait, and the next one before its time is over', {
  timeout: 15_000,
}, async () => {
  const { store, watches } = await openCounted()
  const { url, service } = await startService({ store, drainSeconds: 60 })
  const order = await startOrder(url)
  const waiting = polled(url, order, { after: '1' })
  await expect.poll(watches).toBe(1)
  void service.drain()
  expect(await waiting).toEqual([])
  expect(await polled(url, order, { after: '1' })).toEqual([])
  await expect.poll(watches).toBe(0)
})

test('a poll that waits has the place of a stream, and gives it back', async () => {
  const { store, watches } = await openCounted()
  const { url } = await startService({ store, limits: { streams: 1, requests: 4 } })
  const order = await startOrder(url)
  const { orderId, claimToken } = order
  const waiting = polled(url, order, { after: '1' })
  await expect.poll(watches).toBe(1)
  const busy = await poll(url, order, { wait: '0' })
  expect([busy.status, busy.json.code]).toEqual([503, 'SERVER_BUSY'])
  // Other calls still have theirs.
  await answered(rest(url, '/cross-device/claim', { orderId, claimToken }))
  expect(await waiting).toEqual([[2, 'claimed']])
  for (const query of [{ after: '2', wait: '0' }, { after: '0' }, { after: '9' }, { wait: 'long' }]) {
    const { status } = await poll(url, order, query)
    expect([200, 400]).toContain(status)
    await expect.poll(watches).toBe(0)
  }
})

test.each([
  ['after', ''],
  ['after', '-1'],
  ['after', '1.5'],
  ['after', 'x'],
  ['after', '4294967296'],
  ['after', '2'],
  ['wait', ''],
  ['wait', '-1'],
  ['wait', '26'],
  ['wait', '1.5'],
  ['wait', '1e1'],
  ['wait', '999999999999'],
])('%s=%j is refused', async (name, value) => {
  const { url } = await startService()
  const { status, json } = await poll(url, await startOrder(url), { [name]: value })
  expect([status, json.code, json.message]).toEqual([400, 'INVALID_REQUEST', expect.stringContaining(name)])
})

test('only the desktop’s token polls, and only as a bearer token', async () => {
  const { url } = await startService()
  const order = await startOrder(url)
  const { desktopToken } = order
  for (const call of [
    poll(url, { ...order, desktopToken: order.claimToken }),
    poll(url, { ...order, desktopToken: '' }, { desktopToken }),
  ]) {
    const { status, json } = await call
    expect([status, json.code]).toEqual([401, 'ORDER_TOKEN_INVALID'])
  }
})

test.each([
  ['text/event-stream', 'text/event-stream'],
  ['*/*', 'text/event-stream'],
  ['text/html, */*;q=0.8', 'text/event-stream'],
  ['application/json, text/event-stream', 'text/event-stream'],
  ['application/json', 'application/json'],
  ['Application/JSON;q=0.9, text/plain, */*', 'application/json'],
])('Accept: %s gets %s', async (accept, type) => {
  const { url } = await startService()
  const { orderId, desktopToken } = await startOrder(url)
  const leaving = new AbortController()
  const path = `${url}/api/auth/cross-device/events?orderId=${orderId}`
  const headers = { authorization: `Bearer ${desktopToken}`, accept }
  const { status, headers: answer } = await fetch(path, { headers, signal: leaving.signal })
  leaving.abort()
  expect([status, answer.get('content-type')]).toEqual([200, type])
  const head = await fetch(path, { method: 'HEAD', headers })
  expect([head.status, head.headers.get('allow')]).toEqual([405, 'GET'])
})
