import { commit, version } from '../base/version.ts'
import { helpRows, readCommandLine, SettingsError, type Streams, UsageError, usageHint } from './command-line.ts'

/** A command that is named by the first argument, such as `verify`. */
interface Subcommand {
  readonly name: string
  /** What it does, for the help: completes "countersign {name}". */
  readonly about: string
  /** Loads it. What it needs is loaded only if it is asked for. */
  readonly load: () => Promise<RunSubcommand>
}

/** Runs a command with the arguments behind its name. Resolves with the exit code; 2 is for wrong usage. */
type RunSubcommand = (args: readonly string[], streams: Streams) => Promise<number>

/** The commands other than the one that starts the service. A new one is a row here. */
const subcommands: readonly Subcommand[] = [
  {
    name: 'verify',
    about: 'verifies a proof artifact, without a service',
    load: async () => (await import('./verify.ts')).verifyCommand,
  },
  {
    name: 'admin',
    about: 'finds, blocks, moves and deletes users and wallets in the store',
    load: async () => (await import('./admin/admin.ts')).adminCommand,
  },
  {
    name: 'doctor',
    about: 'checks your setup and tells you how to fix it',
    load: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  },
  {
    name: 'backup',
    about: 'copies the embedded store to a file, while the service runs',
    load: async () => (await import('./backup.ts')).backupCommand,
  },
  {
    name: 'restore',
    about: 'puts such a copy in the place of the embedded store',
    load: async () => (await import('./backup.ts')).restoreCommand,
  },
]

/** The options of the service. */
const optionRows = [
  ['--port PORT', 'port to listen on; 0 picks a free one (variable PORT, default 8080)'],
  ['--host HOST', 'host name or address to listen on (variable HOST, default localhost)'],
  [
    '--store STORE',
    'where state is kept, such as sqlite:./countersign.db or redis://localhost:6379 (variable COUNTERSIGN_STORE); ' +
      'set the variable instead if it has a password: other users of the machine can see arguments',
  ],
  [
    '--lan',
    'for trying it out with a phone: listens on all interfaces, makes the address of this machine in the local ' +
      'network the address of the service if COUNTERSIGN_PUBLIC_URL is not set, and offers the demo wallet',
  ],
  ['--version', 'prints the version, and the commit that it was built from'],
  ['--help, -h', 'shows this text'],
] as const

const commandRows = [
  ...subcommands.map(({ name, about }) => [name, about] as const),
  ['help COMMAND', 'shows the help of a command'] as const,
]

const helpText = `To begin, run countersign (in a checkout: npm start) and open its address.

Countersign ${version}: wallet sign-in and cross-device approval

Usage: countersign [options]              starts the service
       countersign COMMAND [arguments]    runs another command

Options:
${helpRows(optionRows, 13)}

Commands:
${helpRows(commandRows, 13)}

All settings are environment variables, such as COUNTERSIGN_PUBLIC_URL and
COUNTERSIGN_SECRET; docs/settings.md lists them. Options take precedence over
them. LOG_LEVEL is debug, info (the default), warn or error. The exit code is
2 for wrong usage, 78 for wrong settings, and 1 for other failures.
`

/** EX_CONFIG of BSD's sysexits.h. */
const exitOnWrongSettings = 78

/**
 * Runs the command `countersign`. Resolves with the exit code: 2 for arguments that are wrong, 78 for settings that are
 * wrong, 1 for other failures, each of which is one line on standard error. With 0, a service that it started goes on
 * until a signal stops it.
 */
export async function runCommand(args: readonly string[], streams: Streams): Promise<number> {
  const { stdout, stderr } = streams
  // Lines are dropped once the reader has gone. Without a listener, the error would end the process.
  for (const stream of [stdout, stderr]) stream.on('error', () => {})
  try {
    return await dispatch(args, streams)
  } catch (error) {
    const hint = error instanceof UsageError ? usageHint : ''
    stderr.write(`countersign: ${error instanceof Error ? error.message : String(error)}${hint}\n`)
    return error instanceof UsageError ? 2 : error instanceof SettingsError ? exitOnWrongSettings : 1
  }
}

async function dispatch(args: readonly string[], streams: Streams): Promise<number> {
  const [name, ...rest] = args
  const topic = name === 'help' && rest.length === 1 ? find(rest[0]) : undefined
  if (topic !== undefined) return await dispatch([topic.name, '--help'], streams)
  const subcommand = find(name)
  if (subcommand !== undefined) {
    const run = await subcommand.load()
    return await run(rest, streams)
  }
  const asked = readCommandLine(args)
  if (asked.help) streams.stdout.write(helpText)
  else if (asked.version)
    streams.stdout.write(commit === undefined ? `${version}\n` : `${version} (commit ${commit})\n`)
  else {
    const { startService } = await import('./service.ts')
    await startService(asked)
  }
  return 0
}

function find(wanted: string | undefined): Subcommand | undefined {
  return subcommands.find(({ name }) => name === wanted)
}
