import { type CountersignOptions, type Option, optionRows, type Row, type Settings } from './config/options.ts'
import { isLoopbackHost } from './origin.ts'

export type { CountersignOptions, Settings } from './config/options.ts'

/** Checks options and fills in the defaults. Throws a `TypeError` of one line if one does not fit. */
export function resolveSettings(options: CountersignOptions = {}): Settings {
  const known = new Set<string>(optionRows.map(([option]) => option))
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw new TypeError(`${name} is not an option of Countersign`)
  }
  const settings: Partial<Record<Option, unknown>> = {}
  for (const [option, row] of optionRows) settings[option] = resolve(option, row, options[option], settings)
  // Each value was returned by its own row's check.
  return withoutContradiction(settings as Settings)
}

/** Refuses settings that fit each by itself, but not together. */
function withoutContradiction(settings: Settings): Settings {
  const { demoWallet, publicUrl } = settings
  if (demoWallet && publicUrl?.startsWith('https:')) {
    throw new TypeError(
      `demoWallet (COUNTERSIGN_DEMO_WALLET) must be off if publicUrl is https, as ${publicUrl} is: people would sign in with keys that lie unprotected in their browsers`,
    )
  }
  return settings
}

/** Whether the pages offer the demo wallet. If the option does not say, on http at a loopback address. */
export function offersDemoWallet({ demoWallet, publicUrl }: Pick<Settings, 'demoWallet' | 'publicUrl'>): boolean {
  return demoWallet ?? (publicUrl === undefined || isLoopbackHttp(publicUrl))
}

/** Whether an address is an http one that only the machine itself can reach. */
export function isLoopbackHttp(address: string): boolean {
  const url = URL.parse(address)
  return url?.protocol === 'http:' && isLoopbackHost(url.hostname)
}

/** The value of one option; `resolved` holds those further up in the table. */
function resolve(option: Option, row: Row, given: unknown, resolved: Partial<Record<Option, unknown>>): unknown {
  const { variable, kind, notBelow } = row
  const refuse = (expected: string, got: unknown): never => {
    const names = variable === undefined ? option : `${option} (${variable})`
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

/** The options that environment variables set. An empty variable counts as unset. */
export function optionsFromEnvironment(environment: Environment): CountersignOptions {
  const options: Partial<Record<Option, unknown>> = {}
  for (const [option, { variable, kind }] of optionRows) {
    const text = variable === undefined ? undefined : environment[variable]?.trim()
    if (text !== undefined && text !== '') options[option] = kind.read === undefined ? text : kind.read(text)
  }
  // Text that a reader could not make sense of is passed on: the check of its option refuses it.
  return options as CountersignOptions
}

/**
 * Names of variables that look like settings but are not: most likely misspelt, so that a default is in force
 * unnoticed. Variables that Kubernetes sets for a service named countersign are left out.
 */
export function unknownVariables(environment: Environment): string[] {
  const known = new Set(optionRows.map(([, { variable }]) => variable))
  return Object.keys(environment)
    .filter((name) => name.startsWith('COUNTERSIGN_') && !known.has(name))
    .filter((name) => !/^COUNTERSIGN_(SERVICE|PORT)(_|$)/.test(name))
}
