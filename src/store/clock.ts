// Every call of the store reads this clock, some of them three times. The global of this name is a getter, which costs
// more than the reading.
import { performance } from 'node:perf_hooks'

/** Interval between two measurements, in milliseconds. */
const intervalMs = 30_000

/**
 * Most times that the server is asked for one measurement, and time in milliseconds after which it is not asked again.
 */
const maxSamples = 3
const samplingMs = 500

/** Uncertainty that needs no further sample, in milliseconds. */
const goodMs = 5

/** Uncertainty beyond which the store counts as unavailable, in milliseconds. */
const maxUncertaintyMs = 1000

/**
 * Uncertainty that each millisecond adds to a measurement, in milliseconds. NTP slews a clock by at most 500 ppm, and
 * two clocks are compared.
 */
const driftRate = 0.001

/**
 * Difference by which the process's wall clock and its monotonic clock may part between two measurements, in
 * milliseconds. Beyond it the machine was suspended, which can stop the monotonic clock, or the wall clock was set.
 */
const jumpMs = 500

/** What is known of the server's clock. */
interface Measurement {
  /** The server's time less that of the process's monotonic clock, in milliseconds. */
  readonly offsetMs: number
  /** Most milliseconds by which the offset can be wrong. */
  readonly uncertaintyMs: number
  /** Time on the monotonic clock at which the server was asked for it. */
  readonly at: number
  /** Lead of the wall clock when the server was last asked, for this measurement or a worse one that agrees. */
  readonly wallLead: number
}

/** How the server whose clock counts is asked. */
export interface ClockServer {
  /** What it is called in error messages: "the Redis server". */
  readonly name: string
  /** Its time in epoch milliseconds, maybe with a fraction. `sent` is to be called just before it is asked. */
  ask(sent: () => void): Promise<number>
  /** Names the server that answers now. Throws if none is known. */
  locate(): string
}

/**
 * The clock of a server, read without asking it: the process's monotonic clock and an offset that is measured.
 *
 * The server reads its clock at some moment of the round trip, so the middle of the trip is wrong by half of it at
 * most. A measurement takes the shortest of a few trips. It is made when the server is reached for the first time or
 * again, when the keys move to another server, every 30 s, and when the wall clock and the monotonic clock have parted,
 * as after a suspend. A step of the process's wall clock changes nothing. A good measurement is kept until one comes
 * that is better or contradicts it, because trips take long while the process is busy.
 *
 * In a Redis cluster the server is the owner of the slot of one key, so that all processes use the same clock.
 */
export class ServerClock {
  readonly #source: ClockServer
  readonly #timer: NodeJS.Timeout
  #known: Measurement = { offsetMs: wallLead(), uncertaintyMs: Number.POSITIVE_INFINITY, at: 0, wallLead: 0 }
  /** Whether the server is still the one that was measured. */
  #settled = false
  /** The server that was measured, as the servers name it. */
  #server: string | undefined
  /** Goes up when all that was measured until now is void. */
  #era = 0
  #measuring: Promise<void> | undefined

  constructor(source: ClockServer) {
    this.#source = source
    this.#timer = setInterval(() => this.#measureQuietly(), intervalMs).unref()
  }

  /**
   * The server's time in epoch milliseconds. Goes back if a measurement corrects it: by a few milliseconds usually, by
   * more if the server or its clock has changed.
   */
  now(): number {
    return Math.floor(performance.now() + this.#known.offsetMs)
  }

  /** Whether nothing has happened since the last measurement that makes it doubtful. Cheap: every call asks. */
  get isCurrent(): boolean {
    return this.#settled && !hasJumped(this.#known)
  }

  /** Measures. Rejects if the server does not answer. */
  measure(): Promise<void> {
    this.#measuring ??= this.#measureOnce().finally(() => {
      this.#measuring = undefined
    })
    return this.#measuring
  }

  /** Throws if the time is uncertain by more than a second; it is then measured again, for the next to ask. */
  requireCertain(): void {
    const { uncertaintyMs } = this.#aged()
    const { isCurrent } = this
    if (isCurrent && uncertaintyMs <= maxUncertaintyMs) return
    this.#measureQuietly()
    const extent = isCurrent
      ? `uncertain by ${Math.ceil(uncertaintyMs)} ms, more than ${maxUncertaintyMs}`
      : 'not measured'
    throw new Error(`the offset to the clock of ${this.#source.name} is ${extent}`)
  }

  /** There is a new connection to a server. Another one may have taken its place. */
  serverUp(server: string): void {
    if (server === this.#server) this.#begin()
  }

  /** Keys may have moved to other servers. */
  serversMoved(): void {
    if (this.#server !== undefined && this.#locate() !== this.#server) this.#begin()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #begin(): void {
    this.#era++
    this.#settled = false
    this.#measureQuietly()
  }

  #measureQuietly(): void {
    this.measure().catch(() => undefined)
  }

  async #measureOnce(): Promise<void> {
    for (;;) {
      const era = this.#era
      const best = await this.#best()
      // Some of it may have come from another server, or from before a suspend.
      if (era !== this.#era || hasJumped(best)) continue
      const known = this.#aged()
      const agree = Math.abs(known.offsetMs - best.offsetMs) <= known.uncertaintyMs + best.uncertaintyMs
      const keep = this.isCurrent && agree && known.uncertaintyMs < best.uncertaintyMs
      this.#known = keep ? { ...this.#known, wallLead: best.wallLead } : best
      this.#server = this.#locate()
      this.#settled = true
      return
    }
  }

  async #best(): Promise<Measurement> {
    const beganAt = performance.now()
    let best = await this.#sample()
    for (let samples = 1; samples < maxSamples; samples++) {
      if (best.uncertaintyMs <= goodMs || performance.now() - beganAt > samplingMs) break
      const sample = await this.#sample()
      if (sample.uncertaintyMs < best.uncertaintyMs) best = sample
    }
    return best
  }

  async #sample(): Promise<Measurement> {
    let at = 0
    // Taken before the server is asked: the machine may be suspended meanwhile.
    let lead = 0
    const serverTime = await this.#source.ask(() => {
      at = performance.now()
      lead = wallLead()
    })
    const uncertaintyMs = (performance.now() - at) / 2
    return { offsetMs: serverTime - (at + uncertaintyMs), uncertaintyMs, at, wallLead: lead }
  }

  /** What is known, as uncertain as it has become since. */
  #aged(): Measurement {
    const { uncertaintyMs, at } = this.#known
    return { ...this.#known, uncertaintyMs: uncertaintyMs + (performance.now() - at) * driftRate }
  }

  #locate(): string | undefined {
    try {
      return this.#source.locate()
    } catch {
      return this.#server
    }
  }
}

/** Whether one of the process's clocks has jumped since the server was last asked. */
function hasJumped({ wallLead: before }: Measurement): boolean {
  return Math.abs(wallLead() - before) >= jumpMs
}

/** The wall clock's time less that of the monotonic clock, in milliseconds. Changes only if one of them jumps. */
function wallLead(): number {
  return Date.now() - performance.now()
}
