import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCountersign } from '../../src/index.ts'
import { signInClients } from '../support/clients.ts'
import { scrape } from '../support/metrics.ts'
import { orderClients, type Transition } from '../support/orders.ts'
import { freePort } from '../support/redis-server.ts'
import { type ServiceProcess, type SpawnOptions, spawnService } from '../support/service.ts'
import { redisUrl } from '../support/stores.ts'
import { makeWallet, proofOf } from '../support/wallet.ts'

const secret = 'a secret for tests and for nothing else'

/** A line of the log. */
interface Line {
  readonly level: string
  readonly text: string
  readonly [field: string]: unknown
}

let prefixes = 0

/** Starts a service of two workers on Redis. */
async function startWorkers(
  environment: Record<string, string> = {},
  args: readonly string[] = ['--workers', '2'],
  options?: SpawnOptions,
): Promise<ServiceProcess> {
  const common = {
    COUNTERSIGN_STORE: (await redisUrl?.()) ?? '',
    COUNTERSIGN_KEY_PREFIX: `workers-${process.pid}-${prefixes++}`,
    COUNTERSIGN_SECRET: secret,
  }
  return await spawnService({ ...common, ...environment }, args, undefined, options)
}

const linesOf = (service: ServiceProcess): Line[] =>
  service
    .log()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

const textsOf = (service: ServiceProcess): string[] => linesOf(service).map(({ text }) => text)

/** The workers of a service, which are its only children, by process id. */
function workersOf({ process: { pid } }: ServiceProcess): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}

