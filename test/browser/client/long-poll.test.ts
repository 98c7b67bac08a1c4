import { createServer } from 'node:http'
import { expect, test, vi } from 'vitest'
import {
  type CountersignClientOptions,
  createCountersignClient,
  type OrderEvent,
} from '../../../src/browser/client/index.ts'
import { listen } from '../../support/listening.ts'
import { startService } from '../../support/service.ts'
import { makeWallet } from '../../support/wallet.ts'
import { codeOf, fetchFrom, MapStorage, pageWallet } from './support.ts'

const all = ['created', 'claimed', 'waiting_user', 'approved', 'cancelled']

/**
 * A desktop whose requests take this way, a phone that reaches the service directly, and what the desktop asked for
 * events with.
 */
async function setUp(way: typeof fetch | undefined, options: CountersignClientOptions = {}) {
  const { url } = await startService()
  const polls: string[] = []
  const device = (fetcher: typeof fetch, more: CountersignClientOptions = {}) =>
    createCountersignClient({ baseUrl: url, fetch: fetcher, storage: new MapStorage(), ...more })
  const desktop = device(async (input, init) => {
    const { pathname, searchParams } = new URL(String(input))
    if (pathname.endsWith('/events')) polls.push(searchParams.has('wait') ? 'poll' : 'stream')
    const headers = { ...(init?.headers as Record<string, string>), origin: url }
    return await (way ?? fetch)(input, { ...init, headers })
  }, options)
  const phone = device(fetchFrom(url), { wallet: pageWallet(makeWallet()) })
  return { url, desktop, phone, polls }
}

/** Carries an order through all its states, each as soon as the watch has told the one before. */
async function watchAll({ desktop, phone }: Awaited<ReturnType<typeof setUp>>): Promise<{
  events: OrderEvent[]
  connections: boolean[]
}> {
  const order = await desktop.startOrder({ kind: 'login' })
  const [events, connections]: [OrderEvent[], boolean[]] = [[], []]
  let claim = { orderId: order.orderId, challengeToken: '' }
  const onConnection = (connected: boolean): void => void connections.push(connected)
  for await (const event of desktop.watchOrder(order, { onConnection })) {
    events.push(event)
    const { status } = event
    if (status === 'created') claim = await phone.claimOrder(order.claimUrl)
    if (status === 'claimed') await phone.getOrderChallenge(claim)
    if (status === 'waiting_user') await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    if (status === 'approved') await desktop.cancelOrder(order)
  }
  return { events, connections }
}

/** `fetch` as in React Native: its answers have no body to read from. */
const withoutBody: typeof fetch = async (input, init) => {
  const response = await fetch(input, init)
  if (response.status !== 204 && response.headers.get('content-type') === 'text/event-stream') {
    await response.body?.cancel()
    return Object.defineProperty(response, 'body', { value: undefined })
  }
  return response
}

test('a watch polls if answers have no body to read from, and sees each transition once', async () => {
  const parts = await setUp(withoutBody)
  const { events, connections } = await watchAll(parts)
  expect(events.map(({ status }) => status)).toEqual(all)
  expect(events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
  expect(connections).toEqual([true])
  expect(parts.polls.slice(0, 2)).toEqual(['stream', 'poll'])
  expect(parts.polls.slice(1)).not.toContain('stream')
  // The next watch does not try again.
  parts.polls.length = 0
  await watchAll(parts)
  expect(parts.polls).not.toContain('stream')
})

test('a watch polls behind a proxy that holds answers back until they are complete', async () => {
  let target = ''
  const proxy = createServer(async (request, response) => {
    const stop = new AbortController()
    response.on('close', () => stop.abort())
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const answer = await fetch(target + request.url, {
        method: request.method as string,
        headers: Object.entries(request.headers).filter(([name]) =>
          /^(authorization|content-type|accept|origin|last-event-id)$/.test(name),
        ) as [string, string][],
        ...(request.method === 'POST' ? { body: Buffer.concat(chunks) } : {}),
        signal: stop.signal,
      })
      const body = await answer.text()
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' }).end(body)
    } catch {
      response.destroy()
    }
  })
  const through = `http://127.0.0.1:${await listen(proxy)}`
  const parts = await setUp((input, init) => fetch(String(input).replace(target, through), init), {
    // The first event is waited for 0.4 s, and a poll is held for 2 s.
    heartbeatTimeoutMs: 3200,
  })
  target = parts.url
  const { events } = await watchAll(parts)
  expect(events.map(({ status }) => status)).toEqual(all)
  expect(parts.polls.slice(0, 2)).toEqual(['stream', 'poll'])
  expect(parts.polls.slice(1)).not.toContain('stream')
})

test('a watch does not poll if streams can be read', async () => {
  const parts = await setUp(undefined)
  const { events } = await watchAll(parts)
  expect(events.map(({ status }) => status)).toEqual(all)
  expect(parts.polls).not.toContain('poll')
})

test('a service that does not answer is no reason to poll from then on', async () => {
  let isOut = true
  const parts = await setUp(
    async (input, init) => {
      if (!isOut || !String(input).includes('/events')) return await fetch(input, init)
      // Silent until the client gives up.
      return await new Promise((_, reject) =>
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      )
    },
    { heartbeatTimeoutMs: 400 },
  )
  const order = await parts.desktop.startOrder({ kind: 'login' })
  const watch = parts.desktop.watchOrder(order)
  const first = watch.next()
  await vi.waitFor(() => expect(parts.polls.slice(0, 3)).toEqual(['stream', 'poll', 'stream']), 10_000)
  isOut = false
  expect((await first).value).toMatchObject({ status: 'created' })
  await watch.return()
})

test('a poll that nothing comes of is a sign of life, and is followed by another', async () => {
  const parts = await setUp(withoutBody, { heartbeatTimeoutMs: 4800 })
  const { desktop } = parts
  const order = await desktop.startOrder({ kind: 'login' })
  const connections: boolean[] = []
  const watch = desktop.watchOrder(order, { onConnection: (connected) => void connections.push(connected) })
  await watch.next()
  // Polls are held for three seconds. Two of them in silence would be longer than the watch waits for a sign of life.
  const next = watch.next()
  await vi.waitFor(() => expect(parts.polls.length).toBeGreaterThan(4), 20_000)
  await desktop.cancelOrder(order)
  expect((await next).value).toMatchObject({ sequence: 2, status: 'cancelled' })
  expect(connections).toEqual([true])
})

test('a watch that polls ends with the service\u2019s refusal, and with the caller', async () => {
  const { desktop } = await setUp(withoutBody)
  const order = await desktop.startOrder({ kind: 'login' })
  const wrong = { ...order, desktopToken: order.claimToken }
  expect(await codeOf(desktop.watchOrder(wrong).next())).toBe('ORDER_TOKEN_INVALID')
  const controller = new AbortController()
  const watch = desktop.watchOrder(order, { signal: controller.signal })
  await watch.next()
  const next = watch.next()
  controller.abort()
  expect(await codeOf(next)).toBe('ABORTED')
})
