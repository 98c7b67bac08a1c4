import { median } from '../turns.ts'
import type { ObjectsAnswer } from './probe.ts'
import { growthOf, type Sample } from './statistics.ts'

/** Something that a soak must not see, in one line. */
export type Finding = string

/** A time in which a part was away, ms, and the reasons for which calls and lines of the log may fail in it. */
export interface Window {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly allows: readonly string[]
}

/** A visit that did not go as it should, and the time that it took, ms. */
export interface Failure {
  readonly from: number
  readonly to: number
  /** What was done, and over which protocol. */
  readonly what: string
  readonly reason: string
  readonly message: string
}

/** A line of a server's log. */
export interface LogLine {
  /** When it was read, ms. */
  readonly at: number
  readonly instance: string
  readonly level: string
  readonly text: string
  readonly fields: Readonly<Record<string, unknown>>
}

/**
 * How much a heap may grow in the second half of a run, bytes: what one long-lived part more is compiled to, and 2 %.
 * One leaked object of 100 bytes for each of 100 calls a second is more within two minutes.
 */
const heapSlack = { bytes: 384 * 1024, share: 0.02 }
/** Fewest samples of memory that say anything. */
const fewestSamples = 8
/** Life of an order of the load, and time for which it is remembered after its end, s. */
export const orderLifeSeconds = 12
export const orderMemorySeconds = 10 * 60
/**
 * How many objects of a kind an idle server may have more after the load than before it. What is made once, on demand,
 * is counted in tens; what is leaked by each call, in thousands.
 */
const objectSlack: Readonly<Record<string, { readonly count: number; readonly share: number }>> = {
  timers: { count: 5, share: 0.1 },
  sockets: { count: 3, share: 0 },
  'duplex streams': { count: 5, share: 0 },
  requests: { count: 10, share: 0 },
  responses: { count: 10, share: 0 },
  'abort signals': { count: 20, share: 0.1 },
  promises: { count: 100, share: 0.1 },
  // The count of live orders has one for each second in which orders are forgotten.
  maps: { count: 200 + orderLifeSeconds + orderMemorySeconds, share: 0.2 },
  sets: { count: 200, share: 0.2 },
}

/** Whether something that lasted from one time to another was in a window that allows its reason. */
function isAllowed(
  windows: readonly Window[],
  { from, to, reason }: { readonly from: number; readonly to: number; readonly reason: string },
): boolean {
  return windows.some((window) => from <= window.to && to >= window.from && window.allows.includes(reason))
}

/** Heaps that grow. `samples` are those of the second half, without garbage, bytes. */
export function heapFindings(name: string, samples: readonly Sample[]): Finding[] {
  if (samples.length < fewestSamples) return [`${name}: only ${samples.length} samples of its heap; run for longer`]
  const growth = growthOf(samples)
  const most = heapSlack.bytes + heapSlack.share * median(samples.map(({ value }) => value))
  if (growth <= most) return []
  return [`${name}: the heap grew by ${kib(growth)} in the second half of the run; ${kib(most)} are allowed`]
}

/** Objects and resources that an idle server has more of after the load than before. */
export function objectFindings(name: string, before: ObjectsAnswer, after: ObjectsAnswer): Finding[] {
  const objects = Object.entries(after.objects).flatMap(([kind, count]) => {
    const base = before.objects[kind] ?? 0
    const slack = objectSlack[kind] ?? { count: 0, share: 0 }
    const most = base + slack.count + slack.share * base
    return count <= most ? [] : [`${name}: ${count} ${kind} are left, of ${base} before the load`]
  })
  const resources = Object.entries(after.resources).flatMap(([kind, count]) => {
    const base = before.resources[kind] ?? 0
    return count <= base
      ? []
      : [`${name}: ${count} active resources of kind ${kind} are left, of ${base} before the load`]
  })
  return [...objects, ...resources]
}

/** What clients still hold of a server that has none. */
export function gaugeFindings(name: string, gauges: Readonly<Record<string, number>>): Finding[] {
  // Orders are remembered for ten minutes after their end, so their number is compared with the store's.
  return Object.entries(gauges).flatMap(([gauge, value]) =>
    gauge === 'orders' || value === 0 ? [] : [`${name}: ${gauge} is at ${value} although no client is left`],
  )
}

/** Visits that failed outside of the windows; alike ones are one finding. */
export function failureFindings(failures: readonly Failure[], windows: readonly Window[]): Finding[] {
  const unexpected = failures.filter((failure) => !isAllowed(windows, failure))
  const alike = Map.groupBy(unexpected, ({ what, reason }) => `${what}: ${reason}`)
  return [...alike].map(([title, [first, ...others]]) => {
    const more = others.length === 0 ? '' : `, and ${others.length} more`
    return `${title} at ${seconds(first?.from ?? 0)}${more} (${first?.message})`
  })
}

/** What the log of every server has in every run: the start, the stop, and refusals of what the load does wrong. */
export interface ExpectedLog {
  /** Texts at level info. */
  readonly texts: readonly string[]
  /** Reasons for which requests are refused at any time. */
  readonly reasons: readonly string[]
}

/** Lines of the log that are not expected; alike ones are one finding. */
export function logFindings(
  lines: readonly LogLine[],
  windows: readonly Window[],
  { texts, reasons }: ExpectedLog,
): Finding[] {
  const unexpected = lines.filter(({ at, level, text, fields }) => {
    const reason = String(fields.reason ?? text)
    if (level === 'info') return text === 'request refused' ? !reasons.includes(reason) : !texts.includes(text)
    return level === 'error' || !isAllowed(windows, { from: at, to: at, reason })
  })
  const alike = Map.groupBy(unexpected, ({ instance, level, text, fields }) =>
    [`log of ${instance}: ${level}: ${text}`, fields.reason, fields.method]
      .filter((part) => part !== undefined)
      .join(', '),
  )
  return [...alike].map(([title, [first, ...others]]) => {
    const more = others.length === 0 ? '' : `, and ${others.length} more`
    const cause = first?.fields.cause === undefined ? '' : ` (${String(first.fields.cause).split('\n')[0]})`
    return `${title} at ${seconds(first?.at ?? 0)}${more}${cause}`
  })
}

/** A time of a run in words. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/** A size in words. */
function kib(bytes: number): string {
  return `${Math.round(bytes / 1024)} KiB`
}
