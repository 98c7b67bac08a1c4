import { type CountersignOptions, resolveSettings } from '../config.ts'
import type { LogFormat, LogLevel } from '../log.ts'

/** The form of the log, which is needed before all settings are checked. */
export function logFormatOf({ logFormat }: CountersignOptions): LogFormat {
  return resolveSettings(logFormat === undefined ? {} : { logFormat }).logFormat
}

/** The level of the log. Throws a `TypeError` if the text is none; no text is info. */
export function logLevel(text: string | undefined): LogLevel {
  if (text === undefined || text === '') return 'info'
  if (/^(debug|info|warn|error)$/.test(text)) return text as LogLevel
  throw new TypeError(`LOG_LEVEL must be debug, info, warn or error, not ${JSON.stringify(text)}`)
}
