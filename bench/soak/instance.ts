import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import parse from 'parse-prometheus-text-format'
import { freePort } from '../../test/support/redis-server.ts'
import { publicUrl, root } from '../servers.ts'
import type { LogLine } from './findings.ts'
import type { MemoryAnswer, ObjectsAnswer, ProbeQuestion } from './probe.ts'

const probeUrl = new URL('./probe.ts', import.meta.url).href
/** Longest start, and longest stop after SIGTERM, ms. */
const startMs = 90_000
const stopMs = 30_000

// A run that breaks off leaves no server behind.
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** What a server says that it holds, by the metric or the name of its ceiling. */
export type Gauges = Readonly<Record<string, number>>

/** What an {@link Instance} is made with. */
export interface InstanceOptions {
  readonly name: string
  /** URL of the store. */
  readonly store: string
  /** Settings in addition to those that every instance has. */
  readonly environment: Readonly<Record<string, string>>
  /** Is given each line of the log. */
  readonly onLog: (line: LogLine) => void
}

/** A Countersign server in a process of its own. It can be stopped and started again, on the same port. */
export class Instance implements AsyncDisposable {
  readonly name: string
  readonly port: number
  readonly #options: InstanceOptions
  #child: ChildProcess | undefined
  #metricsPort = 0
  #questions = 0
  /** When the process that is running now was ready, ms of `performance.now()`. */
  #readyAt = 0

  private constructor(options: InstanceOptions, port: number) {
    this.name = options.name
    this.port = port
    this.#options = options
  }

  static async start(options: InstanceOptions): Promise<Instance> {
    const instance = new Instance(options, await freePort())
    await instance.start()
    return instance
  }

  get readyAt(): number {
    return this.#readyAt
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Starts the process; resolves once it is ready. */
  async start(): Promise<void> {
    const { store, environment } = this.#options
    // The probe's way to count objects is new in Node.
    const args = [
      '--disable-warning=ExperimentalWarning',
      '--expose-gc',
      '--import',
      probeUrl,
      join(root, 'src/main.ts'),
    ]
    const child = spawn(process.execPath, args, {
      env: {
        PATH: process.env.PATH,
        PORT: String(this.port),
        HOST: '127.0.0.1',
        COUNTERSIGN_PUBLIC_URL: publicUrl,
        COUNTERSIGN_STORE: store,
        COUNTERSIGN_PAGES: 'off',
        COUNTERSIGN_METRICS_PORT: '0',
        // Clients are told apart by what a proxy in front says, so that limits count without refusing anybody.
        COUNTERSIGN_TRUST_PROXY: '1',
        ...(store.startsWith('sqlite:') ? {} : { COUNTERSIGN_SECRET: 'a secret for the soak and for nothing else' }),
        ...environment,
      },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child = child
    running.add(child)
    child.once('exit', () => running.delete(child))
    const ready = Promise.withResolvers<void>()
    const late = setTimeout(() => ready.reject(new Error(`${this.name} was not ready in time`)), startMs)
    let last = ''
    const lines = createInterface(child.stderr as NodeJS.ReadableStream)
    lines.on('line', (text) => {
      last = text
      const line = lineOf(this.name, text)
      if (line.text === 'metrics are served') this.#metricsPort = Number(line.fields.port)
      if (line.text === 'ready') ready.resolve()
      this.#options.onLog(line)
    })
    lines.once('close', () => ready.reject(new Error(`${this.name} ended: ${last}`)))
    try {
      await ready.promise
    } finally {
      clearTimeout(late)
    }
    this.#readyAt = performance.now()
  }

  /** Stops the process as an operator does. Returns its exit code; `null` if it did not end in time and was killed. */
  async stop(): Promise<number | null> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), stopMs)
    const [code] = (await exited) as [number | null]
    clearTimeout(late)
    return code
  }

  async memory(): Promise<MemoryAnswer> {
    return (await this.#ask('memory')) as MemoryAnswer
  }

  async objects(): Promise<ObjectsAnswer> {
    return (await this.#ask('objects')) as ObjectsAnswer
  }

  /** What its metrics say that clients hold. */
  async gauges(): Promise<Gauges> {
    const response = await fetch(`http://127.0.0.1:${this.#metricsPort}/metrics`, {
      // The metrics' own connection is not to be counted as one that was left.
      headers: { connection: 'close' },
    })
    const families = parse(await response.text())
    const samples = (name: string) => families.find((family) => family.name === name)?.metrics ?? []
    const gauges: Record<string, number> = {}
    for (const { value } of samples('countersign_watchers')) gauges.watchers = Number(value)
    for (const { labels, value } of samples('countersign_ceiling_in_use')) {
      if (labels?.ceiling !== undefined) gauges[labels.ceiling] = Number(value)
    }
    return gauges
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** Rejects if the process ends before it answers. */
  async #ask(question: ProbeQuestion): Promise<unknown> {
    const child = this.#child
    if (child?.connected !== true) throw new Error(`${this.name} is not running`)
    const id = ++this.#questions
    return await new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error(`${this.name} ended`))
      const onMessage = (message: { readonly id: number; readonly answer: unknown }): void => {
        if (message.id !== id) return
        child.off('message', onMessage)
        child.off('exit', onExit)
        resolve(message.answer)
      }
      child.on('message', onMessage)
      child.once('exit', onExit)
      child.send({ id, question })
    })
  }
}

/** Reads a line of the log. What is not JSON, such as a warning of Node's, counts as an error. */
function lineOf(instance: string, written: string): LogLine {
  const at = performance.now()
  try {
    const { level, text, time: _, ...fields } = JSON.parse(written)
    return { at, instance, level, text, fields }
  } catch {
    return { at, instance, level: 'error', text: written, fields: {} }
  }
}
