import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import type { Countersign } from '../../src/index.ts'
import { createCountersign } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { ordinaryStore } from './ordinary-store.ts'

/** A service in this process on a free port, stopped when the test ends. */
export async function startService(
  options: CountersignOptions = {},
): Promise<{ readonly url: string; readonly service: Countersign }> {
  const service = await createCountersign({
    ...(options.store === undefined ? await ordinaryStore() : {}),
    port: 0,
    host: '127.0.0.1',
    rateLimit: false,
    logger: silentLogger,
    ...options,
  })
  onTestFinished(() => service.close(500))
  return { url: `${schemeOf(options.tls?.cert)}://localhost:${await service.listen()}`, service }
}

function schemeOf(tlsCert: string | undefined): 'http' | 'https' {
  return tlsCert === undefined ? 'http' : 'https'
}

/** A service as a process of its own, as `npm start` runs it. */
export interface ServiceProcess {
  readonly url: string
  readonly process: ChildProcess
  /** What it wrote to its log. */
  log(): string
  /** Sends a signal and waits for the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** How a service is started. */
export interface SpawnOptions {
  /** Whether it begins a process group of its own, to which signals can be sent. */
  readonly detached?: boolean
}

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/**
 * Starts `src/main.ts`, or that of another release, with these environment variables and arguments, without a drain
 * unless they say otherwise; rejects with what it printed when it does not come up.
 */
export async function spawnService(
  environment: Record<string, string>,
  args: readonly string[] = [],
  main: string = mainFile,
  { detached = false }: SpawnOptions = {},
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [main, ...args], {
    detached,
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      PORT: '0',
      HOST: '127.0.0.1',
      COUNTERSIGN_RATE_LIMIT: 'off',
      COUNTERSIGN_DRAIN_SECONDS: '0',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  child.stdout.on('data', (chunk: Buffer) => {
    log += chunk
  })
  const exited = once(child, 'exit') as Promise<[number | null]>
  const ready = new Promise<string>((resolve) => {
    createInterface(child.stderr).on('line', (line) => {
      log += `${line}\n`
      const port = /"text":"ready".*"port":(\d+)/.exec(line)?.[1]
      if (port !== undefined) resolve(`${schemeOf(environment.COUNTERSIGN_TLS_CERT)}://localhost:${port}`)
    })
  })
  const url = await Promise.race([ready, exited.then(() => undefined)])
  if (url === undefined) throw new Error(log)
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    return (await exited)[0]
  }
  onTestFinished(async () => void (await stop('SIGKILL')))
  return { url, process: child, log: () => log, stop }
}
