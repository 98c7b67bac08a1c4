import { httpOrigin } from '../../config/kinds.ts'
import { optionsFromEnvironment } from '../../config.ts'
import { type CommandLine, readCommandLine } from '../command-line.ts'
import { type Streams, UsageError } from '../subcommand.ts'
import { ok, type Result, skipped } from './check.ts'
import { checks } from './checks.ts'
import { checkConfiguration } from './configuration.ts'
import { Examination } from './examination.ts'
import { isFit, jsonReport, textReport } from './report.ts'
import { runChecks } from './run.ts'

const helpText = `Usage: countersign doctor [options]

Looks for what is wrong with a setup, and says how to mend it. It reads the settings of the service, from the same environment
variables, and can be run before the service starts and beside it. The exit code is 0 if there is no problem, 1 if there is
one, and 2 for wrong usage. Warnings and skipped checks do not change it.

  --json         prints the results as JSON
  --url URL      further address at which people reach the service, such as one that forward auth protects; can be repeated
  --port PORT    as for the service, as are:
  --host HOST
  --store STORE
  --lan
  --help         shows this text
`

/** What the arguments ask for. */
interface Asked extends CommandLine {
  readonly json: boolean
  readonly urls: readonly string[]
}

/**
 * Runs the command `doctor` with the arguments behind its name. Resolves with the exit code: 0 without problems, 1 with some. Rejects
 * with a `UsageError` for arguments that are wrong.
 */
export async function doctorCommand(args: readonly string[], { stdout }: Streams): Promise<number> {
  const asked = readArguments(args)
  if (asked.help) {
    stdout.write(helpText)
    return 0
  }
  const results = await examine(asked)
  stdout.write(asked.json ? jsonReport(results) : textReport(results))
  return isFit(results) ? 0 : 1
}

/** The arguments of the service, and two more. */
function readArguments(args: readonly string[]): Asked {
  const others: string[] = []
  const urls: string[] = []
  let json = false
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string
    if (arg === '--json') json = true
    else if (arg === '--url') urls.push(originOf(args[++i]))
    else if (arg.startsWith('--url=')) urls.push(originOf(arg.slice('--url='.length)))
    else others.push(arg)
  }
  const read = readCommandLine(others)
  if (read.version) throw new UsageError('unknown argument "--version"; --help shows those there are')
  return { ...read, json, urls }
}

function originOf(text: string | undefined): string {
  // Not repeated: an address can contain a password.
  return httpOrigin.check(text ?? '', () => {
    throw new UsageError(`--url must be ${httpOrigin.expected}`)
  })
}

async function examine({ options: given, lan, urls }: Asked): Promise<readonly Result[]> {
  const { env } = process
  const node: Result = { check: 'node', ...ok(`Node.js ${process.versions.node}`) }
  const options = { ...optionsFromEnvironment(env), ...given }
  const { findings, configuration } = await checkConfiguration({ environment: env, options, lan })
  const first = [node, ...findings.map((finding) => ({ check: 'configuration', ...finding }))]
  if (configuration === undefined) {
    const why = skipped('because of the problem of "configuration"')
    return [...first, ...checks.map(({ name }) => ({ check: name, ...why }))]
  }
  const examination = new Examination(configuration, urls)
  try {
    return [...first, ...(await runChecks(checks, examination))]
  } finally {
    await examination.end()
  }
}
