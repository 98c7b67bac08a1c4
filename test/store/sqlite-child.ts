import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('./sqlite-process.ts', import.meta.url))

/** Starts sqlite-process.ts. Its errors are shown as our own. */
export function startChild(...args: string[]): ChildProcessWithoutNullStreams & { nextLine: () => Promise<string> } {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  child.stderr.pipe(process.stderr)
  // Keeps the lines that come before they are asked for.
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return Object.assign(child, { nextLine: async () => String((await lines.next()).value) })
}
