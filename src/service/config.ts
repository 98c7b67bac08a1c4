import { closeSync, openSync, readSync } from 'node:fs'
import { requireSuitableNode } from '../base/node-version.js'
import { isLoopbackHost } from '../shared/origin.ts'
import {
  type CountersignOptions,
  type FlatOptions,
  grouped,
  nameInCode,
  type Option,
  optionRows,
  type Row,
  type Settings,
} from './config/options.ts'

export type {
  AccessTokenOptions,
  CountersignOptions,
  FlatOptions,
  LimitOptions,
  MetricsOptions,
  OidcOptions,
  PageOptions,
  RedisOptions,
  Settings,
  TlsOptions,
  WebhookOptions,
} from './config/options.ts'

/**
 * Checks options and fills in the defaults. Throws a `TypeError` of one line if one does not fit, or if Node.js is too
 * old. `nameOf` returns the names of options in messages.
 */
export function resolveSettings(options: FlatOptions = {}, nameOf: (option: Option) => string = nameInCode): Settings {
  requireSuitableNode()
  const known = new Set<string>(optionRows.map(([option]) => option))
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw new TypeError(`${name} is not an option of Countersign`)
  }
  const settings: Partial<Record<Option, unknown>> = {}
  for (const [option, row] of optionRows)
    settings[option] = resolve({ name: nameOf(option), row, given: options[option], resolved: settings })
  // Each value was returned by its own row's check.
  return withoutContradiction(settings as Settings)
}

/** Refuses settings that fit each by itself, but not together. */
function withoutContradiction(settings: Settings): Settings {
  const { demoWallet, publicUrl, port, metrics, metricsPort, tlsCert } = settings
  if (tlsCert !== undefined && publicUrl?.startsWith('http:')) {
    throw new TypeError(
      `publicUrl (COUNTERSIGN_PUBLIC_URL) must be https if tls.cert (COUNTERSIGN_TLS_CERT) is set, not ${publicUrl}: the port then takes TLS only`,
    )
  }
  if (demoWallet && isHttps(settings)) {
    throw new TypeError(
      `pages.demoWallet (COUNTERSIGN_DEMO_WALLET) must be off if publicUrl is https, as ${publicUrl ?? 'that of a port with TLS'} is: people would sign in with keys that lie unprotected in their browsers`,
    )
  }
  if (metricsPort !== undefined && metricsPort !== 0 && metricsPort === port) {
    throw new TypeError(
      `metrics.port (COUNTERSIGN_METRICS_PORT) must be another port than port (PORT), not ${port} too: metrics are not for the public`,
    )
  }
  if (metrics === false && metricsPort !== undefined) {
    throw new TypeError(
      'metrics.collect must not be false if metrics.port (COUNTERSIGN_METRICS_PORT) is set; leave one of the two out',
    )
  }
  return settings
}

/** Whether metrics are collected: if the option does not say, if they have a port. */
export function collectsMetrics({ metrics, metricsPort }: Pick<Settings, 'metrics' | 'metricsPort'>): boolean {
  return metrics ?? metricsPort !== undefined
}

/** Whether people reach the service by https: publicUrl says so, or by default whether the port takes TLS. */
export function isHttps({ publicUrl, tlsCert }: Partial<Pick<Settings, 'publicUrl' | 'tlsCert'>>): boolean {
  return publicUrl === undefined ? tlsCert !== undefined : URL.parse(publicUrl)?.protocol === 'https:'
}

/** Whether the pages offer the demo wallet. If the option does not say, on http at a loopback address. */
export function offersDemoWallet(settings: Pick<Settings, 'demoWallet' | 'publicUrl' | 'tlsCert'>): boolean {
  const { demoWallet, publicUrl } = settings
  return demoWallet ?? (publicUrl === undefined ? !isHttps(settings) : isLoopbackHttp(publicUrl))
}

/** Whether the service keeps the users itself. If not, it has no accounts to show and no wallets to link. */
export function keepsUsers({ sessionHost, resolveLogin }: Pick<Settings, 'sessionHost' | 'resolveLogin'>): boolean {
  return sessionHost === undefined && resolveLogin === undefined
}

/** The ids of the configured adapters, in their order. */
export function adapterIdsOf({ adapters }: Pick<Settings, 'adapters'>): readonly string[] {
  return adapters.map((adapter) => (typeof adapter === 'string' ? adapter : adapter.id))
}

/** Whether an address is an http one that only the machine itself can reach. */
export function isLoopbackHttp(address: string): boolean {
  const url = URL.parse(address)
  return url?.protocol === 'http:' && isLoopbackHost(url.hostname)
}

/** An option that is resolved. */
interface Resolving {
  /** Its name, as messages call it. */
  readonly name: string
  readonly row: Row
  readonly given: unknown
  /** The options further up in the table. */
  readonly resolved: Readonly<Partial<Record<Option, unknown>>>
}

/** The value of one option. */
function resolve({ name, row, given, resolved }: Resolving): unknown {
  const { variable, kind, notBelow } = row
  const refuse = (expected: string, got: unknown): never => {
    const names = variable === undefined ? name : `${name} (${variable})`
    throw new TypeError(`${names} must be ${expected}${got === undefined ? '' : `, not ${shown(got)}`}`)
  }
  const floor = notBelow === undefined ? undefined : Number(resolved[notBelow])
  const value = given ?? (floor === undefined ? row.default : Math.max(Number(row.default), floor))
  if (value === undefined) return undefined
  const checked = kind.check(value as never, (got) => refuse(kind.expected, got))
  if (floor !== undefined && Number(checked) < floor) refuse(`${notBelow} (${floor}) or more`, checked)
  return checked
}

