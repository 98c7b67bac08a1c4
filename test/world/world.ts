import { AsyncLocalStorage } from 'node:async_hooks'
import { CountersignError } from '../../src/shared/errors.ts'
import type { ScannedValue, Store } from '../../src/store/store.ts'
import { simulate } from './globals.ts'
import { mixed, Random } from './random.ts'
import { MapStore, type OnWrite, type Step } from './store.ts'

/** How a call of an actor ended. `lost`: without an answer, so it may or may not have happened. */
export type Outcome<Value> =
  | { readonly kind: 'answered'; readonly value: Value }
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string }
  | { readonly kind: 'lost' }

/** Something that makes calls. It has one in progress at most, beside its watches. */
export interface Actor {
  readonly name: string
  /** Begins a call, by {@link World.call}. May do nothing. */
  act(random: Random): unknown
}

/** An actor that makes calls again that got no answer, as the documented client does. */
export abstract class RetryingActor implements Actor {
  readonly name: string
  /** Calls without an answer that are to be made again. */
  readonly #again: ((random: Random) => void)[] = []

  constructor(name: string, world: World) {
    this.name = name
    world.add(this)
  }

  act(random: Random): unknown {
    // Some come back late, or never.
    if (random.permille(900) && this.retry(random)) return
    this.begin(random)
  }

  /** Makes a call again that got no answer. Returns false if there is none. */
  retry(random: Random): boolean {
    const again = this.#again.pop()
    again?.(random)
    return again !== undefined
  }

  /** Makes a call later, unless the world ends before. */
  later(again: (random: Random) => void): void {
    this.#again.push(again)
  }

  /** Makes a call of its own choice. */
  protected abstract begin(random: Random): unknown
}

/** What came of the steps of a world. */
export interface Played {
  /** Absent if all was as it must be. */
  readonly violation?: string
  readonly history: readonly string[]
  /** Numbers of the steps that were made. */
  readonly numbers: readonly number[]
  readonly actors: readonly string[]
  readonly storeCalls: number
}

/** What a call is, beside its words. */
interface CallOptions {
  /** Whether it lasts while its actor makes other calls. */
  readonly isWatch?: boolean
  /** What it is about, for {@link World.current}. */
  readonly subject?: string
}

/** A call of an actor at an instance, while it runs. */
interface Task {
  readonly actor: Actor
  readonly words: string
  readonly instance: Instance
  readonly isWatch: boolean
  readonly subject: string
  /** When it began. */
  readonly since: number
  /** What the call is known by, whatever happened before: its actor, and how many the actor had made. */
  readonly key: number
  readonly finish: (outcome: Outcome<unknown>) => void
  steps: number
  waiting: number
  /** Its steps wait until then, while others are done. */
  slowUntil: number
  /** Its process has stopped: what it still does does not reach the store. */
  isGone: boolean
  outcome?: Outcome<unknown>
}

/** A step at the store that waits to be done, or for its answer to arrive. */
interface Waiting {
  readonly task: Task
  readonly key: number
  readonly step: Step
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  /** When it was sent. */
  readonly since: number
  /** There once the step is done: its answer is on the way. */
  answer?: { readonly value: unknown }
  /** The key whose watchers the process wakes once it has the answer. */
  wakes?: string
}

interface Watcher {
  readonly task: Task
  readonly key: string
  readonly number: number
  readonly onWake: () => void
}

/** A wake-up on its way. */
interface Wake {
  readonly watcher: Watcher
  /** The process that sends it, if it is not the store: a crash of that process loses it. */
  readonly from?: Instance
}

/** A process on the store. It may stop between any two steps, and starts again. */
export interface Instance {
  readonly name: string
  readonly index: number
  /** Difference of its clock to the store's, in ms. */
  offsetMs: number
}

/** How often faults happen, each in so many of 1,000 steps. */
export interface Faults {
  readonly lostBefore: number
  readonly lostAfter: number
  readonly lateAnswer: number
  readonly lostWake: number
  readonly doubleWake: number
  readonly crash: number
  readonly clockJump: number
  readonly leap: number
  /** A call stands still for a while. */
  readonly slow: number
}

export const noFaults: Faults = {
  lostBefore: 0,
  lostAfter: 0,
  lateAnswer: 0,
  lostWake: 0,
  doubleWake: 0,
  crash: 0,
  clockJump: 0,
  leap: 0,
  slow: 0,
}

