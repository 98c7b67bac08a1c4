import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Usage, UsageQuestion } from './probe.ts'

/** A server in a process of its own, on a loopback port. */
export interface ServerProcess extends AsyncDisposable {
  readonly port: number
  /** What it has used so far. */
  usage(question: UsageQuestion): Promise<Usage>
}

/** The instances of one service: what they have in common. */
export const publicUrl = 'http://countersign.test'

const mainFile = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const floorFile = fileURLToPath(new URL('./floor-server.ts', import.meta.url))
const relayFile = fileURLToPath(new URL('./relay-server.ts', import.meta.url))
const probeUrl = new URL('./probe.ts', import.meta.url).href
const stopMs = 3000

// A run that breaks off leaves no server behind.
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts Countersign as `npm start` does, on this store. Callers send the origin {@link publicUrl}. */
export async function startCountersign(store: string): Promise<ServerProcess> {
  return await start([mainFile], {
    PORT: '0',
    HOST: '127.0.0.1',
    COUNTERSIGN_PUBLIC_URL: publicUrl,
    COUNTERSIGN_STORE: store,
    COUNTERSIGN_RATE_LIMIT: 'off',
    // An embedded store keeps a secret of its own.
    ...(store.startsWith('sqlite:') ? {} : { COUNTERSIGN_SECRET: 'a secret for benchmarks and for nothing else' }),
  })
}

/** Starts a server that does as little as a server can, and answers with as many bytes as Countersign. */
export async function startFloor(protocol: 'http' | 'http2', answerBytes = 0): Promise<ServerProcess> {
  return await start([floorFile, protocol, String(answerBytes)], {})
}

/** Starts an instance of the least that carries messages between instances through Redis. */
export async function startRelay(redisUrl: string): Promise<ServerProcess> {
  return await start([relayFile, redisUrl], {})
}

async function start(args: readonly string[], environment: Record<string, string>): Promise<ServerProcess> {
  // Options of node go on to the servers: that is how one is profiled.
  const child = spawn(process.execPath, [...process.execArgv, '--expose-gc', '--import', probeUrl, ...args], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  running.add(child)
  const exited = once(child, 'exit')
  child.once('exit', () => running.delete(child))
  return {
    port: await portOf(child),
    async usage(question) {
      const answer = once(child, 'message') as Promise<[Usage]>
      child.send(question)
      const [usage] = await answer
      return usage
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), stopMs)
      await exited
      clearTimeout(late)
    },
  }
}

/** Reads the port that a server names when it is ready; rejects with what it printed when it ends instead. */
async function portOf(child: ChildProcess): Promise<number> {
  const lines = createInterface(child.stderr as NodeJS.ReadableStream)
  let printed = ''
  return await new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      printed += `${line}\n`
      const port = /"text":"ready".*"port":(\d+)/.exec(line)?.[1]
      if (port !== undefined) resolve(Number(port))
    })
    child.once('exit', () => reject(new Error(`the server ended: ${printed}`)))
  })
}

/** Whether redis-server can be started; says so when not, so that nobody takes a short run for a whole one. */
export function hasRedis(): boolean {
  if (spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0) return true
  console.log('\nSKIPPED: everything on Redis, because redis-server is not installed')
  return false
}
