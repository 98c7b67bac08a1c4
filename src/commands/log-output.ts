import type { LogSink } from '../base/log.ts'

/**
 * Standard error, for a logger. Writes the lines of one turn of the event loop together, in one call of the system:
 * under load, a call for each line takes more time than all else about it. Lines that are not written yet are written
 * when the process ends, also after an uncaught error.
 */
export function logOutput(): LogSink {
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
      lines += text
    },
  }
}
