import { randomUUID } from 'node:crypto'
import { existsSync, realpathSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { optionsFromEnvironment, resolveSettings } from '../service/config.ts'
import { sqliteFile } from '../store/open.ts'
import { checkStore, copyStore, hasKey, putInPlace, removeKeys, replaceStore } from '../store/sqlite-copy.ts'
import { oneLine, readArguments, type Streams, UsageError } from './command-line.ts'
import { keysNotToRevive } from './stored-kinds.ts'

const backupHelp = `Usage: countersign backup FILE [options]

Copies the embedded store to FILE, as it is at one moment, while the service runs. FILE can be read
by its owner only. Keep it as safe as the store: it has users, sessions, and the secret if
COUNTERSIGN_SECRET is not set. The exit code is 0 if FILE is complete and checked, 1 if there is no
copy, and 2 for wrong usage.

  --force        replaces FILE if it is there, once the copy is complete
  --store STORE  as for the service (variable COUNTERSIGN_STORE, default sqlite:./countersign.db)
  --help         shows this text
`

const restoreHelp = `Usage: countersign restore FILE [options]

Puts a copy that "countersign backup" made in the place of the embedded store, which is kept beside
it. The service must be stopped. All sessions end, because some of those in the copy may have been
ended since; nonces, orders that had begun and known computers are dropped, because some may have
been used or forgotten since. The exit code is 0 if the store is restored, 1 if nothing has changed,
and 2 for wrong usage.

  --keep-sessions  keeps sessions, those included that were ended since the copy was made
  --store STORE    as for the service (variable COUNTERSIGN_STORE, default sqlite:./countersign.db)
  --help           shows this text
`

/** Runs `countersign backup` with the arguments after its name. */
export const backupCommand = fileCommand(backupHelp, 'force', backUp)

/** Runs `countersign restore` with the arguments after its name. */
export const restoreCommand = fileCommand(restoreHelp, 'keep-sessions', restore)

/**
 * A command that takes one FILE, `--store` and a switch of its own. `work` returns what to say about it. The command
 * resolves with 0; it rejects with an error of one line if it fails.
 */
function fileCommand(helpText: string, ownSwitch: string, work: (asked: FileArguments) => string) {
  return async (args: readonly string[], { stdout }: Streams): Promise<number> => {
    const asked = readFileArguments(args, ownSwitch)
    stdout.write(asked === 'help' ? helpText : `${work(asked)}\n`)
    return 0
  }
}

/** The prefix that all keys of a service can have. */
const prefix = '(?:[A-Za-z0-9._-]{1,64}:)?'

/** Key of the secret. */
const secret = new RegExp(`^${prefix}secret$`)

/** Makes the copy, and returns what to say about it. */
function backUp({ file: given, store, switched: force }: FileArguments): string {
  const file = followed(given)
  if (!existsSync(store)) throw new Error(`There is no store at ${store}. Name it with --store or COUNTERSIGN_STORE`)
  if (file === store) throw new Error(`${file} is the store itself; name another file`)
  const requireFree = (): void => {
    if (!force && existsSync(file)) throw new Error(`${file} already exists. Choose another name or add --force`)
  }
  requireFree()
  const folder = dirname(file)
  if (!existsSync(folder)) throw new Error(`There is no folder ${folder}. Create it first`)
  const copy = besides(file)
  try {
    explained(`Cannot copy ${store} to ${file}`, () => {
      copyStore(store, copy)
      checkStore(copy)
    })
    const kept = hasKey(copy, (key) => secret.test(key)) ? ', with its secret' : ''
    const bytes = statSync(copy).size.toLocaleString('en')
    requireFree()
    explained(`Cannot make ${file}`, () => putInPlace(copy, file))
    return `${file} is a complete copy of ${store}${kept}: ${bytes} bytes, checked`
  } finally {
    rmSync(copy, { force: true })
  }
}

/** Restores the store, and returns what to say about it. */
function restore({ file: given, store, switched: keepSessions }: FileArguments): string {
  const file = followed(given)
  if (!existsSync(file)) throw new Error(`There is no file ${file}`)
  if (file === store) throw new Error(`${file} is the store itself; name the copy`)
  const copy = besides(store)
  const aside = `${store}.before-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  try {
    explained(`Cannot restore from ${file}`, () => {
      checkStore(file)
      copyStore(file, copy)
      const past = keysNotToRevive(keepSessions, prefix)
      removeKeys(copy, (key) => past.test(key))
    })
    const wasThere = explained(`Cannot replace ${store}`, () => replaceStore({ path: store, by: copy, aside }))
    const sessions = keepSessions ? 'sessions that were ended since are back' : 'all sessions have ended'
    return `${store} is restored from ${file}: ${sessions}${wasThere ? `; what it was before is in ${aside}` : ''}`
  } finally {
    rmSync(copy, { force: true })
  }
}

/** Arguments of a command on a store's file, read. */
type FileArguments = Exclude<ReturnType<typeof readFileArguments>, 'help'>

/**
 * Reads the arguments of a command: the one FILE and the store, as absolute paths, and whether the command's own switch
 * is there. Throws a `UsageError` if they are wrong, or the store is not a file.
 */
function readFileArguments(args: readonly string[], ownSwitch: string) {
  const help = { type: 'boolean', short: 'h' } as const
  const { values, words } = readArguments(args, { store: { type: 'string' }, [ownSwitch]: { type: 'boolean' }, help })
  if (values.help) return 'help'
  const [file] = words
  if (file === undefined || file === '' || words.length > 1) throw new UsageError('it takes one FILE')
  const given = values.store ?? optionsFromEnvironment(process.env).store
  const store = sqliteFile(resolveSettings(given === undefined ? {} : { store: given }).store)
  if (store === undefined) {
    throw new UsageError(
      'the store is not an SQLite file; save Redis or PostgreSQL by its own means, as "Backups" in ' +
        'docs/operations.md says',
    )
  }
  return { file: resolve(file), store: followed(store), switched: values[ownSwitch] === true }
}

/** A path with its links followed; the same path if nothing is there. */
function followed(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) === undefined ? path : realpathSync(path)
}

/** An unused path beside another one. */
function besides(path: string): string {
  return `${path}.${randomUUID()}.partial`
}

/** Runs a step. If it fails, throws an error of one line: `problem`, and why. */
function explained<T>(problem: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    throw new Error(`${problem}: ${oneLine(error)}`, { cause: error })
  }
}
