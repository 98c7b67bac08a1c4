import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { makeWallets, type Wallet } from '../wallets.ts'
import { CallFailed, Clients, type Protocol, protocols } from './calls.ts'
import {
  type ExpectedLog,
  type Failure,
  type Finding,
  failureFindings,
  gaugeFindings,
  heapFindings,
  type LogLine,
  logFindings,
  objectFindings,
  orderLifeSeconds,
  orderMemorySeconds,
  seconds,
  type Window,
} from './findings.ts'
import { type Gauges, Instance } from './instance.ts'
import type { MemoryAnswer, ObjectsAnswer } from './probe.ts'
import type { Sample } from './statistics.ts'
import type { KeyCount, SoakStore } from './stores.ts'
import { type Door, type Kind, makeVisit, visitKinds } from './visits.ts'

/** What is soaked. */
export interface ScenarioPlan {
  readonly title: string
  /** Name of its files in the report. */
  readonly id: string
  readonly instances: number
  readonly openStore: () => Promise<SoakStore>
}

/** How it is soaked. */
export interface ScenarioOptions {
  readonly minutes: number
  /** Visits in a second. */
  readonly rate: number
  /** Settings of the servers in addition to those of the soak. */
  readonly environment: Readonly<Record<string, string>>
  /** Is told what happens, in words. */
  readonly say: (text: string) => void
}

/** How long something took that began `at`, by its kind and protocol. Times are ms since the load began. */
export interface Timed extends Sample {
  readonly kind: string
  readonly protocol: Protocol
}

/** The memory of a process over time, and what it held when it was idle after the load. */
export interface ProcessRecord {
  readonly name: string
  /** When it was ready. */
  readonly from: number
  readonly samples: readonly (MemoryAnswer & { readonly at: number })[]
  readonly idle?: { readonly memory: MemoryAnswer; readonly objects: ObjectsAnswer; readonly gauges: Gauges }
}

/** All that a run showed. Times are ms since the load began. */
export interface ScenarioRecord {
  readonly title: string
  readonly id: string
  readonly loadMs: number
  /** Where the second half begins, in which heaps have to be flat. */
  readonly secondHalfFrom: number
  readonly times: readonly Timed[]
  readonly visits: Readonly<Record<string, { readonly made: number; readonly disturbed: number }>>
  readonly failures: readonly Failure[]
  readonly windows: readonly Window[]
  readonly processes: readonly ProcessRecord[]
  readonly before: { readonly memory: MemoryAnswer; readonly objects: ObjectsAnswer; readonly holds: Gauges }
  readonly after: { readonly holds: Gauges; readonly keys: readonly KeyCount[]; readonly settledMs: number }
  readonly logCounts: Readonly<Record<string, number>>
  readonly findings: readonly Finding[]
}

/** Each kind as often as its share. */
const drawn: readonly Kind[] = visitKinds.flatMap((kind) => Array.from({ length: kind.share }, () => kind))
/** Lives in the store, s: short, so that what is stored in one half of a run has gone in the other. */
const settings = {
  COUNTERSIGN_NONCE_TTL_SECONDS: '10',
  COUNTERSIGN_ORDER_TTL_SECONDS: String(orderLifeSeconds),
  COUNTERSIGN_SESSION_TTL_SECONDS: '60',
  COUNTERSIGN_SESSION_ABSOLUTE_TTL_SECONDS: '120',
  COUNTERSIGN_CONFIRMATION_CODE: 'return',
  COUNTERSIGN_DRAIN_SECONDS: '2',
}
/**
 * Fewer than sign-ins in the life of a session, so that users have several; more than one wallet may make in a minute.
 */
const walletCount = 128
/** Most visits at a time: with more, the load would be the limit, and the visit is left out and counted. */
const mostVisits = 500
/** Load before what idle servers hold is looked at for the first time, ms. */
const warmUpMs = 12_000
/** Parts of the load's time at which Redis and an instance are restarted, and at which the second half begins. */
const redisRestartsAt = 0.3
const instanceRestartsAt = 0.4
const secondHalfAt = 0.5
/** Time after its start in which a process still compiles what it does often, ms. */
const youthMs = 20_000
/** Time for which an instance stays away, ms. */
const awayMs = 1500
/** Time after a part is back in which the consequences of its absence may still show, ms. */
const echoMs = { redis: 5000, instance: 1000 }
/** Longest wait until nothing is left: nonces are kept for a minute after their end. */
const settleMs = 100_000
/** Longest wait for the visits of the load to end, ms. */
const visitsEndMs = 60_000

