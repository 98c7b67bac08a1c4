import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { openCounted } from '../support/counted-store.ts'
import { type Answer, answered, call, ownOrigin, readOrder } from './calls.ts'
import { makeDatabase } from './instances.ts'
import { type Auth, makeAuth } from './support.ts'

interface Desktop {
  readonly orderId: string
  readonly desktopToken: string
}

async function poll(
  auth: Pick<Auth, 'handler'>,
  { orderId, desktopToken }: Desktop,
  query: Record<string, string> = {},
): Promise<Answer> {
  const search = new URLSearchParams({ orderId, ...query })
  const headers = { accept: 'application/json', authorization: `Bearer ${desktopToken}` }
  return await call(auth, `/cross-device/events?${search}`, undefined, headers)
}

async function polled(...given: Parameters<typeof poll>): Promise<[number, string][]> {
  const { events } = await answered(poll(...given))
  return events.map(({ sequence, status }: { sequence: number; status: string }) => [sequence, status])
}

test('a poll answers what is newer at once, and else waits for it', async () => {
  const { store, watches } = await openCounted()
  for (const auth of [await makeAuth(), await makeAuth({ orders: { store } })]) {
    const { desktop, phone } = await readOrder(auth)
    expect(await polled(auth, desktop)).toEqual([[3, 'waiting_user']])
    expect(await polled(auth, desktop, { after: '1' })).toEqual([
      [2, 'claimed'],
      [3, 'waiting_user'],
    ])
    const { headers, json } = await poll(auth, desktop, { after: '3', wait: '0' })
    expect(json).toEqual({ events: [] })
    // Long before the watch would look after its order again by itself.
    await expect.poll(watches, { timeout: 7000 }).toBe(0)
    expect([headers.get('content-type'), headers.get('cache-control')]).toEqual([
      'application/json',
      'no-store, no-transform',
    ])
    const waiting = polled(auth, desktop, { after: '3' })
    await answered(call(auth, '/cross-device/reject', phone))
    expect(await waiting).toEqual([[4, 'rejected']])
    expect(await polled(auth, desktop, { after: '4' })).toEqual([])
  }
})

test('two instances take turns at a client’s polls, and it misses nothing', async () => {
  const { file, auth: one } = await makeDatabase()
  const database = new DatabaseSync(file, { timeout: 5000 })
  onTestFinished(() => database.close())
  const two = await makeAuth({ storage: async () => ({ database }) })
  const { desktop, phone } = await readOrder(one)
  expect(await polled(two, desktop, { after: '0' })).toHaveLength(3)
  const waiting = polled(two, desktop, { after: '3' })
  await answered(call(one, '/cross-device/reject', phone))
  expect(await waiting).toEqual([[4, 'rejected']])
  expect(await polled(one, desktop, { after: '2' })).toHaveLength(2)
})

test.each([
  ['after', 'x', 400, 'INVALID_REQUEST'],
  ['after', '9', 400, 'INVALID_REQUEST'],
  ['wait', '26', 400, 'INVALID_REQUEST'],
  ['wait', '', 400, 'INVALID_REQUEST'],
])('%s=%j is refused', async (name, value, status, code) => {
  const auth = await makeAuth()
  const { desktop } = await readOrder(auth)
  const answer = await poll(auth, desktop, { [name]: value })
  expect([answer.status, answer.json.code]).toEqual([status, code])
})

test('only the desktop’s token polls, and only as a bearer token', async () => {
  const auth = await makeAuth()
  const { desktop, phone } = await readOrder(auth)
  const { orderId, desktopToken } = desktop
  for (const answer of [
    await poll(auth, { orderId, desktopToken: phone.challengeToken }),
    await poll(auth, { orderId, desktopToken: '' }, { desktopToken }),
  ]) {
    expect([answer.status, answer.json.code]).toEqual([401, 'ORDER_TOKEN_INVALID'])
  }
})

test('a client that does not ask for JSON alone gets the stream', async () => {
  const auth = await makeAuth()
  const { orderId, desktopToken } = (await readOrder(auth)).desktop
  for (const accept of ['text/event-stream', '*/*', 'application/json, text/event-stream']) {
    const leaving = new AbortController()
    const answer = await auth.handler(
      new Request(`${ownOrigin}/api/auth/cross-device/events?orderId=${orderId}`, {
        headers: { accept, authorization: `Bearer ${desktopToken}` },
        signal: leaving.signal,
      }),
    )
    leaving.abort()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  }
})
