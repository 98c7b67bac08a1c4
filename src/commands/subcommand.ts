import type { Readable, Writable } from 'node:stream'

/** Where a command reads and writes: those of `process`. */
export interface Streams {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable
}

/** A command that is named by the first argument, such as `verify`. */
export interface Subcommand {
  readonly name: string
  /** What it does, for the help: completes "countersign {name}". */
  readonly about: string
  /** Loads it. What it needs is loaded only if it is asked for. */
  readonly load: () => Promise<RunSubcommand>
}

/** Runs a command with the arguments behind its name. Resolves with the exit code; 2 is for wrong usage. */
export type RunSubcommand = (args: readonly string[], streams: Streams) => Promise<number>

/** Arguments that are wrong, or name a file that cannot be read. The message is one line that says which. */
export class UsageError extends Error {}

/** Settings that are wrong, so that another start with the same ones fails alike. The message is one line. */
export class SettingsError extends Error {}

/** What an error says, in one line. */
export function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error)
  return message.replaceAll(/\s+/g, ' ').trim()
}
