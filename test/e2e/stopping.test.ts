import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, readdir, readFile, stat, symlink, utimes } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../gen/server/grpc/health/v1/health_pb.ts'
import { orderClients } from '../support/orders.ts'
import { rest } from '../support/rest.ts'
import { spawnService, startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const inMemory = { COUNTERSIGN_STORE: 'sqlite::memory:', COUNTERSIGN_ENFORCE_ORIGIN: 'off' }

async function statusOf(url: string): Promise<unknown> {
  const response = await fetch(url)
  return [response.status, (await response.json()).status]
}

async function elapsedMs(promise: Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await promise
  return performance.now() - startedAt
}

describe('a drain', () => {
  test('lasts for its time, then the service ends with status 0', async () => {
    const service = await spawnService({ ...inMemory, COUNTERSIGN_DRAIN_SECONDS: '1' })
    const took = elapsedMs(service.stop('SIGTERM'))
    expect(await service.stop('SIGTERM')).toBe(0)
    expect(await took).toBeGreaterThan(950)
    await expect(fetch(service.url)).rejects.toThrow()
  })

  test('turns readiness off and serves everything', async () => {
    // More than a busy machine takes for the calls.
    const service = await spawnService({ ...inMemory, COUNTERSIGN_DRAIN_SECONDS: '60' })
    const health = createClient(Health, createGrpcTransport({ baseUrl: service.url }))
    expect(await statusOf(`${service.url}/readyz`)).toEqual([200, 'ready'])
    const stopped = service.stop('SIGTERM')
    await expect.poll(() => statusOf(`${service.url}/readyz`), { interval: 5 }).toEqual([503, 'stopping'])
    expect(await statusOf(`${service.url}/healthz`)).toEqual([200, 'ok'])
    expect((await health.check({})).status).toBe(ServingStatus.NOT_SERVING)
    for (let i = 0; i < 5; i++) {
      const { status, headers } = await rest(service.url, '/wallet/nonce', {})
      expect([status, headers.get('connection')]).toEqual([200, 'close'])
      await orderClients.gRPC!(service.url).start('login')
      await sleep(50)
    }
    service.process.kill('SIGINT')
    await stopped
  })

  test('sends watchers elsewhere at its beginning, and serves one that comes back here', async () => {
    const { url, service } = await startService({ enforceOrigin: false, drainSeconds: 3 })
    const client = orderClients.REST!(url)
    const order = await client.start('login')
    const first = client.watch(order, 0)[Symbol.asyncIterator]()
    expect((await first.next()).value).toMatchObject({ sequence: 1 })
    const drained = service.drain()
    expect((await first.next()).done).toBe(true)
    const second = client.watch(order, 1)[Symbol.asyncIterator]()
    const news = second.next()
    await client.claim(order)
    expect((await news).value).toMatchObject({ sequence: 2 })
    expect((await second.next()).done).toBe(true)
    await service.close(500)
    await drained
  })

  test('a second SIGTERM changes nothing', async () => {
    const service = await spawnService({ ...inMemory, COUNTERSIGN_DRAIN_SECONDS: '60' })
    const stopped = service.stop('SIGTERM')
    for (let i = 0; i < 5; i++) {
      await sleep(100)
      service.process.kill('SIGTERM')
    }
    expect((await rest(service.url, '/wallet/nonce', {})).status).toBe(200)
    expect(await statusOf(`${service.url}/readyz`)).toEqual([503, 'stopping'])
    service.process.kill('SIGINT')
    await stopped
  })

  test('SIGINT ends it', async () => {
    const service = await spawnService({ ...inMemory, COUNTERSIGN_DRAIN_SECONDS: '60' })
    void service.stop('SIGTERM')
    await expect.poll(() => statusOf(`${service.url}/readyz`), { interval: 5 }).toEqual([503, 'stopping'])
    expect(await elapsedMs(service.stop('SIGINT'))).toBeLessThan(30_000)
  })

  test('does not come with SIGINT, whose repetition by npm is not a second one', async () => {
    const service = await spawnService({ ...inMemory, COUNTERSIGN_DRAIN_SECONDS: '60' })
    const headers = { 'content-type': 'application/json', expect: '100-continue' }
    const call = request(`${service.url}/api/auth/wallet/nonce`, { method: 'POST', headers })
    const answered = once(call, 'response') as Promise<[IncomingMessage]>
    call.flushHeaders()
    // The server has the request, and waits for its body.
    await once(call, 'continue')
    service.process.kill('SIGINT')
    await expect.poll(() => service.log(), { interval: 5 }).toContain('"text":"stopping"')
    const stopped = service.stop('SIGINT')
    await sleep(100)
    call.end('{}')
    const [response] = await answered
    response.resume()
    expect(response.statusCode).toBe(200)
    expect(await stopped).toBe(0)
    expect(service.log()).toContain('"text":"stopped"')
  })

  test('in code, resolves when its time is over, or when the service closes', async () => {
    const { service } = await startService({ drainSeconds: 0 })
    await service.drain()
    const other = await startService({ drainSeconds: 300 })
    const drained = other.service.drain()
    await other.service.close(100)
    await drained
  })
})

test('a service whose log is no longer read lives on', async () => {
  const service = await spawnService({ ...inMemory, LOG_LEVEL: 'debug' })
  service.process.stderr?.destroy()
  await sleep(50)
  for (let i = 0; i < 20; i++) {
    const { status } = await rest(service.url, '/session', undefined, { authorization: 'Bearer nonsense' })
    expect(status).toBe(401)
    expect((await fetch(`${service.url}/nothing/${i}`)).status).toBe(404)
  }
  expect((await rest(service.url, '/wallet/nonce', {})).status).toBe(200)
  expect(await service.stop()).toBe(0)
})

test('a closed pipe while printing help exits with 0', async () => {
  const main = join(root, 'src/main.ts')
  const child = spawn(process.execPath, [main, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  const errors = text(child.stderr)
  expect(await once(child, 'exit')).toEqual([0, null])
  expect(await errors).toBe('')
})

test('the log of a refused path has its HTTP method and address, and the path only if it is one of ours', async () => {
  const service = await spawnService({ ...inMemory })
  await fetch(`${service.url}/claim/a-ticket`, { method: 'PUT' })
  await fetch(`${service.url}/api/auth/wallet/nonce?ticket=a-ticket`, { method: 'DELETE' })
  expect(await service.stop()).toBe(0)
  const lines = service
    .log()
    .split('\n')
    .filter((line) => line.includes('refused'))
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'info', reason: 'ROUTE_NOT_FOUND', httpMethod: 'PUT', ip: '127.0.0.1' },
    {
      level: 'info',
      reason: 'METHOD_NOT_ALLOWED',
      httpMethod: 'DELETE',
      path: '/api/auth/wallet/nonce',
      ip: '127.0.0.1',
    },
  ])
  expect(service.log()).not.toContain('a-ticket')
})

