import { version } from '../../base/version.ts'
import { httpOrigin } from '../../service/config/kinds.ts'
import { optionsFromEnvironment, resolveSettings } from '../../service/config.ts'
import { given } from '../../shared/defined-fields.ts'
import { parseOrigin } from '../../shared/origin.ts'
import {
  counted,
  readArguments,
  readServiceArguments,
  type Streams,
  serviceOptions,
  UsageError,
} from '../command-line.ts'
import { ok, type Result, runChecks, type Status, skipped } from './check.ts'
import { checks } from './checks.ts'
import { readSetup } from './setup.ts'

const helpText = `Usage: countersign doctor [options]

Checks your setup and tells you how to fix it. It reads the settings of the service, from the same
environment variables, and can be run before the service starts and beside it. The exit code is 0 if
there is no problem, 1 if there is one, and 2 for wrong usage. Warnings and skipped checks do not
change it.

  --json           prints the results as JSON
  --url URL        further address at which people reach the service, such as one that forward auth
                   protects; can be repeated
  --origin ORIGIN  origin of pages that are to sign users in, such as https://app.example; can be repeated
  --sql            prints the statements that make the tables of a store in PostgreSQL, for an
                   administrator to run where the service's user may not
  --port PORT      as for the service, as are:
  --host HOST
  --store STORE
  --lan
  --help           shows this text
`

/** Arguments of `doctor`, read. */
type DoctorArguments = ReturnType<typeof readDoctorArguments>

/**
 * Runs the command `doctor` with the arguments behind its name. Resolves with the exit code: 0 without problems, 1 with
 * some. Rejects with a `UsageError` for arguments that are wrong.
 */
export async function doctorCommand(args: readonly string[], { stdout }: Streams): Promise<number> {
  const asked = readDoctorArguments(args)
  if (asked.help) {
    stdout.write(helpText)
    return 0
  }
  if (asked.sql) {
    stdout.write(await sqlOf(asked))
    return 0
  }
  const results = await examine(asked)
  const isFit = results.every(({ status }) => status !== 'problem')
  stdout.write(asked.json ? `${JSON.stringify({ ok: isFit, version, checks: results })}\n` : textReport(results))
  return isFit ? 0 : 1
}

const options = {
  ...serviceOptions,
  json: { type: 'boolean' },
  sql: { type: 'boolean' },
  url: { type: 'string', multiple: true },
  origin: { type: 'string', multiple: true },
} as const

function readDoctorArguments(args: readonly string[]) {
  const given = readArguments(args, options)
  const { json = false, sql = false, url = [], origin = [] } = given.values
  const urls = url.map((text) => httpOrigin.check(text, () => refuse('url', httpOrigin.expected)))
  const origins = origin.map((text) => parseOrigin(text) ?? refuse('origin', 'an origin such as https://app.example'))
  return { ...readServiceArguments(given), json, sql, urls, origins }
}

function refuse(name: string, expected: string): never {
  // Not repeated: an address can contain a password.
  throw new UsageError(`--${name} must be ${expected}`)
}

/** The statements that make the tables for the user of the store's address. */
async function sqlOf({ options }: DoctorArguments): Promise<string> {
  const { store } = resolveSettings({ ...optionsFromEnvironment(process.env), ...options })
  if (typeof store !== 'string' || !store.startsWith('postgres')) {
    throw new UsageError('--sql needs a store in PostgreSQL (COUNTERSIGN_STORE or --store)')
  }
  const [{ schemaSql }, { parsePostgresUrl }] = await Promise.all([
    import('../../store/postgres/schema.ts'),
    import('../../store/postgres/url.ts'),
  ])
  return schemaSql(parsePostgresUrl(store).user)
}

async function examine({ options: ofArguments, ...asked }: DoctorArguments): Promise<readonly Result[]> {
  const environment = process.env
  const options = { ...optionsFromEnvironment(environment), ...ofArguments }
  const { findings, setup } = await readSetup({ ...asked, environment, options })
  const results: Result[] = [
    { check: 'node', ...ok(`Node.js ${process.versions.node}`) },
    ...findings.map((finding) => ({ check: 'configuration', ...finding })),
  ]
  if (setup === undefined) {
    const why = skipped('because of the problem of "configuration"')
    results.push(...checks.map(({ name }) => ({ check: name, ...why })))
  } else {
    results.push(...(await runChecks(checks, setup).finally(() => setup.end())))
  }
  return results.map(({ fix, ...result }) => ({
    ...result,
    saw: clean(result.saw),
    ...given({ fix: fix && clean(fix) }),
  }))
}

/**
 * One line without control characters, and without the user and password of an address, wherever the text comes from.
 */
function clean(text: string): string {
  return text
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .replaceAll(/\/\/[^\s/@"']*@/g, '//')
    .trim()
}

const marks: Record<Status, string> = { ok: '✓', warning: '!', problem: '✗', skipped: '-' }

/** Width of the longest status, and of the longest name of a check. */
const statusWidth = 'problem'.length
const nameWidth = 'forwarded headers'.length

/** The report for people: a line for each result, one below it that says how to fix it, and a sum. */
function textReport(results: readonly Result[]): string {
  const lines = results.flatMap(({ check, status, saw, fix }) => {
    const head = `${marks[status]} ${status.padEnd(statusWidth)}  ${check.padEnd(nameWidth)}  `
    return [head + saw, ...(fix === undefined ? [] : [' '.repeat(head.length) + fix])]
  })
  const count = (status: Status): number => results.filter((result) => result.status === status).length
  const sum = [
    counted(count('problem'), 'problem'),
    counted(count('warning'), 'warning'),
    `${count('skipped')} skipped`,
  ]
  return `${[...lines, '', sum.join(', ')].join('\n')}\n`
}
