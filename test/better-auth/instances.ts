import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import type { BetterAuthOptions } from 'better-auth'
import { onTestFinished } from 'vitest'
import { listening } from '../support/listening.ts'
import type { RedisKeys } from './redis-storage.ts'
import { type Auth, makeAuth } from './support.ts'

/** What an instance is told. */
export interface InstanceOptions {
  /** Whether its database adapter knows transactions. */
  readonly transactions: boolean
  /** An address that it asks, and waits for, before it makes a session. */
  readonly gate?: string
  /** The same, after it has stored the session. */
  readonly gateAfter?: string
  /** The Redis that has its sessions, and the beginning of its keys there. */
  readonly redis?: RedisKeys
}

/** A server in a process of its own, to be called as one in this process. */
export type Instance = Pick<Auth, 'handler'>

const program = fileURLToPath(new URL('./instance-process.ts', import.meta.url))

/** A database file with the tables, for processes to share; and a server on it in this one, for a look at the rows. */
export async function makeDatabase(
  options: Partial<BetterAuthOptions> = {},
): Promise<{ readonly file: string; readonly auth: Auth }> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-better-auth-'))
  const file = join(folder, 'auth.db')
  const database = new DatabaseSync(file, { timeout: 5000 })
  onTestFinished(async () => {
    database.close()
    await rm(folder, { recursive: true, force: true })
  })
  return { file, auth: await makeAuth({ storage: async () => ({ database, ...options }) }) }
}

/** Starts instances on one database file. */
export async function startInstances(file: string, ...options: InstanceOptions[]): Promise<Instance[]> {
  return await Promise.all(options.map((each) => startInstance(file, each)))
}

async function startInstance(file: string, options: InstanceOptions): Promise<Instance> {
  const child = spawn(process.execPath, [program, file, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const [printed] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [Buffer]
  const url = `http://127.0.0.1:${String(printed).trim()}`
  return {
    handler: async (request) =>
      await fetch(new Request(url + new URL(request.url).pathname + new URL(request.url).search, request)),
  }
}

/** A gate that an instance waits at. */
export interface Gate {
  readonly url: string
  /** Resolves when somebody waits. */
  readonly arrived: Promise<void>
  open(): void
}

/** Makes a gate, closed. */
export async function makeGate(): Promise<Gate> {
  const arrived = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  const server = createServer((_request, response) => {
    arrived.resolve()
    void opened.promise.then(() => response.end())
  })
  const url = await listening(server)
  return { url, arrived: arrived.promise, open: () => opened.resolve() }
}
