import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import type { Streams } from '../../src/commands/command-line.ts'

/** Runs a program to its end. Resolves with what it printed; rejects if it fails. */
export const run = promisify(execFile)

/** Ends a process with the test. */
export function killAtEnd(child: ChildProcess, signal?: NodeJS.Signals): void {
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  })
}

/** How a command ended, and what it printed. */
export interface Ran {
  /** `null`: a signal ended the process. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

type Command = (args: readonly string[], streams: Streams) => Promise<number>

/** Runs a command in this process, which takes a tenth of the time of a process of its own. */
export async function runHere(
  command: Command,
  args: readonly string[],
  stdin: Streams['stdin'] = Readable.from([]),
): Promise<Ran & { readonly code: number }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const code = await command(args, { stdin, stdout, stderr })
  return { code, stdout: await text(stdout.end()), stderr: await text(stderr.end()) }
}

/** The same with these environment variables only. */
export async function runHereIn(env: Record<string, string>, ...run: Parameters<typeof runHere>) {
  const saved = process.env
  process.env = env
  return await runHere(...run).finally(() => {
    process.env = saved
  })
}

/** Waits for the end of a process whose output is piped. */
export async function endOf(child: ChildProcess): Promise<Ran> {
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout ?? Readable.from([])),
    text(child.stderr ?? Readable.from([])),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return { code, stdout, stderr }
}

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** A process of its own: its options, arguments of Node.js, and what it reads. */
interface MainOptions extends SpawnOptions {
  readonly node?: readonly string[]
  readonly stdin?: string
}

/** Runs the command `countersign` as a process, with no environment variables but those of the options. */
export async function runMain(args: readonly string[], { node = [], stdin = '', ...options }: MainOptions = {}) {
  const child = spawn(process.execPath, [...node, mainFile, ...args], { env: {}, ...options, stdio: 'pipe' })
  child.stdin.end(stdin)
  return await endOf(child)
}
