import { execFile } from 'node:child_process'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { randomText } from '../../src/base/token.ts'
import { type Countersign, type CountersignOptions, createCountersign } from '../../src/index.ts'
import { hasPart } from '../support/optional.ts'
import { freePort, RedisServer } from '../support/redis-server.ts'
import { redisUrl } from '../support/stores.ts'
import { trustedAuthority } from '../support/tls.ts'

const host = '127.0.0.1'
const secret = 'a secret for tests and for nothing else'
const header = 'countersign-instance'
const keyPrefix = `shared-port-${process.pid}`
const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** An instance that listens on a port with others, closed when the test ends. */
async function listening(options: CountersignOptions): Promise<Countersign> {
  const service = await createCountersign({
    host,
    store: (await redisUrl?.()) ?? '',
    keyPrefix,
    secret,
    reusePort: true,
    logger: silentLogger,
    ...options,
  })
  onTestFinished(() => service.close(500))
  await service.listen()
  return service
}

/** Another program on a free port. */
async function otherProgram(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen({ port: 0, host }, resolve))
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

async function readiness(service: Countersign, challenge: string): Promise<Response> {
  return await service.fetch(new Request('http://localhost/readyz', { headers: { [header]: challenge } }))
}

describe.skipIf(redisUrl === undefined)('instances on one port', () => {
  test('all get connections, and the others get all once one has closed', async () => {
    const port = await freePort()
    const [first, second] = [await listening({ port, metrics: true }), await listening({ port, metrics: true })]
    const healthChecks = async (service: Countersign): Promise<number> => {
      const text = await service.metrics()
      return Number(/^countersign_calls_total\{method="health",.* (\d+)$/m.exec(text)?.[1] ?? 0)
    }
    const check = async (): Promise<void> => {
      const { status } = await fetch(`http://${host}:${port}/healthz`, { headers: { connection: 'close' } })
      expect(status).toBe(200)
    }
    const before = [await healthChecks(first), await healthChecks(second)]
    // The chance that the kernel has one instance of two serve all of 64 is that of 64 coins.
    for (let n = 0; n < 64; n++) await check()
    const after = [await healthChecks(first), await healthChecks(second)]
    expect(after[0]).toBeGreaterThan(before[0]!)
    expect(after[1]).toBeGreaterThan(before[1]!)
    await first.close()
    for (let n = 0; n < 8; n++) await check()
    expect(await healthChecks(second)).toBe(after[1]! + 8)
  })

  test('may have a list of secrets, one of which is the signing one of the others', async () => {
    const port = await freePort()
    await listening({ port })
    await listening({ port, secret: ['another secret for tests and for nothing else', secret] })
  })

  test.each<[string, CountersignOptions]>([
    ['another secret', { secret: 'another secret for tests and for nothing else' }],
    ['another store', { keyPrefix: `shared-port-other-${process.pid}` }],
  ])('one with %s does not start', async (_difference, options) => {
    const port = await freePort()
    await listening({ port })
    await expect(listening({ port, ...options })).rejects.toThrow(
      `port ${port} on ${host} is in use by an instance with another secret or another store. Give all instances the same COUNTERSIGN_SECRET, COUNTERSIGN_STORE and COUNTERSIGN_KEY_PREFIX, or set another port (PORT).`,
    )
  })

  test('an instance does not join one without reusePort, which does not answer challenges', async () => {
    const port = await freePort()
    const alone = await listening({ port, reusePort: false })
    await expect(listening({ port })).rejects.toThrow(/ by another program, or by an instance without reusePort\. /)
    expect((await readiness(alone, randomText(32))).headers.has(header)).toBe(false)
  })

  test('an instance that drains, or whose store is away, proves itself with 503', async () => {
    const redis = await RedisServer.start()
    onTestFinished(() => redis.kill())
    const service = await listening({ port: await freePort(), store: redis.url, drainSeconds: 1 })
    const challenge = randomText(32)
    const proof = (await readiness(service, challenge)).headers.get(header)
    expect(proof).toMatch(/^[\w-]{43}$/)
    await redis.kill()
    const away = await readiness(service, challenge)
    expect([away.status, away.headers.get(header)]).toEqual([503, proof])
    void service.drain()
    const draining = await readiness(service, challenge)
    expect([draining.status, draining.headers.get(header)]).toEqual([503, proof])
  })

  test('a proof is for one challenge, of 32 bytes in base64url', async () => {
    const service = await listening({ port: await freePort() })
    const proofOf = async (challenge: string): Promise<string | null> =>
      (await readiness(service, challenge)).headers.get(header)
    expect(await proofOf(randomText(32))).not.toBe(await proofOf(randomText(32)))
    for (const malformed of ['', randomText(31), `${randomText(32)}x`, `${randomText(32).slice(1)}.`]) {
      expect(await proofOf(malformed), malformed).toBeNull()
    }
  })

  const answering = (listener: RequestListener) => () => createHttpServer(listener)

  test.each<[string, () => Server, RegExp]>([
    ['answers', answering((_request, response) => response.end()), /another program, or by an instance without/],
    [
      'repeats the challenge',
      answering((request, response) => response.setHeader(header, request.headers[header] ?? '').end()),
      /an instance with another secret or another store\. /,
    ],
    ['hangs up', () => createServer((socket) => socket.destroy()), /a program that gives no answer \(ECONNRESET\)\. /],
    ['speaks no HTTP', () => createServer((socket) => socket.end('hello\r\n')), /gives no answer \(HPE_\w+\)\. /],
  ])('an instance does not join a program that %s', async (_what, make, message) => {
    await expect(listening({ port: await otherProgram(make()) })).rejects.toThrow(message)
  })

  test('an instance does not join a program that repeats the proof of an instance for another challenge', async () => {
    const service = await listening({ port: await freePort() })
    const proof = (await readiness(service, randomText(32))).headers.get(header) ?? ''
    const port = await otherProgram(createHttpServer((_request, response) => response.setHeader(header, proof).end()))
    await expect(listening({ port })).rejects.toThrow(/an instance with another secret or another store\. /)
  })

  test.skipIf(process.getuid?.() !== 0)('an instance of another system user does not start', async () => {
    const port = await freePort()
    await listening({ port })
    const env = {
      PORT: String(port),
      HOST: host,
      COUNTERSIGN_STORE: (await redisUrl?.()) ?? '',
      COUNTERSIGN_KEY_PREFIX: keyPrefix,
      COUNTERSIGN_SECRET: secret,
      COUNTERSIGN_REUSE_PORT: 'on',
    }
    // The user that is called nobody.
    const started = promisify(execFile)(process.execPath, [mainFile], { env, uid: 65_534, gid: 65_534 })
    await expect(started).rejects.toMatchObject({
      stderr: `countersign: port ${port} on ${host} is in use by another program, or by an instance of another system user. Stop it, or set another port (PORT).\n`,
    })
  })

  test.skipIf(!hasPart('openssl'))('instances with TLS share a port, and one without it does not join', async () => {
    const tls = await (await trustedAuthority()).issue('localhost')
    const port = await freePort()
    await listening({ port, tls })
    await listening({ port, tls })
    await expect(listening({ port })).rejects.toThrow(/^port \d+ on 127\.0\.0\.1 is in use by [^\n]+$/)
    const plain = await freePort()
    await listening({ port: plain })
    await expect(listening({ port: plain, tls })).rejects.toThrow(
      /^port \d+ on 127\.0\.0\.1 is in use by a program that gives no answer \([^\n]+$/,
    )
  })
})

describe('reusePort stops the start', () => {
  const shared = { reusePort: true, secret, port: 8080, store: 'redis://127.0.0.1:1' }

  test.each<[string, CountersignOptions, string]>([
    [
      'an SQLite file',
      { store: 'sqlite:./nowhere.db' },
      'a store that instances share, such as Redis (COUNTERSIGN_STORE)',
    ],
    [
      'a store in memory',
      { store: 'sqlite::memory:' },
      'a store that instances share, such as Redis (COUNTERSIGN_STORE)',
    ],
    ['port 0', { port: 0 }, 'a port other than 0 (PORT)'],
  ])('with %s', async (_what, options, needed) => {
    await expect(createCountersign({ ...shared, ...options })).rejects.toThrow(
      new TypeError(`reusePort (COUNTERSIGN_REUSE_PORT) needs ${needed}`),
    )
  })

  test('on a system that does not spread connections', async () => {
    const { platform } = process
    Object.defineProperty(process, 'platform', { value: 'darwin' })
    onTestFinished(() => void Object.defineProperty(process, 'platform', { value: platform }))
    await expect(createCountersign(shared)).rejects.toThrow(/needs Linux, whose kernel spreads connections[^\n]+$/)
  })
})
