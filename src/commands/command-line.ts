import type { Readable, Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { allOptions, type CountersignOptions } from '../service/config.ts'

/** Where a command reads and writes: those of `process`. */
export interface Streams {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable
}

/** Arguments that are wrong, or name a file that cannot be read. The message is one line that says which. */
export class UsageError extends Error {}

/** What follows the message of a `UsageError`. */
export const usageHint = '; --help shows the usage'

/** Settings that are wrong, so that another start with the same ones fails alike. The message is one line. */
export class SettingsError extends Error {}

/** An error's message, in one line. */
export function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error)
  return message.replaceAll(/\s+/g, ' ').trim()
}

/** A count with its noun, such as `2 users`. */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** Most columns of a line of help. */
const helpColumns = 78

/** Names with what is said of each, as lines of help. The names have `width` columns. */
export function helpRows(rows: readonly (readonly [name: string, about: string])[], width: number): string {
  const lines = rows.flatMap(([name, about]) => {
    const parts: string[] = []
    for (const word of about.split(' ')) {
      const line = parts.at(-1)
      const fits = line !== undefined && width + 4 + line.length + word.length < helpColumns
      if (fits) parts[parts.length - 1] = `${line} ${word}`
      else parts.push(word)
    }
    // A name that is wider has a line of its own.
    const beside = name.length > width ? ['', ...parts] : parts
    return beside.map((part, index) => `  ${(index === 0 ? name : '').padEnd(width)}  ${part}`.trimEnd())
  })
  return lines.join('\n')
}

/** Options of a command by name. A `boolean` takes no value; `multiple` may stand several times. */
type OptionTable = Readonly<
  Record<string, { readonly type: 'boolean' | 'string'; readonly short?: string; readonly multiple?: true }>
>

type ValueOf<Option> = Option extends { readonly type: 'boolean' }
  ? true
  : Option extends { readonly multiple: true }
    ? readonly string[]
    : string

/** Arguments of a command, read. */
export interface Arguments<Options extends OptionTable> {
  /** The options that are there. */
  readonly values: { readonly [Name in keyof Options]?: ValueOf<Options[Name]> }
  /** Everything else, in its order. */
  readonly words: readonly string[]
}

/**
 * Reads the arguments of a command. Throws a `UsageError` for an option that is unknown, lacks its value, has an empty
 * one or one that it does not take, or stands twice.
 */
export function readArguments<const Options extends OptionTable>(
  args: readonly string[],
  options: Options,
): Arguments<Options> {
  const values: Record<string, unknown> = {}
  const words: string[] = []
  // Not strict: its messages advise on things that these commands do not have.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const { name, value, inlineValue } = token
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (option === undefined) throw unknownArgument(args[token.index])
    if (option.type === 'boolean' && value !== undefined) throw new UsageError(`--${name} takes no value`)
    // parseArgs takes the next argument, be it another option. Such a value is written "--store=-x".
    if (option.type === 'string' && (value === undefined || (inlineValue !== true && value.startsWith('-')))) {
      throw new UsageError(`--${name} needs a value`)
    }
    // As from a variable of the shell that is not set: the default would be in force unnoticed.
    if (value === '') throw new UsageError(`--${name} is empty`)
    if (option.multiple === true) values[name] = [...((values[name] as string[] | undefined) ?? []), value]
    else if (name in values && option.type === 'string') throw new UsageError(`--${name} stands twice`)
    else values[name] = value ?? true
  }
  return { values: values as Arguments<Options>['values'], words }
}

/** Without the value of an option: it may be a secret. */
function unknownArgument(argument: string | undefined): UsageError {
  return new UsageError(`unknown argument ${JSON.stringify(argument?.replace(/^(-[^=]*)=.*$/s, '$1'))}`)
}

/** Arguments of the command that starts the service. */
export interface CommandLine extends ServiceArguments {
  /** Print the version and do nothing else. */
  readonly version: boolean
}

/** Arguments of the service, which its own command and `doctor` take. */
export interface ServiceArguments {
  /** Show the help and do nothing else. */
  readonly help: boolean
  /** Serve the local network. */
  readonly lan: boolean
  /** The settings among them. They take precedence over environment variables. */
  readonly options: Pick<CountersignOptions, 'port' | 'host' | 'store'>
}

/** Options of the service: switches, and settings with the names that they have in code. */
export const serviceOptions = {
  help: { type: 'boolean', short: 'h' },
  lan: { type: 'boolean' },
  port: { type: 'string' },
  host: { type: 'string' },
  store: { type: 'string' },
} as const

/** Reads the arguments of the command that starts the service. Throws a `UsageError` for wrong ones. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const given = readArguments(args, { ...serviceOptions, version: { type: 'boolean' } })
  return { ...readServiceArguments(given), version: given.values.version === true }
}

/** Reads the service's options. Throws a `UsageError` for a value that does not fit, and for any word but `help`. */
export function readServiceArguments({ values, words }: Arguments<typeof serviceOptions>): ServiceArguments {
  const unknown = words.find((word) => word !== 'help')
  if (unknown !== undefined) throw unknownArgument(unknown)
  if (values.lan && values.host !== undefined) {
    throw new UsageError('--host and --lan exclude each other: with --lan the service listens on all interfaces')
  }
  return { help: values.help ?? words.length > 0, lan: values.lan === true, options: settingsOf(values) }
}

/** The settings among the values, under the rules of the settings. */
function settingsOf(values: Arguments<typeof serviceOptions>['values']): ServiceArguments['options'] {
  const options: Record<string, unknown> = {}
  for (const { name, option } of allOptions) {
    const { kind } = option
    const text = name === 'port' || name === 'host' || name === 'store' ? values[name] : undefined
    if (text === undefined) continue
    options[name] = kind.read === undefined ? text : kind.read(text)
    kind.check(options[name] as never, (got) => {
      const repeated = got === undefined ? '' : `, not ${JSON.stringify(text)}`
      throw new UsageError(`--${name} must be ${kind.expected}${repeated}`)
    })
  }
  return options as ServiceArguments['options']
}
