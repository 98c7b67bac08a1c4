import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import type { Readable } from 'node:stream'
import { parseArgs } from 'node:util'
import type { AuditEvent, AuditFacts } from '../../audit/event.ts'
import { AuditTrail } from '../../audit/trail.ts'
import { WebhookQueue } from '../../audit/webhook-queue.ts'
import { optionsFromEnvironment, resolveSettings, type Settings } from '../../config.ts'
import { AdministrationError } from '../../host/user-administration.ts'
import { silentLogger } from '../../log.ts'
import { openServiceStore } from '../../service-store.ts'
import type { Store } from '../../store/store.ts'
import { type Streams, UsageError } from '../subcommand.ts'
import { type Action, actions } from './actions.ts'
import { Office } from './office.ts'

const helpText = `Usage: countersign admin COMMAND [arguments] [options]

Works on the store of the service, beside running services. The settings of the service say where that is: COUNTERSIGN_STORE,
COUNTERSIGN_KEY_PREFIX and COUNTERSIGN_REDIS_TLS_*. No secret is needed. The exit code is 0 if it is done, 1 if it could not be
done, and 2 for wrong usage. docs/admin.md says what each command does.

${actions.map((action) => `  ${usageOf(action).padEnd(30)}  ${action.about}`).join('\n')}

WALLET is an address, or a public key in hex, alone or behind the id of its adapter: nimiq:NQ…, ethereum:0x…

  --store STORE  the store, such as sqlite:./countersign.db, in place of COUNTERSIGN_STORE; set the variable if it has a password
  --json         prints JSON; times are epoch milliseconds
  --yes          deletes without asking
  --help, -h     shows this text
`

const options = {
  store: { type: 'string' },
  json: { type: 'boolean' },
  yes: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/** The arguments, read. */
interface Asked {
  readonly action: Action
  readonly args: readonly string[]
  readonly store: string | undefined
  readonly json: boolean
  readonly yes: boolean
}

/**
 * Runs the command `admin` with the arguments behind its name. Resolves with the exit code: 0 if it was done, 1 if it could not be,
 * 2 for arguments that are wrong.
 */
export async function adminCommand(args: readonly string[], { stdin, stdout, stderr }: Streams): Promise<number> {
  try {
    const asked = readArguments(args)
    if (asked === 'help') {
      stdout.write(helpText)
      return 0
    }
    const settings = settingsOf(asked)
    const { store, close } = await openServiceStore(settings, silentLogger)
    try {
      const office = new Office(store)
      if (asked.action.isFinal && !asked.yes) await confirm(asked, stdin, stderr)
      const { json, text, changed } = await asked.action.run(office, ...asked.args)
      if (changed !== undefined && settings.webhookUrl !== undefined) {
        await tellLater(store, { type: 'operator.acted', action: asked.action.name, ...changed })
      }
      stdout.write(`${asked.json ? JSON.stringify(json) : text}\n`)
      return 0
    } finally {
      await close()
    }
  } catch (error) {
    if (error instanceof UsageError) {
      stderr.write(`countersign admin: ${oneLine(error.message)}; --help shows the usage\n`)
      return 2
    }
    stderr.write(`countersign admin: ${oneLine(error instanceof Error ? error.message : String(error))}\n`)
    return 1
  }
}

/** Leaves an audit event in the store, for the running services to deliver. */
async function tellLater(store: Store, facts: AuditFacts): Promise<void> {
  const queue = new WebhookQueue(store)
  const events: AuditEvent[] = []
  new AuditTrail(() => store.now(), [(event) => events.push(event)]).tell(facts, {})
  for (const event of events) await queue.add(event, false)
}

function readArguments(args: readonly string[]): Asked | 'help' {
  const { values, positionals } = parse(args)
  const [name, ...given] = positionals
  if (values.help === true) return 'help'
  const action = actions.find((one) => one.name === name)
  if (name === undefined) throw new UsageError('it takes a command')
  if (action === undefined) throw new UsageError(`unknown command ${JSON.stringify(name)}`)
  // An empty one is as from a variable of the shell that is not set.
  if (given.length !== action.takes.length || given.includes('')) throw new UsageError(`write: ${usageOf(action)}`)
  if (values.store === '') throw new UsageError('--store is empty')
  return { action, args: given, store: values.store, json: values.json === true, yes: values.yes === true }
}

/** The id of a session (22 characters, base64url) that begins with a hyphen, as one in 64 does. No option has this form. */
const idWithHyphen = /^-[\w-]{21}$/

function parse(args: readonly string[]) {
  // Behind "--", nothing is taken for an option. The id of a session comes last of what a command takes.
  const isId = (arg: string): boolean => idWithHyphen.test(arg)
  const separated = [...args.filter((arg) => !isId(arg)), '--', ...args.filter(isId)]
  try {
    return parseArgs({ args: args.includes('--') ? [...args] : separated, options, allowPositionals: true })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error })
  }
}

function usageOf({ name, takes }: Action): string {
  return [name, ...takes].join(' ')
}

/** The settings of the service, with the store of the arguments. Refuses a store in which nothing can be found. */
function settingsOf({ store }: Asked): Settings {
  const settings = resolveSettings({
    ...optionsFromEnvironment(process.env),
    ...(store === undefined ? {} : { store }),
  })
  const file = typeof settings.store === 'string' ? /^sqlite:(.*)$/s.exec(settings.store)?.[1] : undefined
  if (file === ':memory:')
    throw new AdministrationError('the store is in the memory of the service; nobody else can reach it')
  // It would be created.
  if (file !== undefined && !existsSync(file)) {
    throw new AdministrationError(`there is no store file ${file}; name it with --store or COUNTERSIGN_STORE`)
  }
  return settings
}

/** Asks the operator, if it can. Rejects unless the answer is yes. */
async function confirm({ action, args }: Asked, stdin: Readable, stderr: Streams['stderr']): Promise<void> {
  if (!('isTTY' in stdin && stdin.isTTY === true)) {
    throw new UsageError(`${action.name} cannot be undone: add --yes to do it without being asked`)
  }
  const terminal = createInterface({ input: stdin, output: stderr })
  try {
    const answer = await terminal.question(`${action.name} ${args.join(' ')}? This cannot be undone. [y/N] `)
    if (/^y(es)?$/i.test(answer.trim())) return
  } finally {
    terminal.close()
  }
  throw new AdministrationError('nothing was done')
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ')
}