/** The largest number that a {@link Random} makes. */
const largest = 2 ** 32 - 1

/** A number that decides as another one, but lets no fault happen in its step. */
export function calm(number: number): number {
  return number > largest ? number : number + largest + 1
}

/** What the world does not allow has happened. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

/** When a simulated world begins, in epoch milliseconds. */
const worldBegins = Date.UTC(2026, 0, 1)

/**
 * Difference in ms of an instance's clock to the store's with which the store still answers: `src/store/clock.ts` lets
 * calls fail beyond it.
 */
export const maxOffsetMs = 1000

/** Time in ms after which a step at the store counts as lost. */
const stepLimitMs = 5000

/** Longest time in ms for which a call stands still: some fifty steps of the scheduler. */
const slowLimitMs = 3000

/** Longest time in ms in which each call that runs waits at the store or ends: a signature is made on other threads. */
const turnsLimitMs = 20_000

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * A store behind a scheduler, and processes on it. Each step of the scheduler has a number of its own that decides what
 * it does; nothing else does. It decides only when each call that runs waits at the store or has ended, and chooses by
 * actor and number, never by arrival. So the same numbers lead to the same history; and without some of them, to
 * one that is similar.
 */
export class World {
  readonly store: MapStore
  readonly history: string[] = []
  faults: Faults
  /**
   * Whether the store is of the kind whose wake-ups a process sends once it has the answer to its step, so that a crash
   * between the two loses them. Otherwise they are part of the step.
   */
  readonly wakesAfterStep: boolean
  /** Steps at the store so far. */
  storeCalls = 0
  now = worldBegins
  /** Times at which something ends, to which time may leap. */
  deadlines: () => readonly number[] = () => []
  /** Names of actors that begin no call. */
  idle: ReadonlySet<string> = new Set()
  readonly #actors: Actor[] = []
  readonly #calls = new Map<Actor, number>()
  readonly #busy = new Set<Actor>()
  readonly #inside = new AsyncLocalStorage<Task>()
  readonly #running = new Set<Task>()
  readonly #instances: { readonly instance: Instance; readonly restart: () => void }[] = []
  #waiting: Waiting[] = []
  #watchers: Watcher[] = []
  #wakes: Wake[] = []
  #timers: { readonly at: number; readonly task: Task; readonly callback: () => void }[] = []
  #watcherCount = 0
  #hasFired = false
  #random: Random
  readonly #restoreGlobals: () => void

