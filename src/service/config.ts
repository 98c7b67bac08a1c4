import { closeSync, openSync, readSync } from 'node:fs'
import type { CountersignOptions } from '../../gen/options.ts'
import { requireSuitableNode } from '../base/node-version.js'
import { isLoopbackHost } from '../shared/origin.ts'
import { type Group, isGroup, type Option } from './config/option-types.ts'
import { type Given, type Settings, tree } from './config/options.ts'

export type {
  AccessTokenOptions,
  CountersignOptions,
  LimitOptions,
  MetricsOptions,
  OidcOptions,
  PageOptions,
  RedisOptions,
  TlsOptions,
  WebhookOptions,
} from '../../gen/options.ts'
export type { Settings } from './config/options.ts'

/** An option, and where it is. */
export interface NamedOption {
  /** Its name in code, such as `tls.cert`; that of its group if only true or false in place of the group sets it. */
  readonly name: string
  /** Its group, if it is in one. */
  readonly group: string | undefined
  /** Its name in the group. */
  readonly key: string
  readonly option: Option
}

/** Every option, in the order of the table. */
export const allOptions: readonly NamedOption[] = Object.entries<Option | Group>(tree).flatMap(([name, entry]) =>
  isGroup(entry) ? optionsOf(name, entry) : [{ name, group: undefined, key: name, option: entry }],
)

function optionsOf(group: string, { options }: Group): NamedOption[] {
  return Object.entries(options).map(([key, option]) => ({
    name: option.ofGroup === 'only' ? group : `${group}.${key}`,
    group,
    key,
    option,
  }))
}

/**
 * Checks options and fills in the defaults. Throws a `TypeError` of one line if one does not fit, or if Node.js is too
 * old.
 */
export function resolveSettings(options: CountersignOptions = {}): Settings {
  requireSuitableNode()
  refuseUnknown(Object.keys(options), (name) => Object.hasOwn(tree, name))
  const typed: Given = options
  const given: Readonly<Record<string, unknown>> = { ...typed }
  const settings: Record<string, unknown> = {}
  for (const [name, entry] of Object.entries<Option | Group>(tree)) {
    if (!isGroup(entry)) {
      settings[name] = resolve({ name, option: entry, given: given[name], resolved: settings })
      continue
    }
    const members = optionsOf(name, entry)
    const values = valuesOf(name, members, given[name])
    settings[name] = Object.fromEntries(
      members.map((member) => [member.key, resolve({ ...member, given: values[member.key], resolved: settings })]),
    )
  }
  // Each value was returned by its own option's check.
  return withoutContradiction(settings as unknown as Settings)
}

/** The values that a group is given by the names of its options. */
function valuesOf(group: string, members: readonly NamedOption[], given: unknown): Readonly<Record<string, unknown>> {
  const inPlace = members.find(({ option }) => option.ofGroup !== undefined)
  // As with an option, null counts as unset.
  if (given === undefined || given === null) return {}
  if (inPlace !== undefined && typeof given === 'boolean') return { [inPlace.key]: given }
  const named = members.filter(({ option }) => option.ofGroup !== 'only').map(({ key }) => key)
  if (Object.prototype.toString.call(given) !== '[object Object]') {
    const flag = inPlace === undefined ? '' : ', or true or false (on or off)'
    throw new TypeError(
      `${withVariable(group, inPlace?.option.variable)} must be an object with ${named.join(', ')}${flag}`,
    )
  }
  refuseUnknown(Object.keys(given as object), (name) => named.includes(name), `${group}.`)
  return given as Readonly<Record<string, unknown>>
}

function refuseUnknown(names: readonly string[], isKnown: (name: string) => boolean, prefix = ''): void {
  const unknown = names.find((name) => !isKnown(name))
  if (unknown !== undefined) throw new TypeError(`${prefix}${unknown} is not an option of Countersign`)
}

/** Refuses settings that fit each by itself, but not together. */
function withoutContradiction(settings: Settings): Settings {
  const { pages, publicUrl, port, metrics, tls } = settings
  if (tls.cert !== undefined && publicUrl?.startsWith('http:')) {
    throw new TypeError(
      'publicUrl (COUNTERSIGN_PUBLIC_URL) must be https if tls.cert (COUNTERSIGN_TLS_CERT) is set, not ' +
        `${publicUrl}: the port then takes TLS only`,
    )
  }
  if (pages.demoWallet && isHttps(settings)) {
    throw new TypeError(
      'pages.demoWallet (COUNTERSIGN_DEMO_WALLET) must be off if publicUrl is https, as ' +
        `${publicUrl ?? 'that of a port with TLS'} is: people would sign in with keys that lie unprotected in ` +
        'their browsers',
    )
  }
  if (metrics.port !== undefined && metrics.port !== 0 && metrics.port === port) {
    throw new TypeError(
      `metrics.port (COUNTERSIGN_METRICS_PORT) must be another port than port (PORT), not ${port} too: metrics ` +
        'are not for the public',
    )
  }
  if (metrics.collect === false && metrics.port !== undefined) {
    throw new TypeError(
      'metrics.collect must not be false if metrics.port (COUNTERSIGN_METRICS_PORT) is set; leave one of the two out',
    )
  }
  return settings
}