/** A user that may write nothing. */
const nobody = { uid: 65534, gid: 65534 }

/** Whether programs can be started as that user, and find what is installed here. */
function canBeNobody(): boolean {
  const program = join(root, 'src/commands/service.ts')
  return process.getuid?.() === 0 && spawnSync(process.execPath, [program], nobody).status === 0
}

/** A checkout of its own: the sources are copied, the installed packages are those of this one. */
async function checkout(): Promise<string> {
  const folder = temporaryFolder()
  for (const name of ['package.json', 'package-lock.json', 'src', 'gen', 'scripts']) {
    await cp(join(root, name), join(folder, name), { recursive: true, preserveTimestamps: true })
  }
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Runs `npm start` in a checkout, as another user if one is given; resolves once the service is ready. */
async function npmStart(folder: string, environment: Record<string, string>, user?: { uid: number; gid: number }) {
  const child = spawn('npm', ['start'], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: tmpdir(), PORT: '0', HOST: '127.0.0.1', ...inMemory, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    ...user,
  })
  onTestFinished(() => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All of it has ended.
    }
  })
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  let log = ''
  const ready = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        log += `${line}\n`
        const port = /"text":"ready".*"port":(\d+)/.exec(line)?.[1]
        if (port !== undefined) resolve(`http://127.0.0.1:${port}`)
      })
    }
  })
  const url = await Promise.race([ready, exited.then(() => undefined)])
  if (url === undefined) throw new Error(log)
  return { url, child, exited, log: () => log }
}