  constructor(seed: number, faults: Faults, onWrite: OnWrite) {
    this.faults = faults
    this.#random = new Random(seed)
    this.store = new MapStore(() => this.now, onWrite)
    this.wakesAfterStep = new Random(seed ^ 0x3a4e).permille(500)
    this.store.onWake = (key) => this.#sendWakes(key)
    const inside = this.#inside
    this.#restoreGlobals = simulate({
      isInside: () => inside.getStore() !== undefined,
      now: () => this.now - worldBegins,
      date: () => this.now + (inside.getStore()?.instance.offsetMs ?? 0),
      startTimer: (callback, ms) => this.#startTimer(callback, ms),
      random: this.#random,
    })
  }

  /** Restores the process's clock, timers and random numbers. */
  end(): void {
    for (const task of this.#running) task.isGone = true
    this.#restoreGlobals()
  }

  add(actor: Actor): void {
    this.#actors.push(actor)
  }

  get actors(): readonly Actor[] {
    return this.#actors
  }

  /** Adds a process. `restart` is called after each crash. */
  addInstance(name: string, restart: () => void): Instance {
    const instance = { name, index: this.#instances.length, offsetMs: 0 }
    this.#instances.push({ instance, restart })
    return instance
  }

  /** A handle of the store, for a process. */
  handle(instance: Instance): Store {
    const step =
      (operation: Step['operation']) =>
      // biome-ignore lint/suspicious/noExplicitAny: each operation has its own.
      (...args: readonly any[]): Promise<any> =>
        this.#arrive({ operation, args })
    const scan = step('scan')
    return {
      description: 'a simulated store',
      shared: true,
      now: () => this.now + instance.offsetMs,
      get: step('get'),
      create: step('create'),
      take: step('take'),
      compareAndSet: step('compareAndSet'),
      addMember: step('addMember'),
      removeMember: step('removeMember'),
      members: step('members'),
      watch: async (key, onWake) => this.#watch(key, onWake),
      async *scan(beginning): AsyncGenerator<ScannedValue> {
        yield* (await scan(beginning)) as ScannedValue[]
      },
      ping: async () => {},
      close: async () => {},
    }
  }

  /** Whether a call about this is in progress. */
  isRunning(subject: string): boolean {
    return [...this.#running].some((task) => task.subject === subject)
  }

  /** Whether an actor waits for a call, other than a watch. */
  isBusy(actor: Actor): boolean {
    return this.#busy.has(actor)
  }

  /**
   * Makes a call. `finish` is called once, when it has ended or the instance has crashed, and may make the next call.
   */
  call<Value>(
    actor: Actor,
    words: string,
    instance: Instance,
    run: () => Promise<Value>,
    finish: (outcome: Outcome<Value>) => void,
    { isWatch = false, subject = '' }: CallOptions = {},
  ): void {
    const number = (this.#calls.get(actor) ?? 0) + 1
    this.#calls.set(actor, number)
    const task: Task = {
      actor,
      words,
      instance,
      isWatch,
      subject,
      since: this.now,
      key: mixed(this.#actors.indexOf(actor) + 1, number),
      finish: finish as Task['finish'],
      steps: 0,
      waiting: 0,
      slowUntil: 0,
      isGone: false,
    }
    if (!isWatch) this.#busy.add(actor)
    this.#running.add(task)
    this.#log(`${actor.name} ${words}, at ${instance.name}`)
    const settle = (outcome: Outcome<unknown>): void => {
      task.outcome ??= outcome
    }
    this.#inside.run(task, () => {
      run().then(
        (value) => settle({ kind: 'answered', value }),
        (error: unknown) => {
          if (error instanceof CountersignError) {
            const { reason, message } = error
            settle(reason === 'STORE_UNAVAILABLE' ? { kind: 'lost' } : { kind: 'refused', reason, message })
          } else if (error instanceof Error && error.name === 'AdministrationError') {
            settle({ kind: 'refused', reason: error.name, message: error.message })
          } else
            settle({
              kind: 'refused',
              reason: 'INTERNAL',
              message: String(error instanceof Error ? error.stack : error),
            })
        },
      )
    })
  }

  /** Plays to its end. `body` makes actors, calls `steps`, which makes the steps that the numbers decide, and goes on. */
  async play(numbers: readonly number[], body: (steps: () => Promise<void>) => Promise<void>): Promise<Played> {
    let done = 0
    const steps = async (): Promise<void> => {
      await this.#settle()
      for (const number of numbers) {
        done++
        this.#step(new Random(number), number, number > largest ? noFaults : this.faults)
        await this.#settle()
      }
      await this.drain()
    }
    let violation: string | undefined
    try {
      await body(steps)
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      violation = error.message
    } finally {
      this.end()
    }
    return {
      ...(violation === undefined ? {} : { violation }),
      history: this.history,
      numbers: numbers.slice(0, done),
      actors: this.actors.map(({ name }) => name),
      storeCalls: this.storeCalls,
    }
  }

  /** Answers all that waits, without faults, until no call but watches is in progress. */
  async drain(): Promise<void> {
    this.faults = noFaults
    await this.#settle()
    for (let steps = 0; this.#waiting.length > 0 || this.#wakes.length > 0; steps++) {
      if (steps > 20_000) throw new Violation(`calls go on for ever: ${[...this.#running].map(({ words }) => words)}`)
      for (const { watcher } of this.#wakes.splice(0)) this.#wake(watcher)
      const next = this.#waiting[0]
      if (next !== undefined) this.#release(next, new Random(0), noFaults)
      await this.#settle()
    }
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    this.#advance(ms)
    await this.#settle()
  }

  /** What the watches in progress are about. */
  get watched(): readonly string[] {
    return [...this.#running].filter(({ isWatch }) => isWatch).map(({ subject }) => subject)
  }

  note(text: string): void {
    this.#log(text)
  }

  #step(random: Random, number: number, faults: Faults): unknown {
    this.#advance(random.permille(40) ? random.below(2000) : random.below(8))
    this.#timeOut(random)
    if (random.permille(faults.crash)) return this.crash(random)
    if (random.permille(faults.clockJump)) return this.#jump(random)
    if (random.permille(faults.leap)) {
      const after = this.deadlines().filter((deadline) => deadline > this.now)
      const isToEnd = after.length > 0 && random.permille(800)
      // To a moment shortly before or after something ends; some longer.
      const until = isToEnd ? random.pick(after) - this.now : random.pick([5_000, 61_000, 600_000, 86_400_000])
      const ms = Math.max(0, until + random.below(20_000) - 3000)
      this.#log(`${ms / 1000} s pass`)
      this.#advance(ms)
      return this.#timeOut(random)
    }
    const idle = this.#actors.filter((actor) => !this.#busy.has(actor) && !this.idle.has(actor.name))
    if (this.#wakes.length > 0 && random.permille(300)) {
      const index = random.below(this.#wakes.length)
      const [{ watcher }] = this.#wakes.splice(index, 1) as [Wake]
      if (random.permille(faults.lostWake)) return this.#log(`a wake-up of ${watcher.task.actor.name} is lost`)
      if (random.permille(faults.doubleWake)) this.#wakes.push({ watcher })
      return this.#wake(watcher)
    }
    const ready = this.#waiting.filter(({ task }) => task.slowUntil <= this.now)
    if (ready.length > 0 && (idle.length === 0 || !random.permille(250))) {
      return this.#release(nearest(ready, number), random, faults)
    }
    if (idle.length > 0)
      nearest(
        idle.map((actor) => ({ actor, key: this.#actors.indexOf(actor) })),
        number,
      ).actor.act(random)
  }

  /** Ends all calls of a process, of which each step that waits may have been done. */
  crash(random: Random, which = random.pick(this.#instances)): void {
    const { instance, restart } = which
    this.#log(`${instance.name} crashes`)
    const [gone, left] = [this.#waiting, [] as Waiting[]]
    for (const one of gone) {
      if (one.task.instance !== instance) left.push(one)
      else if (one.answer === undefined && random.permille(500)) this.#do(one)
    }
    this.#waiting = left
    this.#watchers = this.#watchers.filter(({ task }) => task.instance !== instance)
    this.#wakes = this.#wakes.filter(({ watcher, from }) => watcher.task.instance !== instance && from !== instance)
    this.#timers = this.#timers.filter(({ task }) => task.instance !== instance)
    for (const task of this.#running) {
      if (task.instance !== instance) continue
      task.isGone = true
      task.outcome = { kind: 'lost' }
      task.waiting = 0
    }
    restart()
  }

  /** Crashes all processes at once. */
  crashAll(random: Random): void {
    for (const one of this.#instances) this.crash(random, one)
  }

  /** Ends the steps that have waited for longer than stores let them, of which each may have happened in time. */
  #timeOut(random: Random): void {
    const late = this.#waiting.filter(({ since }) => this.now - since > stepLimitMs)
    if (late.length === 0) return
    const now = this.now
    for (const one of late) {
      this.now = one.since
      if (one.answer === undefined && random.permille(500)) this.#do(one)
      this.#leave(one)
      one.reject(unavailable())
    }
    this.now = now
  }

  #jump(random: Random): void {
    const { instance } = random.pick(this.#instances)
    const most = random.permille(300) ? maxOffsetMs : 5
    instance.offsetMs = random.below(2 * most + 1) - most
    this.#log(`the clock of ${instance.name} is off by ${instance.offsetMs} ms`)
  }

  #arrive(step: Step): Promise<unknown> {
    const task = this.#inside.getStore()
    if (task === undefined || task.isGone) return new Promise(() => {})
    const key = mixed(task.key, ++task.steps)
    task.waiting++
    return new Promise((resolve, reject) => this.#waiting.push({ task, key, step, since: this.now, resolve, reject }))
  }

  #release(one: Waiting, random: Random, faults: Faults): unknown {
    const words = `${one.task.actor.name} ${one.task.words}: ${stepWords(one.step)}`
    if (one.answer !== undefined) {
      this.#log(`${words} → the answer arrives`)
      return this.#answer(one, one.answer.value)
    }
    if (random.permille(faults.lostBefore)) {
      this.#log(`${words} → lost before it happened`)
      this.#leave(one)
      return one.reject(unavailable())
    }
    const isLost = random.permille(faults.lostAfter)
    const isLate = random.permille(faults.lateAnswer)
    // Asked last, and only if it can be: the other choices of a step are the same without it.
    const isSlow = faults.slow > 0 && random.permille(faults.slow)
    if (isSlow) one.task.slowUntil = this.now + random.below(slowLimitMs)
    const outcome = isLost ? 'lost after it happened' : isLate ? 'happens' : 'answered'
    this.#log(`${words} → ${outcome}${isSlow ? ', and the call stands still' : ''}`)
    const value = this.#do(one)
    if (isLost) {
      this.#leave(one)
      return one.reject(unavailable())
    }
    if (isLate) one.answer = { value }
    else this.#answer(one, value)
  }

  #do(one: Waiting): unknown {
    this.storeCalls++
    this.current = one.task
    if (this.wakesAfterStep) {
      this.store.onWake = (key) => {
        one.wakes = key
      }
    }
    const value = this.store.do(one.step)
    this.current = undefined
    return value
  }

  #sendWakes(key: string, from?: Instance): void {
    for (const watcher of this.#watchers) if (watcher.key === key) this.#wakes.push({ watcher, ...(from && { from }) })
  }

  /** The call whose step is being done. */
  current: Pick<Task, 'actor' | 'words' | 'subject' | 'since'> | undefined

  #answer(one: Waiting, value: unknown): void {
    this.#leave(one)
    if (one.wakes !== undefined) this.#sendWakes(one.wakes, one.task.instance)
    one.resolve(value)
  }

  #leave(one: Waiting): void {
    one.task.waiting--
    this.#waiting.splice(this.#waiting.indexOf(one), 1)
  }

  async #watch(key: string, onWake: () => void): Promise<() => void> {
    await this.#arrive({ operation: 'get', args: [key] })
    const task = this.#inside.getStore() as Task
    const watcher = { task, key, number: this.#watcherCount++, onWake }
    this.#watchers.push(watcher)
    return () => {
      this.#watchers = this.#watchers.filter((each) => each !== watcher)
      this.#wakes = this.#wakes.filter((each) => each.watcher !== watcher)
    }
  }

  #wake({ task, onWake }: Watcher): void {
    this.#log(`${task.actor.name} is woken`)
    onWake()
  }

  #startTimer(callback: () => void, ms: number): () => void {
    const task = this.#inside.getStore() as Task
    const timer = { at: this.now + ms, task, callback }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer)
    }
  }

  #advance(ms: number): void {
    this.now += ms
    const due = this.#timers.filter(({ at }) => at <= this.now).sort((one, other) => one.at - other.at)
    this.#timers = this.#timers.filter(({ at }) => at > this.now)
    for (const { callback } of due) callback()
    // They go on in a later turn.
    this.#hasFired = due.length > 0
  }

  /** Waits until each call that runs waits at the store or has ended, and lets the actors of those go on. */
  async #settle(): Promise<void> {
    const endsAt = performance.now() + turnsLimitMs
    for (;;) {
      await turn()
      const over = [...this.#running].filter(({ outcome }) => outcome !== undefined)
      for (const task of over) {
        this.#running.delete(task)
        if (!task.isWatch) this.#busy.delete(task.actor)
        const outcome = task.outcome as Outcome<unknown>
        this.#log(`${task.actor.name} ${task.words} → ${outcomeWords(outcome)}`)
        if (outcome.kind === 'refused' && outcome.reason === 'INTERNAL')
          throw new Violation(`INTERNAL: ${outcome.message}`)
        task.finish(outcome)
      }
      const isMoving = [...this.#running].some(({ isWatch, waiting }) => !isWatch && waiting === 0)
      if (over.length === 0 && !isMoving && !this.#hasFired) return
      this.#hasFired = false
      if (performance.now() > endsAt) throw new Error('a call neither waits at the store nor ends')
    }
  }

  #log(text: string): void {
    this.history.push(`${((this.now - worldBegins) / 1000).toFixed(3)} ${text}`)
  }
}

function unavailable(): CountersignError {
  return new CountersignError('STORE_UNAVAILABLE', 'The store does not answer; try again shortly')
}

/** The one of these that a number chooses: mostly the same if others are missing. */
function nearest<Item extends { readonly key: number }>(items: readonly Item[], number: number): Item {
  let [best, least] = [items[0] as Item, Number.POSITIVE_INFINITY]
  for (const item of items) {
    const distance = mixed(number, item.key)
    if (distance < least) [best, least] = [item, distance]
  }
  return best
}

function stepWords({ operation, args }: Step): string {
  return `${operation} ${String(args[0]).split(':')[0]}`
}

function outcomeWords(outcome: Outcome<unknown>): string {
  if (outcome.kind === 'refused') return `refused, ${outcome.reason}`
  return outcome.kind === 'lost' ? 'lost' : 'answered'
}