/** Whether metrics are collected: if the option does not say, if they have a port. */
export function collectsMetrics({ metrics }: Pick<Settings, 'metrics'>): boolean {
  return metrics.collect ?? metrics.port !== undefined
}

/** Whether people reach the service by https: publicUrl says so, or by default whether the port takes TLS. */
export function isHttps({
  publicUrl,
  tls,
}: {
  readonly publicUrl?: string | undefined
  readonly tls?: { readonly cert?: string | undefined }
}): boolean {
  return publicUrl === undefined ? tls?.cert !== undefined : URL.parse(publicUrl)?.protocol === 'https:'
}

/** Whether the pages offer the demo wallet. If the option does not say, on http at a loopback address. */
export function offersDemoWallet(settings: Settings): boolean {
  const { pages, publicUrl } = settings
  return pages.demoWallet ?? (publicUrl === undefined ? !isHttps(settings) : isLoopbackHttp(publicUrl))
}

/** Whether the service keeps the users itself. If not, it has no accounts to show and no wallets to link. */
export function keepsUsers({ sessionHost, resolveLogin }: Pick<Settings, 'sessionHost' | 'resolveLogin'>): boolean {
  return sessionHost === undefined && resolveLogin === undefined
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
  readonly option: Option
  readonly given: unknown
  /** The options further up in the table. */
  readonly resolved: Readonly<Record<string, unknown>>
}

/** The value of one option. */
function resolve({ name, option, given, resolved }: Resolving): unknown {
  const { variable, kind, notBelow } = option
  const refuse = (expected: string, got: unknown): never => {
    throw new TypeError(
      `${withVariable(name, variable)} must be ${expected}${got === undefined ? '' : `, not ${shown(got)}`}`,
    )
  }
  const floor = notBelow === undefined ? undefined : Number(resolved[notBelow])
  const value = given ?? (floor === undefined ? option.default : Math.max(Number(option.default), floor))
  if (value === undefined) return undefined
  const checked = kind.check(value as never, (got) => refuse(kind.expected, got))
  if (floor !== undefined && Number(checked) < floor) refuse(`${notBelow} (${floor}) or more`, checked)
  return checked
}

/** The name of an option, with its variable. */
function withVariable(name: string, variable: string | undefined): string {
  return variable === undefined ? name : `${name} (${variable})`
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
 * @throws TypeError of one line if such a file cannot be read, or if the variable is set as well.
 */
export function optionsFromEnvironment(environment: Environment): CountersignOptions {
  const options: Record<string, unknown> = {}
  for (const { name, group, key, option } of allOptions) {
    const text = textOf(option, environment)
    if (text === undefined) continue
    const value = option.kind.read === undefined ? text : option.kind.read(text)
    if (group !== undefined) options[group] ??= {}
    const place = group === undefined ? options : options[group]
    if (option.ofGroup !== 'only') {
      if (typeof place === 'object') Object.assign(place as object, { [key]: value })
    } else if (value !== true) {
      // In place of the whole group: what else is set of it has no effect.
      options[name] = value
    }
  }
  // Text that a reader could not make sense of is passed on: the check of its option refuses it.
  return options as CountersignOptions
}

/** The text of an option's variable, or of the file that a variable names instead; `undefined` if neither is set. */
function textOf({ variable, fromFile, kind }: Option, environment: Environment): string | undefined {
  if (variable === undefined) return undefined
  const given = (name: string): string | undefined => environment[name]?.trim() || undefined
  const text = given(variable)
  const file = fromFile === true ? given(fileVariable(variable)) : undefined
  if (file === undefined) return text
  if (text !== undefined) throw new TypeError(`${variable} and ${fileVariable(variable)} must not both be set`)
  return readSecretFile(fileVariable(variable), file, kind.read !== undefined)
}

/** The options that a file has, named by a variable whose name ends in `_FILE`. */
export function optionsInFiles(environment: Environment): NamedOption[] {
  return allOptions.filter(
    ({ option: { variable, fromFile } }) => fromFile === true && environment[fileVariable(variable ?? '')]?.trim(),
  )
}

/** What options say of one. */
export function givenFor(options: CountersignOptions, { group, key }: NamedOption): unknown {
  const values = group === undefined ? options : options[group as keyof CountersignOptions]
  return (values as Readonly<Record<string, unknown>> | undefined)?.[key]
}

/**
 * Variables that look like settings but are not, each with the setting that was probably meant: most likely misspelt,
 * so that a default is in force unnoticed.
 * Variables that Kubernetes sets for a service named countersign are left out.
 */
export function unknownVariables(environment: Environment) {
  const known = allOptions.flatMap(({ option: { variable, fromFile } }) =>
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
