import { createServer } from 'node:http'
import { createAuthClient } from 'better-auth/client'
import { expect, test } from 'vitest'
import { crossDeviceClient, type OrderEvent } from '../../../src/browser/better-auth/index.ts'
import { listen } from '../../support/listening.ts'

const created = { sequence: 1, status: 'created', kind: 'login', at: 1 }
const rejected = { sequence: 2, status: 'rejected', kind: 'login', at: 2 }

/** A watch of an order at a server that sends this text as its events, in these pieces. */
async function watchOf(...pieces: string[]): Promise<AsyncGenerator<OrderEvent>> {
  const server = createServer(async (_, response) => {
    response.setHeader('content-type', 'text/event-stream')
    for (const piece of pieces) {
      response.write(piece)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })
  const baseURL = `http://127.0.0.1:${await listen(server)}`
  const client = createAuthClient({ baseURL, plugins: [crossDeviceClient()] })
  return client.watchOrder({ orderId: 'order', desktopToken: 'token' })
}

async function eventsOf(watch: AsyncIterable<OrderEvent>): Promise<OrderEvent[]> {
  const events: OrderEvent[] = []
  for await (const event of watch) events.push(event)
  return events
}

test('transitions are read however a proxy cuts the lines and pieces of the stream', async () => {
  const [first, last] = [JSON.stringify(created), JSON.stringify(rejected)]
  const text = `: hello\r\n\r\nid: 1\r\ndata: ${first}\r\n\r\nevent: heartbeat\r\ndata: {"heartbeat":true}\r\n\r\nid: 2\r\ndata: ${last}\r\n\r\n`
  const cut = text.indexOf('"status"')
  expect(await eventsOf(await watchOf(text.slice(0, cut), text.slice(cut)))).toEqual([created, rejected])
})

test('an event that this client does not know is not taken for a transition', async () => {
  const text = `event: news\ndata: ${JSON.stringify(created)}\n\ndata: ${JSON.stringify(rejected)}\n\n`
  expect(await eventsOf(await watchOf(text))).toEqual([rejected])
})

test('an event that is not JSON ends the watch', async () => {
  await expect(eventsOf(await watchOf('data: <html>\n\n'))).rejects.toMatchObject({ code: 'UNEXPECTED_ANSWER' })
})
