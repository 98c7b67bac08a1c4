import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { performance } from 'node:perf_hooks'
import { randomText } from '../../src/base/token.ts'
import type { Random } from './random.ts'

/** What takes the place of the process's clock, timers and random numbers inside of simulated calls. */
export interface Simulated {
  /** Whether the code that runs is part of a simulated call. */
  isInside(): boolean
  /** Milliseconds. */
  now(): number
  /** The time of day of the process, in epoch milliseconds. */
  date(): number
  /** Returns what ends the timer. */
  startTimer(callback: () => void, ms: number): () => void
  readonly random: Random
}

/** Puts simulated clock, timers and random numbers in force for simulated calls. Returns what restores the real ones. */
export function simulate({ isInside, now, date, startTimer, random }: Simulated): () => void {
  const fill = <Bytes extends NodeJS.ArrayBufferView>(bytes: Bytes): Bytes => {
    random.fill(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    return bytes
  }
  const below = (low: number, high?: number): number =>
    high === undefined ? random.below(low) : low + random.below(high - low)
  const restores = [
    replace(performance, 'now', (real) => () => (isInside() ? now() : real())),
    replaceDate(() => (isInside() ? date() : undefined)),
    replace(
      crypto,
      'randomFillSync',
      (real) => (bytes: NodeJS.ArrayBufferView) => (isInside() ? fill(bytes) : real(bytes)),
    ),
    replace(
      crypto,
      'randomInt',
      (real) => (low: number, high?: number) => (isInside() ? below(low, high) : real(low, high)),
    ),
    replace(
      globalThis.crypto,
      'getRandomValues',
      (real) => (bytes: Uint8Array) => (isInside() ? fill(bytes) : real(bytes)),
    ),
    replace(
      globalThis,
      'setTimeout',
      (real) =>
        (callback: () => void, ms: number, ...args: unknown[]) =>
          isInside() ? timerOf(startTimer(callback, ms)) : real(callback, ms, ...args),
    ),
    replace(
      globalThis,
      'setInterval',
      (real) =>
        (callback: () => void, ms: number, ...args: unknown[]) =>
          isInside() ? timerOf(() => {}) : real(callback, ms, ...args),
    ),
    replace(
      globalThis,
      'clearTimeout',
      (real) => (timer: unknown) => (timer instanceof SimulatedTimer ? timer.end() : real(timer)),
    ),
  ]
  syncBuiltinESMExports()
  // Tokens come from a pool of this process. What an earlier run left of it is used up.
  randomText(4096)
  return () => {
    for (const restore of restores) restore()
    syncBuiltinESMExports()
    randomText(4096)
  }
}

/** Puts a time of day in force, where there is one. */
function replaceDate(date: () => number | undefined): () => void {
  const real = globalThis.Date
  globalThis.Date = new Proxy(real, {
    construct: (target, args, made) => {
      const now = args.length === 0 ? date() : undefined
      return Reflect.construct(target, now === undefined ? args : [now], made === globalThis.Date ? target : made)
    },
    get: (target, name) => (name === 'now' ? () => date() ?? target.now() : Reflect.get(target, name)),
  })
  return () => {
    globalThis.Date = real
  }
}

class SimulatedTimer {
  readonly end: () => void

  constructor(end: () => void) {
    this.end = end
  }

  unref(): this {
    return this
  }

  refresh(): this {
    return this
  }
}

function timerOf(end: () => void): SimulatedTimer {
  return new SimulatedTimer(end)
}

// biome-ignore lint/suspicious/noExplicitAny: the functions have overloads, of which one is used.
type Any = (...args: any[]) => any

function replace<Owner extends object>(owner: Owner, name: keyof Owner, make: (real: Any) => Any): () => void {
  const own = Object.getOwnPropertyDescriptor(owner, name)
  const real = (owner[name] as Any).bind(owner)
  Object.defineProperty(owner, name, { value: make(real), configurable: true, writable: true, enumerable: true })
  return () => {
    if (own === undefined) delete owner[name]
    else Object.defineProperty(owner, name, own)
  }
}
