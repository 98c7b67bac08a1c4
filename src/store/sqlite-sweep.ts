import type { DatabaseSync, SQLInputValue } from 'node:sqlite'

/** Most rows of a table that one step removes, and most that it looks at if there is no index. */
const rowsPerStep = 200

/** From the end of one sweep to the next, in milliseconds. */
export const sweepIntervalMs = 5000
/** From one step to the next, in milliseconds: a pause in which the event loop serves requests. */
const stepPauseMs = 10
/** The same after a step that found nothing: to look at a million rows takes seconds of CPU time. */
const idlePauseMs = 50

/** What one step of a sweep came to. */
export interface SweepStep {
  /** Keys of the entries that are gone. */
  readonly removed: readonly string[]
  /** When the next step is due, in milliseconds. */
  readonly pauseMs: number
}

/** Removes some of the rows that have expired by `now`, in milliseconds since 1970. */
export type Sweep = (now: number) => SweepStep

/** Finds what has expired by the indexes of both tables. */
export function sweepByIndex(database: DatabaseSync): Sweep {
  const entries = database.prepare(
    'DELETE FROM entries WHERE key IN (SELECT key FROM entries WHERE expires_at <= ? LIMIT ?) RETURNING key',
  )
  const members = database.prepare(
    `DELETE FROM members WHERE (set_key, member) IN
     (SELECT set_key, member FROM members WHERE expires_at <= ? LIMIT ?)`,
  )
  return (now) => {
    const removed = entries.all(now, rowsPerStep).map(({ key }) => String(key))
    const { changes } = members.run(now, rowsPerStep)
    const isOver = removed.length < rowsPerStep && Number(changes) < rowsPerStep
    return { removed, pauseMs: isOver ? sweepIntervalMs : stepPauseMs }
  }
}

/** Looks at all rows, one table after the other. It needs no index. */
export function sweepByRow(database: DatabaseSync): Sweep {
  const entries = walk(database, { table: 'entries', order: ['rowid'], first: [0], returns: 'key' })
  const members = walk(database, { table: 'members', order: ['set_key', 'member'], first: ['', ''], returns: 'member' })
  let current = entries
  return (now) => {
    const walked = current
    const { removed, isAtEnd } = walked(now)
    if (isAtEnd) current = walked === entries ? members : entries
    const isOver = isAtEnd && walked === members
    const pauseMs = removed.length > 0 ? stepPauseMs : idlePauseMs
    return { removed: walked === entries ? removed : [], pauseMs: isOver ? sweepIntervalMs : pauseMs }
  }
}

interface Walked {
  readonly table: string
  /** Columns that the table is sorted by. */
  readonly order: readonly string[]
  /** Comes before all rows. */
  readonly first: readonly SQLInputValue[]
  /** The column that tells which rows are removed. */
  readonly returns: string
}

/** Goes through one table, a slice at a time, and after the last one through the first again. Returns what it has removed. */
function walk(
  database: DatabaseSync,
  { table, order, first, returns }: Walked,
): (now: number) => { readonly removed: readonly string[]; readonly isAtEnd: boolean } {
  const columns = order.join(', ')
  const after = `FROM ${table} WHERE (${columns}) > (${order.map(() => '?').join(', ')}) ORDER BY ${columns}`
  const lastOfSlice = database.prepare(`SELECT ${columns} ${after} LIMIT 1 OFFSET ${rowsPerStep - 1}`)
  const remove = database.prepare(
    `DELETE FROM ${table} WHERE (${columns}) IN
     (SELECT ${columns} FROM (SELECT ${columns}, expires_at ${after} LIMIT ${rowsPerStep}) WHERE expires_at <= ?)
     RETURNING ${returns}`,
  )
  let last = first
  return (now) => {
    const end = lastOfSlice.get(...last)
    const removed = remove.all(...last, now).map((row) => String(row[returns]))
    last = end === undefined ? first : order.map((column) => end[column] as SQLInputValue)
    return { removed, isAtEnd: end === undefined }
  }
}