function isRunning(pid: number): boolean {
  try {
    // A process that has ended and that nobody has waited for is there, too.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/**
 * A call of the REST interface, over a connection of its own unless `agent` keeps some. Rejects if the connection
 * fails.
 */
async function call(
  url: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  agent: Agent | false = false,
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
): Promise<{ readonly status: number | undefined; readonly json: any }> {
  const sent = request(`${url}/api/auth${path}`, {
    agent,
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
  })
  return await new Promise((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      json(response).then((read) => resolve({ status: response.statusCode, json: read }), reject)
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

async function signIn(url: string): Promise<string> {
  const challenge = await call(url, '/wallet/nonce', {})
  return (await call(url, '/wallet/verify', proofOf(makeWallet(), challenge.json))).json.token
}

async function statusOfSession(url: string, token: string): Promise<number | undefined> {
  return (await call(url, '/session', undefined, bearer(token))).status
}

describe.skipIf(redisUrl === undefined)('two workers', () => {
  test('are one service: one banner or "ready", and warnings once', async () => {
    const service = await startWorkers({ COUNTERSIGN_WORKRES: '2', COUNTERSIGN_ENFORCE_ORIGIN: 'off' })
    expect(workersOf(service)).toHaveLength(2)
    const lines = linesOf(service)
    const ready = lines.filter(({ text }) => text === 'ready')
    expect(ready).toEqual([expect.objectContaining({ workers: 2, url: service.url, store: expect.any(String) })])
    expect(ready[0]).not.toHaveProperty('worker')
    expect(lines.filter(({ text }) => text.includes('COUNTERSIGN_WORKRES'))).toHaveLength(1)
    expect(lines.filter(({ text }) => text.startsWith('enforceOrigin'))).toEqual([
      expect.objectContaining({ worker: 1 }),
    ])
    expect(await service.stop()).toBe(0)
    expect(textsOf(service).filter((text) => text.startsWith('stopp'))).toEqual(['stopping', 'stopped'])
  })

  test('share sign-ins, sessions and orders, over each protocol, and each names itself in the log', async () => {
    const service = await startWorkers()
    const { url } = service
    // Connections go to the workers in turn.
    for (let n = 0; n < 4; n++) expect(await statusOfSession(url, 'none')).toBe(401)
    const workers = () => new Set(linesOf(service).flatMap(({ worker }) => worker ?? []))
    await expect.poll(workers).toEqual(new Set([1, 2]))
    const token = await signIn(url)
    for (const name of [
      'Connect binary over HTTP/2, compressed',
      'gRPC through connect-node',
      'gRPC through @grpc/grpc-js',
    ]) {
      // Each has a connection of its own.
      const [one, other] = [signInClients[name]!(url), signInClients[name]!(url)]
      const wallet = makeWallet()
      const { nonceId, message } = await one.issueNonce()
      const { publicKeyHex } = wallet
      const result = await other.verify({ nonceId, publicKeyHex, signatureHex: wallet.sign(message) })
      for (let n = 0; n < 2; n++) expect(await statusOfSession(url, result.token)).toBe(200)
    }
    for (let n = 0; n < 2; n++) expect(await statusOfSession(url, token)).toBe(200)
  })

  test('wake watchers at each other', async () => {
    const { url } = await startWorkers()
    const order = (await call(url, '/cross-device/start', { kind: 'login' })).json
    // gRPC and REST have connections of their own, so these two are at different workers.
    const seen = (['gRPC', 'REST'] as const).map((name) => follow(url, name, order))
    await sleep(300)
    const { challengeToken } = (await call(url, '/cross-device/claim', order)).json
    // Well before a heartbeat, which would bring it, too.
    for (const { transitions } of seen) {
      await expect
        .poll(() => transitions.map(({ status }) => status), { timeout: 5_000 })
        .toEqual(['created', 'claimed'])
    }
    await call(url, '/cross-device/reject', { orderId: order.orderId, challengeToken })
    for (const { ended, transitions } of seen) {
      await ended
      expect(transitions.at(-1)?.status).toBe('rejected')
    }
  })

  test('hold one limit together', async () => {
    const { url } = await startWorkers({ COUNTERSIGN_RATE_LIMIT: 'on', COUNTERSIGN_RATE_LIMITS: 'sign-in=40' })
    const startedAt = Date.now()
    const statuses: (number | undefined)[] = []
    for (let n = 0; n < 120; n++) statuses.push((await call(url, '/wallet/nonce', {})).status)
    const served = statuses.filter((status) => status === 200).length
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    expect(served).toBeGreaterThanOrEqual(40)
    // Each by itself would have let 80 through. A quarter beyond the limit is the tolerance between instances.
    expect(served).toBeLessThanOrEqual(50 + 1 + (Date.now() - startedAt) / 1500)
  })

  test('have one port for metrics, with the sum of what both counted', async () => {
    const metricsPort = await freePort()
    const service = await startWorkers({ COUNTERSIGN_METRICS_PORT: `${metricsPort}`, COUNTERSIGN_DRAIN_SECONDS: '0' })
    const metricsUrl = `http://127.0.0.1:${metricsPort}`
    for (let n = 0; n < 6; n++) await call(service.url, '/wallet/nonce', {})
    const issued = async () =>
      (await scrape(metricsUrl)).value('countersign_calls_total', {
        method: 'countersign.v1.SignInService/IssueNonce',
        outcome: 'ok',
      })
    await expect.poll(issued).toBe(6)
    const { text, value } = await scrape(metricsUrl).then((one) => ({ text: one.text, value: one.value.bind(one) }))
    expect(value('countersign_workers')).toBe(2)
    // Sums would be 2, twice the time, and the ages of two processes.
    expect(value('countersign_ready')).toBe(1)
    expect(value('countersign_build_info')).toBe(1)
    expect(Math.abs(value('process_start_time_seconds') - Date.now() / 1000)).toBeLessThan(120)
    expect(text.match(/^# TYPE countersign_calls_total counter$/gm)).toHaveLength(1)
    // Neither a worker that has crashed nor one that was replaced takes anything with it.
    process.kill(workersOf(service)[0] as number, 'SIGKILL')
    await expect.poll(() => textsOf(service)).toContain('a worker has been replaced')
    expect(await issued()).toBe(6)
    for (let n = 0; n < 4; n++) await call(service.url, '/wallet/nonce', {})
    service.process.kill('SIGUSR2')
    await expect.poll(() => textsOf(service), { timeout: 50_000 }).toContain('all workers have been replaced')
    expect(await issued()).toBe(10)
    expect(await service.stop()).toBe(0)
    await expect(fetch(metricsUrl)).rejects.toThrow()
  })

  test('read files again on SIGHUP, each of them', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-workers-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'secret')
    await writeFile(file, secret)
    const service = await startWorkers({ COUNTERSIGN_SECRET: '', COUNTERSIGN_SECRET_FILE: file })
    const token = await signIn(service.url)
    await writeFile(file, `another ${secret}`)
    service.process.kill('SIGHUP')
    await expect
      .poll(() => linesOf(service).filter(({ text, changed }) => text === 'reloaded' && changed === 'secret'))
      .toEqual([expect.objectContaining({ worker: expect.any(Number) }), expect.objectContaining({})])
    for (let n = 0; n < 4; n++) expect(await statusOfSession(service.url, token)).toBe(401)
  })
})

describe.skipIf(redisUrl === undefined)('a worker that crashes', () => {
  test('is replaced under its number, and no further connection goes to it: the other one serves all', async () => {
    const service = await startWorkers()
    const before = workersOf(service)
    const [crashed, other] = before as [number, number]
    // While it is frozen, a connection that is handed to it stays on its way, and is lost with it.
    process.kill(crashed, 'SIGSTOP')
    const handed = Array.from({ length: 8 }, () =>
      Promise.race([
        call(service.url, '/wallet/nonce', {}).catch(() => 'lost' as const),
        sleep(10_000, 'waits' as const),
      ]),
    )
    await sleep(500)
    process.kill(crashed, 'SIGKILL')
    const outcomes = (await Promise.all(handed)).map((one) => (typeof one === 'string' ? one : one.status))
    expect(outcomes.filter((outcome) => outcome !== 200).length).toBeLessThanOrEqual(1)
    for (let n = 0; n < 20; n++) expect((await call(service.url, '/wallet/nonce', {})).status).toBe(200)
    const replaced = () => textsOf(service).filter((text) => text === 'a worker has been replaced').length
    await expect.poll(replaced).toBe(1)
    expect(linesOf(service).filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({
        text: 'a worker has crashed: another takes its place',
        number: 1,
        cause: 'SIGKILL',
        pauseMs: 250,
      }),
    ])
    const after = workersOf(service)
    expect(after).toHaveLength(2)
    expect(after).toContain(other)
    // Soon afterwards again: the pause grows.
    for (const pid of after) if (pid !== other) process.kill(pid, 'SIGKILL')
    await expect.poll(() => linesOf(service).map(({ pauseMs }) => pauseMs)).toContain(500)
    await expect.poll(() => workersOf(service).length).toBe(2)
    await expect.poll(replaced).toBe(2)
    // The port stays the same, also if there is no worker for a moment.
    for (const pid of workersOf(service)) process.kill(pid, 'SIGKILL')
    await expect.poll(replaced, { timeout: 40_000 }).toBe(4)
    for (let n = 0; n < 4; n++) expect((await call(service.url, '/wallet/nonce', {})).status).toBe(200)
    expect(await service.stop()).toBe(0)
  }, 180_000)
})

describe('workers are refused', () => {
  test.each([
    ['sqlite::memory:', /^countersign: workers \(COUNTERSIGN_WORKERS\) must be 1, not 2, unless .* is Redis: .*own\n$/],
    ['sqlite:./nowhere.db', /^countersign: workers .* must be 1, not 2, unless .* would wake no watcher at another\n$/],
  ])('on %s, once, in one line', async (store, message) => {
    await expect(startWorkers({ COUNTERSIGN_STORE: store, COUNTERSIGN_WORKERS: '2' }, [])).rejects.toThrow(message)
    await expect(startWorkers({ COUNTERSIGN_STORE: store }, ['--workers', 'auto'])).rejects.toThrow(
      'must be 1, not auto',
    )
  })

  test('in code, with what to do instead', async () => {
    const attempt = createCountersign({ workers: 2, store: 'redis://127.0.0.1:1', secret })
    await expect(attempt).rejects.toThrow(
      /must be 1 in code, not 2: .* start several processes of your own, with Redis$/,
    )
  })
})

describe.skipIf(redisUrl === undefined)('workers that cannot start', () => {
  test.each([
    [
      'a setting that does not fit',
      { HOST: 'a b' },
      /^countersign: host \(HOST\) must be a host name or address[^\n]*\n$/,
    ],
    [
      'a secret that is missing',
      { COUNTERSIGN_SECRET: '' },
      /^countersign: secret \(COUNTERSIGN_SECRET\) must be set[^\n]*\n$/,
    ],
    ['a store that is away', { COUNTERSIGN_STORE: 'redis://127.0.0.1:1' }, /^countersign: [^\n]*127.0.0.1:1[^\n]*\n$/],
    [
      'a host of another machine',
      { HOST: '192.0.2.77' },
      /^countersign: 192.0.2.77 is not an address of this machine[^\n]*\n$/,
    ],
  ])('because of %s say so once, and none is left', async (_, environment, message) => {
    await expect(startWorkers(environment)).rejects.toThrow(message)
  })

  test('because the port is taken say so once', async () => {
    const { url } = await startWorkers()
    const { port } = new URL(url)
    await expect(startWorkers({ PORT: port })).rejects.toThrow(/^countersign: port \d+ on 127.0.0.1 is in use[^\n]*\n$/)
  })
})

describe.skipIf(redisUrl === undefined)('a stop', () => {
  test('by SIGTERM to all processes drains, answers what is in progress, and ends with status 0', async () => {
    const service = await startWorkers({ COUNTERSIGN_DRAIN_SECONDS: '2' }, undefined, { detached: true })
    const workers = workersOf(service)
    const slow = await slowRequests(service.url, 4)
    const startedAt = performance.now()
    process.kill(-(service.process.pid as number), 'SIGTERM')
    await sleep(500)
    expect(workers.filter(isRunning)).toEqual(workers)
    // A drain serves everything, and a second SIGTERM changes nothing.
    expect((await call(service.url, '/wallet/nonce', {})).status).toBe(200)
    process.kill(-(service.process.pid as number), 'SIGTERM')
    for (const { finish } of slow) expect(await finish()).toMatch(/^HTTP\/1.1 200 /)
    expect(await service.stop()).toBe(0)
    expect(performance.now() - startedAt).toBeGreaterThan(1950)
    expect(workers.filter(isRunning)).toEqual([])
  })

  test('by Ctrl+C reaches all processes and does not drain; a second one ends at once', async () => {
    const service = await startWorkers({ COUNTERSIGN_DRAIN_SECONDS: '60' }, undefined, { detached: true })
    const workers = workersOf(service)
    // Its request holds the service up for ten seconds.
    await slowRequests(service.url, 1)
    process.kill(-(service.process.pid as number), 'SIGINT')
    await sleep(1000)
    expect(isRunning(service.process.pid as number)).toBe(true)
    process.kill(-(service.process.pid as number), 'SIGINT')
    const startedAt = performance.now()
    expect(await service.stop()).toBe(1)
    expect(performance.now() - startedAt).toBeLessThan(2000)
    await expect.poll(() => workers.filter(isRunning)).toEqual([])
  })

  test('of the first process alone, by SIGKILL, lets workers finish what is in progress, and then they end', async () => {
    const service = await startWorkers()
    const workers = workersOf(service)
    const slow = await slowRequests(service.url, 4)
    service.process.kill('SIGKILL')
    await sleep(500)
    for (const { finish } of slow) expect(await finish()).toMatch(/^HTTP\/1.1 200 /)
    await expect.poll(() => workers.filter(isRunning)).toEqual([])
  })
})

describe.skipIf(redisUrl === undefined)('a rolling restart', () => {
  test('replaces every worker without a failed request or a missed event, and SIGUSR2 meanwhile asks for one more', async () => {
    const service = await startWorkers({ COUNTERSIGN_DRAIN_SECONDS: '1' }, undefined, { detached: true })
    const { url } = service
    const before = workersOf(service)
    const load = new AbortController()
    const done: Record<string, number> = {}
    const failures: unknown[] = []
    const repeat = async (name: string, work: () => Promise<unknown>): Promise<void> => {
      while (!load.signal.aborted) {
        await work().catch((error: unknown) => failures.push([name, error]))
        done[name] = (done[name] ?? 0) + 1
        await sleep(25)
      }
    }
    const agent = new Agent({ keepAlive: true })
    const token = await signIn(url)
    const good = ({ status }: { status: number | undefined }): void => {
      if (status !== 200) throw new Error(`answered with ${status}`)
    }
    const grpc = [orderClients.gRPC!(url), orderClients.gRPC!(url)]
    const { 'gRPC through connect-node': grpcSignIn } = signInClients
    const loads = [
      ...Array.from({ length: 6 }, () =>
        repeat('session over kept connections', async () =>
          good(await call(url, '/session', undefined, bearer(token), agent)),
        ),
      ),
      repeat('nonce over kept connections', async () => good(await call(url, '/wallet/nonce', {}, {}, agent))),
      repeat('nonce over new connections', async () => good(await call(url, '/wallet/nonce', {}))),
      repeat('readiness over new connections', async () => good(await ready(url))),
      ...grpc.map((client) => repeat('order over gRPC', () => unlessRefused(() => client.start('login')))),
      repeat('nonce over a new gRPC connection', () => unlessRefused(() => grpcSignIn!(url).issueNonce())),
    ]
    const orders = await Promise.all(Array.from({ length: 8 }, () => orderClients.REST!(url).start('login')))
    const watches = orders.map((order, n) => follow(url, n % 2 === 0 ? 'REST' : 'gRPC', order))
    await sleep(500)
    service.process.kill('SIGUSR2')
    await expect.poll(() => textsOf(service)).toContain('restarting the workers one after the other')
    service.process.kill('SIGUSR2')
    service.process.kill('SIGUSR2')
    const finished = () => textsOf(service).filter((text) => text === 'all workers have been replaced').length
    await expect.poll(finished, { timeout: 60_000 }).toBe(1)
    const between = workersOf(service)
    for (const { orderId, claimToken } of orders) await call(url, '/cross-device/claim', { orderId, claimToken })
    await expect.poll(finished, { timeout: 60_000 }).toBe(2)
    for (const { orderId, desktopToken } of orders) await call(url, '/cross-device/cancel', { orderId, desktopToken })
    await Promise.all(watches.map(({ ended }) => ended))
    load.abort()
    await Promise.all(loads)
    agent.destroy()
    expect(failures).toEqual([])
    for (const name of Object.keys(done)) expect(done[name], name).toBeGreaterThan(20)
    for (const { transitions, failures: missed } of watches) {
      expect(missed).toEqual([])
      expect(transitions.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
    }
    // Each stream was sent elsewhere, at least once in each of the two restarts.
    expect(new Set([...before, ...between, ...workersOf(service)]).size).toBeGreaterThanOrEqual(5)
    expect(workersOf(service)).toHaveLength(2)
    expect(before.filter(isRunning)).toEqual([])
    await sleep(300)
    expect(finished()).toBe(2)
    expect(linesOf(service).filter(({ level }) => level === 'error')).toEqual([])
    expect(await service.stop()).toBe(0)
  }, 180_000)

  test('leaves the old workers in place if a new one cannot start, and gives way to SIGTERM', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-workers-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'secret')
    await writeFile(file, secret)
    const service = await startWorkers({ COUNTERSIGN_SECRET: '', COUNTERSIGN_SECRET_FILE: file })
    const before = workersOf(service)
    await writeFile(file, 'too short')
    service.process.kill('SIGUSR2')
    await expect
      .poll(() => linesOf(service))
      .toContainEqual(
        expect.objectContaining({
          level: 'error',
          text: 'a new worker cannot start: the others stay',
          cause: expect.stringMatching(/^secret \(COUNTERSIGN_SECRET\) must be/),
        }),
      )
    await expect.poll(() => workersOf(service)).toEqual(before)
    for (let n = 0; n < 4; n++) expect((await call(service.url, '/wallet/nonce', {})).status).toBe(200)
    await writeFile(file, secret)
    // The next one gives way to SIGTERM.
    service.process.kill('SIGUSR2')
    await expect.poll(() => workersOf(service).length).toBe(3)
    const all = workersOf(service)
    expect(await service.stop('SIGTERM')).toBe(0)
    expect(all.filter(isRunning)).toEqual([])
    expect(textsOf(service)).not.toContain('all workers have been replaced')
    expect(textsOf(service).at(-1)).toBe('stopped')
  })
})

/** Whether a service is ready, as those say who send requests to it. */
/**
 * Calls, and calls again as long as the server has refused the request unread (RFC 9113, 8.7), because it was sent
 * before the client had read that it should leave. gRPC's own clients do so by themselves.
 */
async function unlessRefused<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!String(error).includes('NGHTTP2_REFUSED_STREAM')) throw error
    }
  }
}

