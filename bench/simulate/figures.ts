import { readFile } from 'node:fs/promises'
import type { ByAction } from './day.ts'

/** What was measured of one process at two loads, microseconds of CPU time for one event. */
export interface Cost {
  readonly light: CostAtLoad
  readonly busy: CostAtLoad
}

/** What an event costs while a process is so busy. */
export interface CostAtLoad {
  /** The part of one core that the process used meanwhile, 0 to 1. */
  readonly utilization: number
  readonly micros: number
}

/** Records that one event leaves in the store; a negative count is of those that it removes. */
export interface RecordsLeft {
  readonly count: number
  /** Memory of Redis for one of them, bytes. */
  readonly bytes: number
  /** Time in ms from the event until they expire; `null` if they stay. */
  readonly lifeMs: number | null
}

/** What one event costs. */
export interface ActionFigures {
  readonly instance: Cost
  /** Of the masters together. */
  readonly redis: Cost
  /** Of the replicas together. */
  readonly replicas: Cost
  /** Commands that masters carry out, those in scripts included. */
  readonly commands: number
  /** By kind: the first part of the key's name, with "(minutes)" if the record lives for less than an hour. */
  readonly records: Readonly<Record<string, RecordsLeft>>
}

/** What goes on without any event, a second. */
export interface Idle {
  readonly instanceMicros: number
  readonly redisMicros: number
  readonly replicaMicros: number
  readonly commands: number
}

/** All that the capacity is computed from. `npm run bench -- costs` measures it. */
export interface Figures {
  /** Machine, versions, commit and date. */
  readonly measured: Readonly<Record<'machine' | 'redis' | 'commit' | 'date', string>>
  readonly actions: ByAction<ActionFigures>
  /** Of one watcher. */
  readonly watcher: Idle & { readonly heapBytes: number }
  /** Of one instance, one master and one replica, without watchers; commands are those of one instance to all masters. */
  readonly idle: Idle
  /** Resident memory of an instance without watchers, bytes. */
  readonly instanceBytes: number
}

/** The figures of the last run of `npm run bench -- costs` that was committed. */
export const figuresFile = new URL('./figures.json', import.meta.url)

/** Reads {@link figuresFile}. */
export async function readFigures(file: URL | string = figuresFile): Promise<Figures> {
  return JSON.parse(await readFile(file, 'utf8')) as Figures
}
