import type { LogFields, Logger, LogLevel } from '../../src/base/log.ts'

/** A line that was logged. */
export interface LogLine {
  readonly level: LogLevel
  readonly text: string
  readonly fields: LogFields
}

/** A logger that keeps its lines. */
export function keptLog(): { readonly logger: Logger; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = []
  const keep =
    (level: LogLevel) =>
    (text: string, fields: LogFields = {}): void =>
      void lines.push({ level, text, fields })
  return { logger: { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }, lines }
}