async function ready(url: string): Promise<{ readonly status: number | undefined }> {
  return await new Promise((resolve, reject) => {
    const asked = request(`${url}/readyz`, { agent: false }, (response) => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode }))
    })
    asked.on('error', reject).end()
  })
}

/** Watches an order to its end, and comes back when the stream ends before, as clients do. */
function follow(url: string, protocol: 'REST' | 'gRPC', order: { orderId: string; desktopToken: string }) {
  const transitions: Transition[] = []
  const failures: unknown[] = []
  const terminal = ['rejected', 'cancelled', 'finalized', 'expired']
  const watch = async (): Promise<void> => {
    while (!terminal.includes(transitions.at(-1)?.status ?? '')) {
      try {
        const client = orderClients[protocol]!(url)
        for await (const one of client.watch(order, transitions.at(-1)?.sequence)) {
          // Over gRPC, the request to come back is an event, with the sequence of the last transition.
          if (one.sequence !== transitions.at(-1)?.sequence) transitions.push(one)
        }
      } catch (error) {
        failures.push(error)
      }
      await sleep(50)
    }
  }
  return { transitions, failures, ended: watch() }
}

/** Requests whose bodies are not there yet, on connections of their own. */
async function slowRequests(url: string, count: number): Promise<{ finish(): Promise<string> }[]> {
  const body = '{}'
  const all = Array.from({ length: count }, () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(answer)))
    socket.write(
      `POST /api/auth/wallet/nonce HTTP/1.1\r\nhost: ${new URL(url).host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n{`,
    )
    return {
      finish: async () => {
        socket.write('}')
        return await closed
      },
    }
  })
  await sleep(300)
  return all
}