/** A refused value, in one line. */
function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** Environment variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The options that environment variables set. An empty variable counts as unset. A secret can also be in a file that a
 * variable names whose name ends in `_FILE`, such as COUNTERSIGN_SECRET_FILE.
 *
 * @throws TypeError of one line if such a file cannot be read, or the variable is set beside it.
 */
export function optionsFromEnvironment(environment: Environment): CountersignOptions {
  return grouped(flatFromEnvironment(environment))
}

/** As {@link optionsFromEnvironment}, without groups. */
export function flatFromEnvironment(environment: Environment): FlatOptions {
  const options: Partial<Record<Option, unknown>> = {}
  for (const [option, row] of optionRows) {
    const text = textOf(row, environment)
    if (text !== undefined) options[option] = row.kind.read === undefined ? text : row.kind.read(text)
  }
  // Text that a reader could not make sense of is passed on: the check of its option refuses it.
  return options as FlatOptions
}

/** The text of an option's variable, or of the file that a variable names instead; `undefined` if neither is set. */
function textOf({ variable, fromFile, kind }: Row, environment: Environment): string | undefined {
  if (variable === undefined) return undefined
  const given = (name: string): string | undefined => environment[name]?.trim() || undefined
  const text = given(variable)
  const file = fromFile === true ? given(fileVariable(variable)) : undefined
  if (file === undefined) return text
  if (text !== undefined) throw new TypeError(`${variable} and ${fileVariable(variable)} must not both be set`)
  return readSecretFile(fileVariable(variable), file, kind.read !== undefined)
}

/** The options that a file has, named by a variable whose name ends in `_FILE`. */
export function optionsInFiles(environment: Environment): Option[] {
  return optionRows
    .filter(([, { variable, fromFile }]) => fromFile === true && environment[fileVariable(variable ?? '')]?.trim())
    .map(([option]) => option)
}

/** A variable that looks like a setting but is none. */
export interface UnknownVariable {
  readonly name: string
  /** The setting that was probably meant. */
  readonly similar: string | undefined
}

/**
 * Variables that look like settings but are not: most likely misspelt, so that a default is in force unnoticed.
 * Variables that Kubernetes sets for a service named countersign are left out.
 */
export function unknownVariables(environment: Environment): UnknownVariable[] {
  const known = optionRows.flatMap(([, { variable, fromFile }]) =>
    variable === undefined ? [] : fromFile === true ? [variable, fileVariable(variable)] : [variable],
  )
  return Object.keys(environment)
    .filter((name) => name.startsWith('COUNTERSIGN_') && !known.includes(name))
    .filter((name) => !/^COUNTERSIGN_(SERVICE|PORT)(_|$)/.test(name))
    .map((name) => ({ name, similar: known.find((other) => edits(name, other) <= 2) }))
}

/** Number of letters to insert, delete or replace that make one text of another. */
function edits(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, length) => length)
  for (let i = 0; i < one.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < other.length; j++) {
      const replaced = (row[j] as number) + (one[i] === other[j] ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] as number) + 1, (next[j] as number) + 1))
    }
    row = next
  }
  return row[other.length] as number
}

/** Most bytes of a file with a secret: what is larger is another file. */
const maxSecretFileBytes = 64 * 1024

/** The variable that names a file with the value of another variable. */
export function fileVariable(variable: string): string {
  return `${variable}_FILE`
}

/**
 * The value in a file that a variable names, without the line break at its end. If it is a list, each line can have an
 * entry, or several with commas between them; empty lines do not count.
 *
 * @throws TypeError of one line, which repeats nothing of the file, if it cannot be read, is empty, or has more than 64
 * KiB.
 */
function readSecretFile(variable: string, file: string, isList: boolean): string {
  const text = readText(variable, file)
  const value = isList ? entriesOf(text).join(',') : text.replace(/\r?\n$/, '')
  if (value.trim() === '')
    throw new TypeError(`${variable} must name a file with a value in it; ${shownFile(file)} is empty`)
  return value
}

/** The lines, without commas at their ends: they are put between them. */
function entriesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim().replace(/\s*,$/, ''))
    .filter((line) => line !== '')
}

/** Reads in pieces, because the size of a pipe or a device is not known before. */
function readText(variable: string, file: string): string {
  const bytes = Buffer.alloc(maxSecretFileBytes + 1)
  let length = 0
  try {
    const descriptor = openSync(file, 'r')
    try {
      for (let read = -1; read !== 0 && length < bytes.length; length += read) {
        read = readSync(descriptor, bytes, length, bytes.length - length, null)
      }
    } finally {
      closeSync(descriptor)
    }
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    throw new TypeError(`${variable} must name a file that can be read; ${shownFile(file)} cannot be: ${code}`)
  }
  if (length > maxSecretFileBytes) {
    throw new TypeError(
      `${variable} must name a file of at most ${maxSecretFileBytes} bytes; ${shownFile(file)} has more`,
    )
  }
  // Drops the byte order mark that some editors put first.
  return new TextDecoder().decode(bytes.subarray(0, length))
}

/** What does not look like a path could be the secret itself, put into the wrong variable. */
function shownFile(file: string): string {
  return /^(\.{0,2}\/|[A-Za-z]:\\)/.test(file) ? file : 'what it names (not shown: it could be the secret itself)'
}
