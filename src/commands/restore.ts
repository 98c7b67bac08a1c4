import { existsSync, rmSync } from 'node:fs'
import { checkStore, copyStore, removeKeys, replaceStore } from '../store/sqlite-copy.ts'
import type { Streams } from './command-line.ts'
import { begunKeys, sessionKeys } from './oidc.ts'
import { besides, explained, type FileArguments, followed, readFileArguments } from './store-file.ts'

const helpText = `Usage: countersign restore FILE [options]

Puts a copy that "countersign backup" made in the place of the embedded store, which is kept beside
it. The service must be stopped. All sessions end, because some of those in the copy may have been
ended since; nonces and orders that had begun are dropped, because some may have been used since.
The exit code is 0 if the store is restored, 1 if nothing has changed, and 2 for wrong usage.

  --keep-sessions  keeps sessions and known computers, those that were ended or forgotten since the copy
                   was made included
  --store STORE    as for the service (variable COUNTERSIGN_STORE, default sqlite:./countersign.db)
  --help           shows this text
`

/** The prefix that all keys of a service can have. */
const prefix = /^(?:[A-Za-z0-9._-]{1,64}:)?/

/**
 * Keys of nonces and orders, and of what applications hold: they may have been used, refused or ended since the copy
 * was made.
 */
const begun = new RegExp(`${prefix.source}(?:nonce|link-nonce|order|${begunKeys}):`)

/** Keys of sessions, of their addresses and lists, and of known computers. */
const remembered = new RegExp(`${prefix.source}(?:session|session-address|${sessionKeys}|sessions|computers):`)

/**
 * Runs the command `restore` with the arguments behind its name. Resolves with 0; rejects with an error of one line if
 * it fails.
 */
export async function restoreCommand(args: readonly string[], { stdout }: Streams): Promise<number> {
  const asked = readFileArguments(args, 'keep-sessions')
  if (asked === 'help') stdout.write(helpText)
  else stdout.write(`${restore(asked)}\n`)
  return 0
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
      removeKeys(copy, (key) => begun.test(key) || (!keepSessions && remembered.test(key)))
    })
    const wasThere = explained(`Cannot replace ${store}`, () => replaceStore({ path: store, by: copy, aside }))
    const sessions = keepSessions ? 'sessions that were ended since are back' : 'all sessions have ended'
    return `${store} is restored from ${file}: ${sessions}${wasThere ? `; what it was before is in ${aside}` : ''}`
  } finally {
    rmSync(copy, { force: true })
  }
}
