import { randomUUID } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type CountersignOptions, optionsFromEnvironment, resolveSettings } from '../service/config.ts'
import { sqliteLocation } from '../store/open.ts'
import { oneLine, UsageError } from './command-line.ts'

/** The absolute path of the embedded store's file; `undefined` for any other store. */
export function sqliteFile(store: CountersignOptions['store']): string | undefined {
  const location = typeof store === 'string' ? sqliteLocation(store) : undefined
  return location === undefined || location === ':memory:' ? undefined : resolve(location)
}

/** What the arguments of a command on a store's file ask for. */
export interface FileArguments {
  /** The one FILE, as an absolute path. */
  readonly file: string
  /** Path of the store, links followed if it is there. */
  readonly store: string
  /** Whether the command's own switch is there. */
  readonly switched: boolean
}

/**
 * Reads the arguments of a command that takes one FILE, `--store` and a switch of its own. Throws a `UsageError` if
 * they are wrong, or the store is not a file.
 */
export function readFileArguments(args: readonly string[], ownSwitch: string): FileArguments | 'help' {
  const { values, positionals } = parse(args, ownSwitch)
  if (values.help === true) return 'help'
  const [file] = positionals
  if (file === undefined || file === '' || positionals.length > 1) throw new UsageError('it takes one FILE')
  if (values.store === '') throw new UsageError('--store is empty')
  const given = typeof values.store === 'string' ? values.store : optionsFromEnvironment(process.env).store
  const store = sqliteFile(resolveSettings(given === undefined ? {} : { store: given }).store)
  if (store === undefined) {
    throw new UsageError(
      'the store is not an SQLite file; save Redis by its own means, as "Backups" in docs/operations.md says',
    )
  }
  return { file: resolve(file), store: followed(store), switched: values[ownSwitch] === true }
}

function parse(args: readonly string[], ownSwitch: string) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        store: { type: 'string' },
        [ownSwitch]: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    throw new UsageError(`${oneLine(error)}; --help shows the usage`, { cause: error })
  }
}

/** A path with its links followed; the same path if nothing is there. */
export function followed(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) === undefined ? path : realpathSync(path)
}

/** An unused path beside another one. */
export function besides(path: string): string {
  return `${path}.${randomUUID()}.partial`
}

/** Runs a step. If it fails, throws an error of one line: `problem`, and why. */
export function explained<T>(problem: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    throw new Error(`${problem}: ${oneLine(error)}`, { cause: error })
  }
}
