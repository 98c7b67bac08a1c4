import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../../src/base/log.ts'
import { createCountersign } from '../../../src/index.ts'
import { run } from '../../support/command.ts'
import { listen } from '../../support/listening.ts'
import { startMeasured } from '../../support/metrics.ts'
import { spawnService } from '../../support/service.ts'

/** A server of somebody else, on a port of 127.0.0.1. */
async function takePort(): Promise<number> {
  const server = createServer()
  return await listen(server)
}

test('GET and HEAD of /metrics are answered, and nothing else', async () => {
  const { metricsUrl } = await startMeasured()
  const ask = async (path: string, method = 'GET') => {
    const response = await fetch(metricsUrl + path, { method })
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
  }
  const type = 'text/plain; version=0.0.4; charset=utf-8'
  expect(await ask('/metrics')).toEqual({ status: 200, type, text: expect.stringContaining('countersign_build_info{') })
  expect(await ask('/metrics?name[]=up')).toMatchObject({ status: 200, type })
  expect(await ask('/metrics', 'HEAD')).toEqual({ status: 200, type, text: '' })
  expect(await ask('/metrics', 'POST')).toMatchObject({ status: 405 })
  for (const path of ['/', '/metrics/', '/readyz', '/api/auth/session']) {
    expect(await ask(path), path).toMatchObject({ status: 404, text: expect.not.stringContaining('countersign_') })
  }
})

test('the port of the service has no metrics', async () => {
  const { url } = await startMeasured()
  for (const path of ['/metrics', '/api/auth/metrics']) {
    const response = await fetch(url + path)
    expect(response.status, path).toBe(404)
    expect(await response.text()).not.toContain('countersign_')
  }
})

test('a port that is taken is one line that names the setting, and the service does not listen either', async () => {
  const taken = await takePort()
  const started = spawnService({ COUNTERSIGN_STORE: 'sqlite::memory:', COUNTERSIGN_METRICS_PORT: String(taken) })
  await expect(started).rejects.toThrow(
    `countersign: port ${taken} on 127.0.0.1 is in use by another program. Stop it, or set another port (COUNTERSIGN_METRICS_PORT).\n`,
  )
})

test('if the port of the service is taken, that of the metrics is given back', async () => {
  const [taken, lines] = [await takePort(), [] as unknown[]]
  const logger = { ...silentLogger, info: (_text: string, fields: unknown) => void lines.push(fields) }
  const service = await createCountersign({
    store: 'sqlite::memory:',
    host: '127.0.0.1',
    port: taken,
    metrics: { port: 0 },
    logger,
  })
  onTestFinished(() => service.close(0))
  await expect(service.listen()).rejects.toThrow(`set another port (PORT)`)
  const [{ port }] = lines as [{ port: number }]
  await expect(fetch(`http://127.0.0.1:${port}/metrics`)).rejects.toThrow()
})

/** A connection that sends a text and reads nothing. */
function connected(metricsUrl: string, sent: string): { readonly socket: Socket; readonly over: Promise<unknown> } {
  const socket = connect(Number(new URL(metricsUrl).port), '127.0.0.1')
  socket.on('error', () => {}).write(sent)
  return { socket, over: new Promise((resolve) => socket.once('close', resolve)) }
}

const half = 'GET /metrics HTTP/1.1\r\nHost: a\r\n'

test('a scraper that reads no answer does not hold up the stop', async () => {
  const { metricsUrl, service } = await startMeasured()
  // More than the system keeps for it.
  connected(metricsUrl, `${half}\r\n`.repeat(2_000))
  const other = connected(metricsUrl, half)
  await fetch(`${metricsUrl}/metrics`)
  await service.close(0)
  await other.over
})

test('more than 32 scrapers at a time are turned away', async () => {
  const { metricsUrl } = await startMeasured()
  for (let i = 0; i < 32; i++) connected(metricsUrl, half)
  const { socket, over } = connected(metricsUrl, '')
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  await over
  expect(answer).toBe('')
})

test('a scraper that sends half a request is turned away', async () => {
  const { metricsUrl } = await startMeasured()
  const { socket, over } = connected(metricsUrl, half)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  await over
  expect(answer).toMatch(/^HTTP\/1\.1 408 /)
})

test('the library is loaded only if there are metrics', async () => {
  const program = (options: string) => `
    import { createRequire } from 'node:module'
    import { createCountersign } from '${new URL('../../../src/index.ts', import.meta.url).href}'
    const service = await createCountersign({ store: 'sqlite::memory:', port: 0, pages: false, ${options} })
    await service.listen()
    const loaded = Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('prom-client'))
    await service.close(0)
    console.log(loaded)`
  const loads = async (options: string): Promise<string> =>
    (await run(process.execPath, ['--input-type=module', '--eval', program(options)])).stdout.trim()
  expect(await Promise.all([loads(''), loads('metrics: true')])).toEqual(['false', 'true'])
})
