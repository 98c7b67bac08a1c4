/**
 * The floor for events between instances: bare node:http and node-redis. What is posted to one instance is published in
 * Redis, and every other instance writes it to whoever has asked it for a stream.
 */
import { createServer, type ServerResponse } from 'node:http'
import { createClient } from 'redis'
import { listen } from './bare.ts'

const [url = ''] = process.argv.slice(2)
const publisher = createClient({ url })
const subscriber = createClient({ url })
const listeners: ServerResponse[] = []

await Promise.all([publisher.connect(), subscriber.connect()])
await subscriber.sSubscribe('relay', (message) => {
  for (const listener of listeners) listener.write(`${message}\n`)
})

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    listeners.push(response)
    response.flushHeaders()
    return
  }
  let body = ''
  request.on('data', (chunk: Buffer) => {
    body += chunk
  })
  request.on('end', async () => {
    await publisher.sPublish('relay', body)
    response.setHeader('content-length', 0)
    response.end()
  })
})
listen(server)
process.once('SIGTERM', () => process.exit())