const storeAway = ['STORE_UNAVAILABLE', 'SERVER_BUSY']
const expectedLog: ExpectedLog = {
  texts: [
    'Wallets: nimiq, ed25519 (native Ed25519)',
    'Open: anyone with a wallet gets into what forward auth protects without groups',
    'ready',
    'metrics are served',
    'audit',
    'stopping',
    'stopped',
  ],
  reasons: [
    'SIGNATURE_INVALID',
    'NONCE_NOT_FOUND',
    'SESSION_REQUIRED',
    'SESSION_INVALID',
    'RETURN_CODE_WRONG',
    // What was cut in the middle.
    'INVALID_REQUEST',
  ],
}

/** Runs a scenario from the start of its servers to what is left of the load. */
export async function runScenario(plan: ScenarioPlan, options: ScenarioOptions): Promise<ScenarioRecord> {
  await using store = await plan.openStore()
  await using open = new AsyncDisposableStack()
  const lines: LogLine[] = []
  const instances: Instance[] = []
  for (let index = 0; index < plan.instances; index++) {
    const started = await Instance.start({
      name: String.fromCharCode(97 + index),
      store: store.url,
      environment: { ...settings, ...options.environment },
      onLog: (line) => lines.push(line),
    })
    instances.push(open.use(started))
  }
  return await new Soak(plan, options, store, instances, lines).run()
}

/** One run of a scenario. */
class Soak {
  readonly #plan: ScenarioPlan
  readonly #options: ScenarioOptions
  readonly #store: SoakStore
  readonly #instances: readonly Instance[]
  readonly #lines: readonly LogLine[]
  readonly #doors: Door[]
  readonly #wallets: readonly Wallet[] = makeWallets(walletCount)
  readonly #times: Timed[] = []
  readonly #failures: Failure[] = []
  readonly #windows: Window[] = []
  readonly #findings: Finding[] = []
  readonly #visits = new Map<string, { made: number; disturbed: number }>()
  readonly #processes: { name: string; from: number; samples: (MemoryAnswer & { at: number })[] }[]
  readonly #open = new Set<Promise<void>>()
  #leftOut = 0
  /** When the load began, by performance.now(). */
  #beganAt = 0

  constructor(
    plan: ScenarioPlan,
    options: ScenarioOptions,
    store: SoakStore,
    instances: readonly Instance[],
    lines: readonly LogLine[],
  ) {
    this.#plan = plan
    this.#options = options
    this.#store = store
    this.#instances = instances
    this.#lines = lines
    this.#doors = instances.map(({ port, url }) => ({ port, clients: new Clients(url), inService: true }))
    this.#processes = instances.map(({ name }) => ({ name, from: 0, samples: [] }))
  }

