import { setTimeout as pause } from 'node:timers/promises'
import { type Times, timesOf } from '../harness.ts'
import { arrivals, merged, randomOf } from './arrivals.ts'
import { type Day, paceAt } from './day.ts'
import type { People, Person } from './people.ts'

/** What users begin; whether a sign-in is their first shows only then. */
const kinds = ['sign-in', 'order', 'session check', 'sign-out', 'unused nonce', 'unused order'] as const

/** One of them. */
export type Kind = (typeof kinds)[number]

/** What became of the events of a kind. */
export interface Outcome {
  readonly kind: Kind
  readonly done: number
  readonly failed: number
  /** Time from when each was due; without the time that people take themselves. Absent if there was none. */
  readonly times: Times | undefined
}

/** What a replay came to. */
export interface Replayed {
  readonly outcomes: readonly Outcome[]
  /** Messages of failures, each once. */
  readonly failures: readonly string[]
  /** Events that began more than 50 ms after they were due, because this process was busy. */
  readonly late: number
}

/** What is replayed. */
export interface ReplayOptions {
  readonly day: Day
  readonly population: number
  readonly seconds: number
  readonly seed: number
}

/** How late an event may begin, in ms. */
const lateMs = 50

/**
 * Replays a day: `population` users do in `seconds` what they do in a day. Each event begins when it is due, however many are in
 * progress. Resolves once the time is over; what waits for people then is dropped.
 */
export async function replay(people: People, { day, population, seconds, seed }: ReplayOptions): Promise<Replayed> {
  const random = randomOf(seed)
  const crowd = new Crowd(people, population, day, random)
  const options = { pace: (share: number) => paceAt(day, share), mostPace: day.peakFactor, random }
  const due = merged(
    new Map(kinds.map((kind) => [kind, arrivals((population * day.perUser[kind]) / seconds, seconds, options)])),
  )
  const times = new Map<Kind, number[]>(kinds.map((kind) => [kind, []]))
  const failed = new Map<Kind, number>()
  const failures = new Set<string>()
  let late = 0
  let running = 0
  const startedAt = performance.now()
  const begin = async (kind: Kind, dueAt: number): Promise<void> => {
    running++
    try {
      const waited = await crowd.act(kind)
      times.get(kind)?.push(performance.now() - dueAt - waited)
    } catch (error) {
      if (crowd.over) return
      failed.set(kind, (failed.get(kind) ?? 0) + 1)
      failures.add(String(error))
    } finally {
      running--
    }
  }
  for (const { kind, at } of due) {
    const dueAt = startedAt + at
    while (performance.now() < dueAt) await pause(Math.max(1, dueAt - performance.now()))
    if (performance.now() - dueAt > lateMs) late++
    void begin(kind, dueAt)
  }
  await pause(Math.max(0, startedAt + seconds * 1000 - performance.now()))
  // What was due last is still under way. Orders are not waited for: people take longer.
  for (let waits = 0; running > crowd.waiting && waits < 100; waits++) await pause(20)
  const outcomes = kinds.map((kind) => {
    const taken = times.get(kind) ?? []
    return {
      kind,
      done: taken.length,
      failed: failed.get(kind) ?? 0,
      times: taken.length === 0 ? undefined : timesOf(taken),
    }
  })
  crowd.leave()
  return { outcomes, failures: [...failures], late }
}

/** The users, and the sessions that they have. */
class Crowd {
  /** Whether all have left. */
  over = false
  /** How many wait for somebody to look at the phone. */
  waiting = 0
  readonly #people: People
  readonly #day: Day
  readonly #random: () => number
  /** Sparse: somebody is there from the first sign-in. */
  readonly #persons: (Person | undefined)[]
  /** Those who have signed in. */
  readonly #known: Person[] = []
  readonly #sessions: LiveSession[] = []
  readonly #leaving = new AbortController()

  constructor(people: People, population: number, day: Day, random: () => number) {
    this.#people = people
    this.#day = day
    this.#random = random
    this.#persons = new Array(population)
  }

  /** Does a thing, and resolves with the time in ms that people took themselves. */
  async act(kind: Kind): Promise<number> {
    switch (kind) {
      case 'sign-in': {
        const number = Math.floor(this.#random() * this.#persons.length)
        const known = this.#persons[number]
        const person = known ?? this.#people.arrive()
        this.#persons[number] = person
        this.#sessions.push({ person, token: await this.#people.signIn(person), checks: 0 })
        if (known === undefined) this.#known.push(person)
        return 0
      }
      case 'order': {
        const person = this.#known[this.#indexIn(this.#known)]
        if (person === undefined) return 0
        const order = await this.#people.startOrder(person)
        using _watch = order.watch
        const waitedAt = performance.now()
        await this.#wait(this.#day.orderSeconds)
        const waited = performance.now() - waitedAt
        this.#sessions.push({ person, token: await this.#people.finishOrder(person, order), checks: 0 })
        return waited
      }
      case 'session check': {
        const session = this.#sessions[this.#indexIn(this.#sessions)]
        if (session === undefined) return 0
        session.checks++
        try {
          await this.#people.check(session.person, session.token)
        } finally {
          session.checks--
        }
        return 0
      }
      case 'sign-out': {
        const session = this.#takeSession()
        if (session !== undefined) await this.#people.signOut(session.person, session.token)
        return 0
      }
      case 'unused nonce':
        await this.#people.leaveNonce(this.#people.arrive())
        return 0
      case 'unused order': {
        const order = await this.#people.startOrder(this.#people.arrive())
        using _watch = order.watch
        const waitedAt = performance.now()
        await this.#wait(this.#day.unusedOrderSeconds)
        return performance.now() - waitedAt
      }
    }
  }

  /** Ends all waits. */
  leave(): void {
    this.over = true
    this.#leaving.abort()
  }

  async #wait(seconds: number): Promise<void> {
    this.waiting++
    try {
      await pause(seconds * 1000, undefined, { signal: this.#leaving.signal })
    } finally {
      this.waiting--
    }
  }

  /** Takes a session that nobody checks at the moment: that check would fail. */
  #takeSession(): LiveSession | undefined {
    for (let triesLeft = 10; triesLeft > 0; triesLeft--) {
      const index = this.#indexIn(this.#sessions)
      if (this.#sessions[index]?.checks !== 0) continue
      const taken = this.#sessions[index]
      const last = this.#sessions.pop() as LiveSession
      if (last !== taken) this.#sessions[index] = last
      return taken
    }
    return undefined
  }

  #indexIn(all: readonly unknown[]): number {
    return Math.floor(this.#random() * all.length)
  }
}

/** A session that has not been signed out of. */
interface LiveSession {
  readonly person: Person
  readonly token: string
  /** Checks of it that are under way. */
  checks: number
}
