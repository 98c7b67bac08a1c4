import { Agent, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { createWorker } from '../../src/service/countersign.ts'
import { orderClients } from '../support/orders.ts'

test('a worker that hands over takes no connections, tells watchers to come back, and stays ready to those it has', async () => {
  const options = { store: 'sqlite::memory:', port: 0, host: '127.0.0.1', logger: silentLogger, drainSeconds: 60 }
  const service = await createWorker(options, undefined)
  onTestFinished(() => service.close(500))
  const url = `http://127.0.0.1:${await service.listen()}`
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  expect(await readiness(url, agent)).toEqual({ status: 200, body: { status: 'ready' }, connection: 'keep-alive' })
  const { start, watch } = orderClients.REST!(url.replace('127.0.0.1', 'localhost'))
  const order = await start('login')
  const watched = (async () => {
    for await (const { sequence } of watch(order)) expect(sequence).toBe(1)
  })()
  await sleep(200)
  const handedOver = service.handOver()
  await watched
  await expect(readiness(url, new Agent())).rejects.toThrow('ECONNREFUSED')
  // Its connection ends with the answer.
  expect(await readiness(url, agent)).toEqual({ status: 200, body: { status: 'ready' }, connection: 'close' })
  await service.close()
  await handedOver
})

async function readiness(url: string, agent: Agent) {
  return await new Promise((resolve, reject) => {
    const asked = request(`${url}/readyz`, { agent }, (response) => {
      const { statusCode: status, headers } = response
      json(response).then((body) => resolve({ status, body, connection: headers.connection }), reject)
    })
    asked.on('error', reject).end()
  })
}
