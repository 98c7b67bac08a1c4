import type { LogSink } from '../log.ts'

/**
 * Standard error, for a logger. Writes the lines of one turn of the event loop together, in one call of the system: under load, a call
 * for each line takes more time than all else about it. Lines that are not written yet are written when the process ends, also after an
 * error that nobody caught.
 *
 * One call writes at most `mostBytes`, unless a single line is longer. Default: no bound.
 */
export function logOutput(mostBytes: number = Number.POSITIVE_INFINITY): LogSink {
  const output = process.stderr
  let lines = ''
  const flush = (): void => {
    const written = lines
    lines = ''
    if (written !== '') output.write(written)
  }
  const flushInTick = (): void => process.nextTick(flush)
  process.once('exit', flush)
  return {
    isTTY: output.isTTY,
    write(text) {
      // A tick that a reaction asks for comes after all reactions, and before anything else has its turn.
      if (lines === '') queueMicrotask(flushInTick)
      else if (mostBytes < Number.POSITIVE_INFINITY && Buffer.byteLength(lines) + Buffer.byteLength(text) > mostBytes) {
        flush()
        queueMicrotask(flushInTick)
      }
      lines += text
    },
  }
}