  async run(): Promise<ScenarioRecord> {
    const { minutes } = this.#options
    const loadMs = minutes * 60_000
    const [first] = this.#instances as [Instance]
    this.#say('warms up')
    await this.#load(warmUpMs)
    await this.#endVisits()
    await this.#settle((gauge) => gauge === 'nonces')
    const before = {
      memory: await first.memory(),
      objects: await first.objects(),
      holds: await this.#store.holds(),
    }
    this.#forgetWarmUp()

    this.#openConnections()
    this.#say('load begins')
    const sampling = new AbortController()
    const sampled = this.#sample(loadMs, sampling.signal)
    await Promise.all([this.#load(loadMs), this.#restartParts(loadMs)])
    sampling.abort()
    await sampled
    this.#say('load is over')
    await this.#endVisits()
    const settledMs = await this.#settle()
    return await this.#record(loadMs, before, settledMs)
  }

  /** Makes visits at the rate, whatever becomes of those before. */
  async #load(forMs: number): Promise<void> {
    const everyMs = 1000 / this.#options.rate
    const endsAt = performance.now() + forMs
    for (let dueAt = performance.now(), number = 0; dueAt < endsAt; dueAt += everyMs, number++) {
      await pause(Math.max(0, dueAt - performance.now()))
      if (this.#open.size >= mostVisits) {
        this.#leftOut++
        continue
      }
      const kind = drawn[randomInt(drawn.length)] as Kind
      const visit = this.#visit(kind, protocols[number % protocols.length] as Protocol, number)
      this.#open.add(visit)
      void visit.finally(() => this.#open.delete(visit))
    }
  }

  async #visit(kind: Kind, protocol: Protocol, number: number): Promise<void> {
    const { name } = kind
    const counts = this.#visits.get(name) ?? { made: 0, disturbed: 0 }
    this.#visits.set(name, counts)
    counts.made++
    const from = this.#now()
    try {
      await makeVisit(kind, {
        protocol,
        doors: this.#doors,
        wallet: this.#wallets[number % walletCount] as Wallet,
        took: (timed, startedAt, ms) => {
          this.#times.push({ kind: timed, protocol, at: startedAt - this.#beganAt, value: ms })
        },
      })
    } catch (error) {
      counts.disturbed++
      const reason = error instanceof CallFailed ? error.reason : 'failed'
      const message = error instanceof Error ? error.message : String(error)
      this.#failures.push({ from, to: this.#now(), what: `${name} over ${protocol}`, reason, message })
    }
  }

  /** Restarts Redis, and later the last instance. */
  async #restartParts(loadMs: number): Promise<void> {
    const { restart } = this.#store
    if (restart !== undefined) {
      await pause(redisRestartsAt * loadMs - this.#now())
      const from = this.#now()
      this.#say('Redis restarts')
      await restart()
      this.#say('Redis is back')
      this.#windows.push({ name: 'Redis restarts', from, to: this.#now() + echoMs.redis, allows: storeAway })
    }
    await pause(instanceRestartsAt * loadMs - this.#now())
    const index = this.#instances.length - 1
    const instance = this.#instances[index] as Instance
    const door = this.#doors[index] as Door
    // As a load balancer that is told by /readyz.
    door.inService = false
    const from = this.#now()
    this.#say(`${instance.name} stops`)
    const code = await instance.stop()
    if (code !== 0) this.#findings.push(`${instance.name} ended with ${code ?? 'SIGKILL'} after SIGTERM`)
    await pause(awayMs)
    await instance.start()
    this.#say(`${instance.name} is back`)
    // With another instance nobody notices. Alone, it is away.
    const allows = this.#instances.length > 1 ? [] : ['cut', 'SERVER_BUSY', 'event missing']
    const name = `${instance.name} restarts`
    this.#windows.push({ name, from, to: this.#now() + echoMs.instance, allows })
    this.#processes.push({ name: `${instance.name}, restarted`, from: this.#now(), samples: [] })
    door.inService = true
  }

  /** Notes the memory of all instances in turn. */
  async #sample(loadMs: number, signal: AbortSignal): Promise<void> {
    const everyMs = Math.max(2000, loadMs / 120)
    while (!signal.aborted) {
      for (const [index, instance] of this.#instances.entries()) {
        // Its successor answers before it is ready, and is not the process that was sampled until then.
        if (this.#doors[index]?.inService !== true) continue
        try {
          const memory = await instance.memory()
          this.#processOf(instance).samples.push({ at: this.#now(), ...memory })
        } catch {
          // It has ended since.
        }
      }
      await pause(everyMs, undefined, { signal }).catch(() => {})
    }
  }

  #processOf({ name }: Instance) {
    const found = this.#processes.findLast((process) => process.name.split(',')[0] === name)
    if (found === undefined) throw new Error(`nobody knows ${name}`)
    return found
  }

  /** Waits for the visits that are left, and ends all connections of clients. */
  async #endVisits(): Promise<void> {
    const given = new AbortController()
    const late = pause(visitsEndMs, 'late', { signal: given.signal }).catch(() => {})
    if ((await Promise.race([Promise.all(this.#open), late])) === 'late') {
      this.#findings.push(`${this.#open.size} visits did not end`)
    }
    given.abort()
    for (const { clients } of this.#doors) clients[Symbol.dispose]()
  }

  #openConnections(): void {
    for (const [index, { url, port }] of this.#instances.entries()) {
      this.#doors[index] = { port, clients: new Clients(url), inService: true }
    }
  }

  #say(text: string): void {
    this.#options.say(`${this.#plan.title}: ${text}`)
  }

  /** Waits until nothing is held for clients any more, and says how long that took; gives up after a while. */
  async #settle(ignored: (gauge: string) => boolean = () => false): Promise<number> {
    const startedAt = performance.now()
    const since = (): number => performance.now() - startedAt
    while (since() < settleMs) {
      const gauges = await Promise.all(this.#instances.map((instance) => instance.gauges()))
      const { 'Redis sharded channels': channels = 0 } = await this.#store.holds()
      if (channels === 0 && gauges.every((held) => isEmpty(held, ignored))) break
      await pause(1000)
    }
    this.#say(`settled after ${seconds(since())}`)
    // Sockets that were closed a moment ago, and what a sweep of SQLite comes to every five seconds.
    await pause(6000)
    return since()
  }

  #forgetWarmUp(): void {
    this.#times.length = 0
    this.#visits.clear()
    this.#beganAt = performance.now()
    // What failed without a restart stays a failure.
    for (const failure of this.#failures) Object.assign(failure, { from: 0, to: 0 })
  }

  async #record(loadMs: number, before: ScenarioRecord['before'], settledMs: number): Promise<ScenarioRecord> {
    const secondHalfFrom = secondHalfAt * loadMs
    const holds = await this.#store.holds()
    // Before instances say what they count: orders end meanwhile.
    const { keys, findings: storeFindings } = await this.#store.state()
    const idles = new Map<object, NonNullable<ProcessRecord['idle']>>()
    for (const instance of this.#instances) {
      const objects = await instance.objects()
      const memory = await instance.memory()
      // Last, because the connection that asks for them is still closing when they are there.
      idles.set(this.#processOf(instance), { memory, objects, gauges: await instance.gauges() })
    }
    const processes = this.#processes.map((process) => {
      const idle = idles.get(process)
      return { ...process, ...(idle === undefined ? {} : { idle }) }
    })
    const orders = keys.find(({ kind }) => kind === 'order')?.count ?? 0
    const lines = this.#lines.map((line) => ({ ...line, at: line.at - this.#beganAt }))
    const findings = [
      ...this.#findings,
      ...(this.#leftOut === 0 ? [] : [`${this.#leftOut} visits were left out, because ${mostVisits} were under way`]),
      ...failureFindings(this.#failures, this.#windows),
      ...processes.flatMap(({ name, from, samples, idle }) => {
        if (idle === undefined) return []
        const start = Math.max(secondHalfFrom, from + (from === 0 ? 0 : youthMs))
        const heap = samples.filter(({ at }) => at >= start).map(({ at, heapUsed: value }) => ({ at, value }))
        return [
          ...heapFindings(name, heap),
          ...objectFindings(name, before.objects, idle.objects),
          ...gaugeFindings(name, idle.gauges),
        ]
      }),
      ...this.#orderFindings(processes, orders),
      ...Object.entries(holds).flatMap(([what, count]) =>
        count <= (before.holds[what] ?? 0) ? [] : [`${count} ${what}, of ${before.holds[what] ?? 0} before the load`],
      ),
      ...storeFindings,
      ...logFindings(lines, this.#windows, expectedLog),
    ]
    const counted = Map.groupBy(lines, ({ level, text, fields }) =>
      [level, text, fields.reason].filter((part) => part !== undefined).join(', '),
    )
    return {
      title: this.#plan.title,
      id: this.#plan.id,
      loadMs,
      secondHalfFrom,
      times: this.#times,
      visits: Object.fromEntries(this.#visits),
      failures: this.#failures,
      windows: this.#windows,
      processes,
      before,
      after: { holds, keys, settledMs },
      logCounts: Object.fromEntries([...counted].map(([line, all]) => [line, all.length])),
      findings: findings.map((finding) => `${this.#plan.title}: ${finding}`),
    }
  }

  /**
   * An order that a process counts is in the store. One that ends before its time is forgotten earlier by at most its
   * life, and stays counted so long; half of that more is for chance.
   */
  #orderFindings(processes: readonly ProcessRecord[], orders: number): Finding[] {
    const counted = processes.reduce((sum, { idle }) => sum + (idle?.gauges.orders ?? 0), 0)
    const most = orders * (1 + (1.5 * orderLifeSeconds) / orderMemorySeconds)
    return counted <= most ? [] : [`${counted} orders are counted, and ${orders} are in the store`]
  }

  /** Time since the load began, ms. */
  #now(): number {
    return performance.now() - this.#beganAt
  }
}

/** Whether a server holds nothing for clients, apart from what is ignored. */
function isEmpty(gauges: Gauges, ignored: (gauge: string) => boolean): boolean {
  return gaugeFindings('', Object.fromEntries(Object.entries(gauges).filter(([gauge]) => !ignored(gauge)))).length === 0
}
