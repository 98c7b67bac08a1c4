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

/** Settings that are wrong, so that another start with the same ones fails alike. The message is one line. */
export class SettingsError extends Error {}

/** What an error says, in one line. */
export function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error)
  return message.replaceAll(/\s+/g, ' ').trim()
}

/** A number of things, for people. */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** What the arguments ask of the command that starts the service. */
export interface CommandLine {
  /** Show the help and do nothing else. */
  readonly help: boolean
  /** Print the version and do nothing else. */
  readonly version: boolean
  /** Serve the local network. */
  readonly lan: boolean
  /** The settings among them. They take precedence over environment variables. */
  readonly options: Pick<CountersignOptions, 'port' | 'host' | 'store'>
}

/** The arguments: switches, and settings that are named as the options in code. */
const known = {
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
  lan: { type: 'boolean' },
  port: { type: 'string' },
  host: { type: 'string' },
  store: { type: 'string' },
} as const

/** An argument as parseArgs reads it; `inlineValue` is for "--name=value". */
interface Given {
  readonly name: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

/**
 * Reads the arguments of the command that starts the service. Throws a `UsageError` if one is unknown, lacks its value,
 * has one that does not fit, or contradicts another.
 */
export function readCommandLine(args: readonly string[]): CommandLine {
  const switches = { help: false, version: false, lan: false }
  const texts = new Map<string, string>()
  // Not strict: what it would say of an unknown argument advises on things that this command does not have.
  const { tokens } = parseArgs({ args: [...args], options: known, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    const name = token.kind === 'option' ? token.name : token.value
    if (token.kind === 'option' && isSetting(name)) {
      if (texts.has(name)) throw new UsageError(`--${name} stands twice`)
      texts.set(name, readValue(token))
    } else if (token.kind === 'option' ? isSwitch(name) && token.value === undefined : name === 'help') {
      switches[name as keyof typeof switches] = true
    } else throw new UsageError(`unknown argument ${JSON.stringify(args[token.index])}; --help shows those there are`)
  }
  if (switches.lan && texts.has('host')) {
    throw new UsageError('--host and --lan exclude each other: with --lan the service listens on all interfaces')
  }
  return { ...switches, options: optionsOf(texts) }
}

function isSwitch(name: string): boolean {
  return Object.hasOwn(known, name) && !isSetting(name)
}

function isSetting(name: string): boolean {
  return name === 'port' || name === 'host' || name === 'store'
}

/** The value of an argument that needs one. */
function readValue({ name, value, inlineValue }: Given): string {
  // parseArgs takes the next argument, be it another option. A value that begins with a hyphen is written "--store=-x".
  if (value === undefined || (inlineValue !== true && value.startsWith('-'))) {
    throw new UsageError(`--${name} needs a value`)
  }
  // As from a variable of the shell that is not set: the default would be in force unnoticed.
  if (value === '') throw new UsageError(`--${name} is empty`)
  return value
}

/** The options that texts set, under the rules of the settings. */
function optionsOf(texts: ReadonlyMap<string, string>): CommandLine['options'] {
  const options: Record<string, unknown> = {}
  for (const { name, option } of allOptions) {
    const { kind } = option
    const text = texts.get(name)
    if (text === undefined) continue
    options[name] = kind.read === undefined ? text : kind.read(text)
    kind.check(options[name] as never, (got) => {
      const repeated = got === undefined ? '' : `, not ${JSON.stringify(text)}`
      throw new UsageError(`--${name} must be ${kind.expected}${repeated}`)
    })
  }
  return options as CommandLine['options']
}
