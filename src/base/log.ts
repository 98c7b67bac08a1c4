/** How much a log line matters. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** What a log line can have in addition to its text: never a token, nonce, signature or request body. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>

/** Writes log lines. */
export interface Logger {
  debug(text: string, fields?: LogFields): void
  info(text: string, fields?: LogFields): void
  warn(text: string, fields?: LogFields): void
  error(text: string, fields?: LogFields): void
}

const ranks: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

/** Where lines go: `process.stderr`, or an object with the same `write`. */
export interface LogSink {
  readonly isTTY?: boolean | undefined
  write(text: string): unknown
}

/** Form of log lines: JSON objects, one per line, or lines for people; auto: the latter if the sink is a terminal. */
export type LogFormat = 'auto' | 'json' | 'pretty'

/** A logger that writes lines of a level and above. Each begins with the fields of `common`. */
export function createLogger(
  sink: LogSink,
  level: LogLevel,
  format: LogFormat = 'auto',
  common: LogFields = {},
): Logger {
  const isForPeople = format === 'auto' ? sink.isTTY === true : format === 'pretty'
  const formatted = isForPeople ? formatForPeople : formatAsJson
  const write = (at: LogLevel, text: string, fields: LogFields = {}): void => {
    if (ranks[at] >= ranks[level]) sink.write(`${formatted(at, text, common, fields)}\n`)
  }
  return {
    debug: (text, fields) => write('debug', text, fields),
    info: (text, fields) => write('info', text, fields),
    warn: (text, fields) => write('warn', text, fields),
    error: (text, fields) => write('error', text, fields),
  }
}

/** A logger that writes nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** What was thrown, for a log line: with its stack if it has one; `undefined` if nothing was. */
export function causeText(cause: unknown): string | undefined {
  // An application can throw anything, even something that cannot be looked at.
  try {
    return cause instanceof Error ? (cause.stack ?? cause.message) : cause === undefined ? undefined : String(cause)
  } catch {
    return 'something was thrown that cannot be shown as text'
  }
}

function formatAsJson(level: LogLevel, text: string, common: LogFields, fields: LogFields): string {
  return JSON.stringify({ time: new Date().toISOString(), level, text, ...common, ...fields })
}

function formatForPeople(level: LogLevel, text: string, common: LogFields, fields: LogFields): string {
  const time = new Date().toISOString().slice(11, 19)
  const details = Object.entries({ ...common, ...fields })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${typeof value === 'string' ? JSON.stringify(value) : value}`)
  return `${time} ${level.padEnd(5)} ${text}${details.join('')}`
}

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