describe('npm start', { timeout: 120_000 }, () => {
  test('hands SIGTERM on, which drains the service and ends with status 0', async () => {
    const { url, child, exited, log } = await npmStart(await checkout(), { COUNTERSIGN_DRAIN_SECONDS: '3' })
    const startedAt = performance.now()
    child.kill('SIGTERM')
    await expect.poll(() => statusOf(`${url}/readyz`), { interval: 5 }).toEqual([503, 'stopping'])
    expect((await rest(url, '/wallet/nonce', {})).status).toBe(200)
    expect(await exited).toEqual([0, null])
    expect(performance.now() - startedAt).toBeGreaterThan(2950)
    expect(log()).toContain('"text":"stopped"')
    await expect(fetch(url)).rejects.toThrow()
  })

  test('also if the whole process group gets it, as from a service manager', async () => {
    const { child, exited, log } = await npmStart(await checkout(), { COUNTERSIGN_DRAIN_SECONDS: '1' })
    process.kill(-(child.pid ?? 0), 'SIGTERM')
    expect(await exited).toEqual([0, null])
    expect(log()).toContain('"text":"stopped"')
  })

  test('builds pages if they are missing or old, and leaves others alone', async () => {
    const folder = await checkout()
    const pages = join(folder, 'dist/pages.json')
    const builtAt = async (): Promise<number> => (await stat(pages)).mtimeMs
    const startOnce = async (): Promise<void> => {
      const { url, child, exited } = await npmStart(folder, { COUNTERSIGN_DRAIN_SECONDS: '0' })
      expect((await fetch(url)).status).toBe(200)
      child.kill('SIGTERM')
      await exited
    }
    await startOnce()
    const first = await builtAt()
    await startOnce()
    expect(await builtAt()).toBe(first)
    const later = new Date(Date.now() + 1)
    await utimes(join(folder, 'src/browser/pages/demo.ts'), later, later)
    await startOnce()
    expect(await builtAt()).toBeGreaterThan(first)
    const { assets } = JSON.parse(await readFile(pages, 'utf8'))
    expect(Object.keys(assets).filter((name) => /^demo-[A-Z0-9]{8}\.js$/.test(name))).toHaveLength(1)
    // Nothing is left of what was written beside it.
    expect(await readdir(join(folder, 'dist'))).toEqual(['pages.json'])
  })

  test.runIf(canBeNobody())('starts in a checkout that its user cannot write', async () => {
    const folder = await checkout()
    await chmod(folder, 0o755)
    // Without pages: the calls are served.
    const bare = await npmStart(folder, { COUNTERSIGN_DRAIN_SECONDS: '0' }, nobody)
    expect((await rest(bare.url, '/wallet/nonce', {})).status).toBe(200)
    expect(bare.log()).toContain('npm run build')
    bare.child.kill('SIGTERM')
    expect(await bare.exited).toEqual([0, null])
    // With pages that are old: they are served.
    await mkdir(join(folder, 'dist'))
    const pages = join(folder, 'dist/pages.json')
    await cp(join(root, 'dist/pages.json'), pages)
    await utimes(pages, new Date(0), new Date(0))
    const { url, child, exited } = await npmStart(folder, { COUNTERSIGN_DRAIN_SECONDS: '0' }, nobody)
    expect((await fetch(url)).status).toBe(200)
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  })
})
