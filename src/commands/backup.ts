import { existsSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { checkStore, copyStore, hasKey, putInPlace } from '../store/sqlite-copy.ts'
import type { Streams } from './command-line.ts'
import { besides, explained, type FileArguments, followed, readFileArguments } from './store-file.ts'

const helpText = `Usage: countersign backup FILE [options]

Copies the embedded store to FILE, as it is at one moment, while the service runs. FILE can be read
by its owner only. Keep it as safe as the store: it has users, sessions, and the secret if
COUNTERSIGN_SECRET is not set. The exit code is 0 if FILE is complete and checked, 1 if there is no
copy, and 2 for wrong usage.

  --force        replaces FILE if it is there, once the copy is complete
  --store STORE  as for the service (variable COUNTERSIGN_STORE, default sqlite:./countersign.db)
  --help         shows this text
`

/** Key of the secret, with the prefix that all keys of a service can have. */
const secret = /^(?:[A-Za-z0-9._-]{1,64}:)?secret$/

/**
 * Runs the command `backup` with the arguments behind its name. Resolves with 0; rejects with an error of one line if
 * it fails.
 */
export async function backupCommand(args: readonly string[], { stdout }: Streams): Promise<number> {
  const asked = readFileArguments(args, 'force')
  if (asked === 'help') stdout.write(helpText)
  else stdout.write(`${backUp(asked)}\n`)
  return 0
}

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
