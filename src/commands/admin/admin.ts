import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import type { Readable } from 'node:stream'
import { type AuditEvent, type AuditFacts, AuditTrail } from '../../base/audit.ts'
import type { Session } from '../../core/users/host.ts'
import {
  type AdministeredUser,
  AdministrationError,
  type SearchableStore,
  type UserPlace,
} from '../../core/users/user-administration.ts'
import type { ProvenIdentity } from '../../core/wallet/wallet.ts'
import { WebhookQueue } from '../../observe/audit/webhook.ts'
import { optionsFromEnvironment, resolveSettings, type Settings } from '../../service/config.ts'
import { openCommandStore, openMarkedStore } from '../../service/service-store.ts'
import { given } from '../../shared/defined-fields.ts'
import { sqliteLocation } from '../../store/open.ts'
import type { Store } from '../../store/store.ts'
import {
  type Arguments,
  counted,
  helpRows,
  oneLine,
  readArguments,
  type Streams,
  UsageError,
  usageHint,
} from '../command-line.ts'
import { adminCommand as issuerCommand } from '../oidc.ts'
import { AdminActions, type ListedUser, searchable } from './admin-actions.ts'
import { copyStore, undoCopy } from './copy.ts'

/** Result of a command. */
interface Outcome {
  /** For machines. */
  readonly json: unknown
  /** For people, without the last line break. */
  readonly text: string
  /** What it changed, for the audit trail; absent if it only looked. */
  readonly changed?: Omit<OperatorFacts, 'type' | 'action'>
}

type OperatorFacts = Extract<AuditFacts, { readonly type: 'operator.acted' }>

/** A command of operators. */
interface Command {
  readonly name: string
  /** The names of its arguments; one in lower case is a word that is written as it is. */
  readonly takes: readonly string[]
  /** The options that it takes, besides those of every command. */
  readonly options?: readonly OwnOption[]
  /** What it does, for the help. */
  readonly about: string
  /** Whether it makes a store file that is missing. */
  readonly makesStore?: true
  /** Whether it cannot be undone, so that the operator is asked first. */
  readonly isFinal?: true
  /** Rejects with an `AdministrationError` if it cannot be done. There are as many words as it takes. */
  readonly run: (actions: AdminActions, words: readonly string[], values: Values) => Promise<Outcome>
}

/** A command that opens stores by itself. */
interface StoresCommand extends Omit<Command, 'run'> {
  readonly runAlone: (values: Values, stderr: Streams['stderr']) => Promise<Outcome>
}

/** All commands, in the order of the help. */
export const adminCommands: readonly (Command | StoresCommand)[] = [
  {
    name: 'find',
    takes: ['WALLET'],
    about: 'shows whose a wallet is, and whether it is blocked',
    run: async (actions, [text = '']) => {
      const found = await actions.known(text)
      if (found.length === 0) throw new AdministrationError('nothing is known of this wallet')
      const users = await Promise.all(
        [...new Set(found.flatMap(({ userIds }) => userIds))].map((id) => actions.users.find(id)),
      )
      const known = users.filter((user) => user !== undefined)
      const lines = found.map(({ wallet, userIds, blockedAt }) =>
        walletLine(wallet, [userIds.length === 0 ? 'no user' : `user ${userIds.join(', ')}`, ...blocked(blockedAt)]),
      )
      return { json: { wallets: found, users: known }, text: [...lines, ...known.map(userText)].join('\n') }
    },
  },
  {
    name: 'user',
    takes: ['USER_ID'],
    about: 'shows a user with wallets and sessions',
    run: async (actions, [userId = '']) => {
      const user = await actions.user(userId)
      return { json: user, text: userText(user) }
    },
  },
  {
    name: 'list',
    takes: [],
    options: ['limit', 'after'],
    about: 'lists users, the newest first, with wallets, sessions and groups; reads all users',
    run: async (actions, _words, values) => {
      const limit = limitOf(values.limit)
      const users = await actions.list(limit, placeOf(values.after))
      const last = users.at(-1)
      const next = last?.user && users.length === limit ? cursorOf(last.user) : undefined
      const lines = [...users.map(listedText), ...(next === undefined ? [] : [`more with --after ${next}`])]
      return { json: { users, ...given({ next }) }, text: lines.join('\n') || 'no users' }
    },
  },
  {
    name: 'count',
    takes: [],
    about: 'counts users and live sessions; reads all of both',
    run: async (actions) => {
      const { users, sessions } = await actions.users.count()
      return { json: { users, sessions }, text: `${counted(users, 'user')}, ${counted(sessions, 'session')}` }
    },
  },
  {
    name: 'import',
    takes: ['FILE'],
    options: ['add'],
    makesStore: true,
    about: 'gives wallets to users of another back end, by a file of JSON lines',
    run: async (actions, [file = ''], { add = false }) => {
      const { wallets, users, added, extended } = await actions.import(file, add)
      const text = [
        `${counted(wallets, 'wallet')} of ${counted(users, 'user')}, ${added} of them new`,
        ...extended.flatMap(({ userId, had, got }) => [
          `user ${plain(userId)} was there before, with ${counted(had.length, 'wallet')}`,
          ...had.map((wallet) => `  had ${walletLine(wallet)}`),
          ...got.map((wallet) => `  got ${walletLine(wallet)}`),
        ]),
      ].join('\n')
      return { json: { wallets, users, added, extended }, text, changed: {} }
    },
  },
  {
    name: 'sessions',
    takes: ['USER_ID'],
    about: "lists a user's live sessions",
    run: async (actions, [userId = '']) => {
      const { sessions } = await actions.user(userId)
      return { json: { sessions }, text: sessions.length === 0 ? 'no sessions' : sessions.map(sessionLine).join('\n') }
    },
  },
  {
    name: 'end-session',
    takes: ['USER_ID', 'SESSION_ID'],
    about: 'ends one session',
    run: async (actions, [userId = '', sessionId = '']) => {
      if (await actions.users.endSession(userId, sessionId))
        return { json: { sessionsEnded: 1 }, text: 'ended 1 session', changed: { userId, sessionId } }
      throw new AdministrationError('the user has no live session with this id')
    },
  },
  {
    name: 'end-sessions',
    takes: ['USER_ID'],
    about: 'ends all sessions of a user',
    run: async (actions, [userId = '']) => {
      await actions.user(userId)
      const sessionsEnded = await actions.users.endSessions(userId)
      return { json: { sessionsEnded }, text: `ended ${counted(sessionsEnded, 'session')}`, changed: { userId } }
    },
  },
  {
    name: 'block',
    takes: ['WALLET'],
    about: 'keeps a wallet from signing in, being linked and approving orders, and ends its sessions',
    run: async (actions, [text = '']) => {
      const wallet = await actions.wallet(text)
      const { wasBlocked, sessionsEnded } = await actions.users.block(wallet)
      const done = `${wasBlocked ? 'was blocked before' : 'blocked'}; ended ${counted(sessionsEnded, 'session')}`
      const { adapterId, address } = wallet
      const changed = { adapterId, address }
      return { json: { wallet, wasBlocked, sessionsEnded }, text: `${walletLine(wallet)}: ${done}`, changed }
    },
  },
  {
    name: 'unblock',
    takes: ['WALLET'],
    about: 'lets a blocked wallet sign in again',
    run: async (actions, [text = '']) => {
      const wallet = await actions.wallet(text)
      const wasBlocked = await actions.users.unblock(wallet)
      return {
        json: { wallet, wasBlocked },
        text: `${walletLine(wallet)}: ${wasBlocked ? 'unblocked' : 'was not blocked'}`,
        changed: { adapterId: wallet.adapterId, address: wallet.address },
      }
    },
  },
  {
    name: 'move-wallet',
    takes: ['WALLET', 'USER_ID'],
    about: 'gives a wallet to another user, and ends what it left at the user before',
    run: async (actions, [text = '', userId = '']) => {
      const wallet = await actions.wallet(text)
      const movedFrom = await actions.users.move(wallet, userId)
      const done =
        movedFrom === undefined ? `is the wallet of ${userId} already` : `moved from ${movedFrom} to ${userId}`
      const changed = { userId, adapterId: wallet.adapterId, address: wallet.address }
      return { json: { wallet, userId, movedFrom }, text: `${walletLine(wallet)}: ${done}`, changed }
    },
  },
  {
    name: 'after-restore',
    takes: [],
    options: ['keep-sessions'],
    about: 'drops what a copy of the past must not revive; to be run before the service starts on it',
    run: async (actions, _words, values) => {
      const { 'keep-sessions': keepSessions = false } = values
      const dropped = await actions.dropPast(keepSessions)
      const sessions = keepSessions ? 'sessions that were ended since are back' : 'all sessions have ended'
      const redo = 'Block, unlink and delete again what was since the copy was made'
      return { json: { dropped }, text: `dropped ${counted(dropped, 'record')}; ${sessions}. ${redo}`, changed: {} }
    },
  },
  {
    name: 'copy',
    takes: [],
    options: ['from', 'to', 'again', 'undo', 'secret-file'],
    about: 'copies a store to another one, which takes its place; stop all instances first',
    runAlone: copyOrUndo,
  },
  {
    name: 'export',
    takes: ['USER_ID'],
    about: 'prints all that is kept of a user, as JSON',
    run: async (actions, [userId = '']) => {
      const json = await actions.export(userId)
      return { json, text: JSON.stringify(json, undefined, 2) }
    },
  },
  issuerCommand,
  {
    name: 'delete',
    takes: ['USER_ID'],
    about: 'ends the sessions of a user and deletes all that is kept; asks first, unless --yes is given',
    isFinal: true,
    run: async (actions, [userId = '']) => {
      if (!(await actions.users.delete(userId))) throw new AdministrationError('no user has this id')
      // Without the user: what waits for a webhook is kept for days.
      return { json: { deleted: userId }, text: `deleted ${userId}`, changed: {} }
    },
  },
]

const optionRows = [
  [
    '--store STORE',
    'the store, such as sqlite:./countersign.db, in place of COUNTERSIGN_STORE; set the variable if it has a password',
  ],
  ['--limit N', 'most users of a list, 1 to 1000; default 100'],
  ['--after CURSOR', 'shows the users behind those of the list that ended with this cursor'],
  ['--keep-sessions', 'keeps sessions after a restore, those included that were ended since the copy was made'],
  ['--add', 'lets import give wallets to users who exist, and says which they had'],
  ['--from STORE', 'what copy reads, in place of COUNTERSIGN_STORE; @FILE has the address in a file'],
  ['--to STORE', 'what copy fills, which must be empty'],
  ['--secret-file FILE', 'is made by copy, with the secret that an embedded store keeps'],
  ['--again', 'begins a copy anew that broke off'],
  ['--undo', 'lets services start again on a store that was copied'],
  ['--json', 'prints JSON; times are epoch milliseconds'],
  ['--yes', 'deletes without asking'],
  ['--help, -h', 'shows this text'],
] as const

const helpText = `Begin with: countersign admin find WALLET, which shows the user of a wallet.

Usage: countersign admin COMMAND [arguments] [options]

Works on the store of the service, beside running services. The settings of
the service say where that is: COUNTERSIGN_STORE, COUNTERSIGN_KEY_PREFIX and
COUNTERSIGN_REDIS_TLS_*. No secret is needed. The exit code is 0 if it is
done, 1 if it could not be done, and 2 for wrong usage. docs/admin.md says
what each command does.

${helpRows(
  adminCommands.map((command) => [usageOf(command), command.about] as const),
  30,
)}

WALLET is an address, or a public key in hex, alone or behind the id of its
adapter: nimiq:NQ…, ethereum:0x…

${helpRows(optionRows, 18)}
`

/** Options of single commands. */
const ownOptions = {
  limit: { type: 'string' },
  after: { type: 'string' },
  'keep-sessions': { type: 'boolean' },
  add: { type: 'boolean' },
  from: { type: 'string' },
  to: { type: 'string' },
  'secret-file': { type: 'string' },
  again: { type: 'boolean' },
  undo: { type: 'boolean' },
} as const

type OwnOption = keyof typeof ownOptions

const options = {
  ...ownOptions,
  store: { type: 'string' },
  json: { type: 'boolean' },
  yes: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

type Values = Arguments<typeof options>['values']

/** The arguments, read. */
type AdminArguments = Exclude<ReturnType<typeof readAdminArguments>, 'help'>

/**
 * Runs the command `admin` with the arguments behind its name. Resolves with the exit code: 0 if it was done, 1 if it
 * could not be, 2 for arguments that are wrong.
 */
export async function adminCommand(args: readonly string[], streams: Streams): Promise<number> {
  try {
    const asked = readAdminArguments(args)
    streams.stdout.write(asked === 'help' ? helpText : await perform(asked, streams))
    return 0
  } catch (error) {
    const [usage, code] = error instanceof UsageError ? [usageHint, 2] : ['', 1]
    streams.stderr.write(`countersign admin: ${oneLine(error)}${usage}\n`)
    return code
  }
}

/** Runs a command, and returns what to print. */
async function perform(asked: AdminArguments, { stdin, stderr }: Streams): Promise<string> {
  const { command, words, values } = asked
  if ('runAlone' in command) return shown(await command.runAlone(values, stderr), values)
  const settings = settingsOf(values.store, command, stderr)
  const { store, close } = await openCommandStore(settings)
  try {
    const actions = new AdminActions(store, settings)
    if (command.isFinal && !values.yes) await confirm(asked, stdin, stderr)
    const outcome = await command.run(actions, words, values)
    const { changed } = outcome
    if (changed !== undefined) await report(store, settings, { action: command.name, ...changed }, stderr)
    return shown(outcome, values)
  } finally {
    await close()
  }
}

function shown({ json, text }: Outcome, { json: asJson }: Values): string {
  return `${asJson ? JSON.stringify(json) : text}\n`
}

/** Copies a store, or takes the mark of a copy from one. */
async function copyOrUndo(values: Values, stderr: Streams['stderr']): Promise<Outcome> {
  const { again = false, undo = false, 'secret-file': secretFile } = values
  const isUsed = [values.to, values.again, secretFile].some((value) => value !== undefined)
  if (undo && isUsed) throw new UsageError('--undo takes --from only')
  const ofFrom = settingsOf(addressIn(values.from) ?? values.store, {}, stderr)
  if (undo) {
    return await withMarkedStore(ofFrom, async (store) => {
      await undoCopy(store)
      await report(store, ofFrom, { action: 'copy' }, stderr)
      return { json: { undone: true }, text: `services start on ${store.description} again` }
    })
  }
  if (values.to === undefined) throw new UsageError('copy needs --to')
  const ofTo = settingsOf(addressIn(values.to), { makesStore: true }, stderr)
  const { secret: secrets } = ofFrom
  const say = (line: string): boolean => stderr.write(`countersign admin: ${line}\n`)
  return await withMarkedStore(ofFrom, (from) =>
    withMarkedStore(ofTo, async (to) => {
      const copied = await copyStore({ from, to, again, secretFile, secrets, say })
      // To the new store, whose services deliver it: none starts on the old one.
      await report(to, ofTo, { action: 'copy' }, stderr)
      const lines = Object.entries(copied).map(([kind, counts]) => `${kind}: ${counts.from}, ${counts.to}`)
      const secret = secretFile === undefined ? 'keep COUNTERSIGN_SECRET' : `COUNTERSIGN_SECRET_FILE to ${secretFile}`
      const done = `copied ${from.description} to ${to.description}`
      const text = [...lines, `${done}. Set COUNTERSIGN_STORE to the new one, and ${secret}`].join('\n')
      return { json: { copied }, text }
    }),
  )
}

/** The address in an argument: `@FILE` has it in a file, because other users can see arguments. */
function addressIn(argument: string | undefined): string | undefined {
  if (!argument?.startsWith('@')) return argument
  try {
    return readFileSync(argument.slice(1), 'utf8').trim()
  } catch (cause) {
    throw new UsageError(`${argument.slice(1)} cannot be read: ${(cause as NodeJS.ErrnoException).code}`)
  }
}

async function withMarkedStore<T>(settings: Settings, use: (store: SearchableStore) => Promise<T>): Promise<T> {
  const { store, close } = await openMarkedStore(settings)
  try {
    return await use(searchable(store))
  } finally {
    await close()
  }
}

/**
 * Leaves an audit event in the store, for the services on it to deliver, if they have a webhook. The change is made by
 * then, so an event that cannot be stored is a warning and not a failure.
 */
async function report(
  store: Store,
  { webhook }: Settings,
  facts: Omit<OperatorFacts, 'type'>,
  stderr: Streams['stderr'],
): Promise<void> {
  if (webhook.url === undefined) return
  const queue = new WebhookQueue(store)
  const events: AuditEvent[] = []
  new AuditTrail(() => store.now(), [(event) => events.push(event)]).record({ type: 'operator.acted', ...facts }, {})
  try {
    for (const event of events) await queue.add(event, false)
  } catch (error) {
    stderr.write(`countersign admin: done, but its audit event could not be stored: ${oneLine(error)}\n`)
  }
}

function readAdminArguments(args: readonly string[]) {
  // Behind "--", nothing is taken for an option. The id of a session comes last of what a command takes.
  const isId = (arg: string): boolean => idWithHyphen.test(arg)
  const separated = args.includes('--') ? args : [...args.filter((arg) => !isId(arg)), '--', ...args.filter(isId)]
  const { values, words: all } = readArguments(separated, options)
  const [name, ...words] = all
  if (values.help) return 'help'
  const command = adminCommands.find((one) => one.name === name)
  if (name === undefined) throw new UsageError('a command is missing')
  if (command === undefined) throw new UsageError(`unknown command ${JSON.stringify(name)}`)
  // An empty one is as from a variable of the shell that is not set.
  const fits = (text: string | undefined, takes: string): boolean =>
    takes === takes.toLowerCase() ? text === takes : text !== undefined && text !== ''
  if (words.length !== command.takes.length || !command.takes.every((takes, index) => fits(words[index], takes))) {
    throw new UsageError(`write: ${usageOf(command)}`)
  }
  const unfit = (Object.keys(ownOptions) as OwnOption[]).find(
    (option) => values[option] !== undefined && !command.options?.includes(option),
  )
  if (unfit !== undefined) throw new UsageError(`${command.name} takes no --${unfit}`)
  return { command, words, values }
}

/** Most users of a list. */
function limitOf(text = '100'): number {
  if (/^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= 1000) return Number(text)
  throw new UsageError('--limit must be 1 to 1000')
}

/** Cursor of the next list. */
function cursorOf({ createdAt, id }: UserPlace): string {
  return Buffer.from(`${createdAt}:${id}`).toString('base64url')
}

function placeOf(cursor: string | undefined): UserPlace | undefined {
  if (cursor === undefined) return undefined
  const [, createdAt, id] = /^(\d+):(.+)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (createdAt === undefined || id === undefined) throw new UsageError('--after takes the cursor of a list')
  return { createdAt: Number(createdAt), id }
}

/**
 * The id of a session (22 characters, base64url) that begins with a hyphen, as one in 64 does. No option has this form.
 */
const idWithHyphen = /^-[\w-]{21}$/

function usageOf({ name, takes }: Pick<Command, 'name' | 'takes'>): string {
  return [name, ...takes].join(' ')
}

/** The settings of the service, with the store of the arguments. Refuses a store in which nothing can be found. */
function settingsOf(
  store: string | undefined,
  { makesStore }: Pick<Command, 'makesStore'>,
  stderr: Streams['stderr'],
): Settings {
  const settings = resolveSettings({ ...optionsFromEnvironment(process.env), ...given({ store }) })
  const file = typeof settings.store === 'string' ? sqliteLocation(settings.store) : undefined
  if (file === ':memory:')
    throw new AdministrationError('the store is in memory, and only the service itself can reach it')
  // It would be created.
  if (file !== undefined && !existsSync(file)) {
    if (!makesStore) {
      throw new AdministrationError(`there is no store file ${file}. Name it with --store or COUNTERSIGN_STORE`)
    }
    stderr.write(`countersign admin: there is no store file ${file} yet; it is made\n`)
  }
  return settings
}

/** Asks the operator, if it can. Rejects unless the answer is yes. */
async function confirm({ command, words }: AdminArguments, stdin: Readable, stderr: Streams['stderr']): Promise<void> {
  if (!('isTTY' in stdin && stdin.isTTY === true)) {
    throw new UsageError(`${command.name} cannot be undone. Add --yes to run it without a question`)
  }
  const terminal = createInterface({ input: stdin, output: stderr })
  try {
    const answer = await terminal.question(`${command.name} ${words.join(' ')}? This cannot be undone. [y/N] `)
    if (/^y(es)?$/i.test(answer.trim())) return
  } finally {
    terminal.close()
  }
  throw new AdministrationError('nothing was done')
}

/** One line about a wallet. */
function walletLine({ adapterId, address, publicKeyHex }: ProvenIdentity, more: readonly string[] = []): string {
  const key = publicKeyHex === '' ? [] : [`key ${publicKeyHex}`]
  return [`${adapterId} ${address}`, ...key, ...more].map(plain).join(', ')
}

/** A user in a list. */
function listedText({ id, user, wallets, sessions, lastSignInAt, groups }: ListedUser): string {
  const times = [...since('created', user?.createdAt), ...since('signed in', lastSignInAt)]
  const inGroups = groups.length === 0 ? [] : [`groups ${groups.join(' ')}`]
  const facts = [counted(sessions.length, 'session'), ...times, ...inGroups]
  return [
    `user ${plain(id)}, ${facts.join(', ')}`,
    ...wallets.map((each) => `  ${walletLine(each, blocked(each.blockedAt))}`),
  ].join('\n')
}

function userText({ id, user, wallets, sessions }: AdministeredUser): string {
  const lines = wallets.map((wallet) =>
    walletLine(wallet, [`linked ${timeOf(wallet.linkedAt)}`, ...blocked(wallet.blockedAt)]),
  )
  return [
    `user ${plain(id)}`,
    ...since('  created', user?.createdAt),
    `  ${counted(wallets.length, 'wallet')}`,
    ...lines.map((line) => `    ${line}`),
    `  ${counted(sessions.length, 'session')}`,
    ...sessions.map((session) => `    ${sessionLine(session)}`),
  ].join('\n')
}

function sessionLine(session: Session): string {
  const { id, adapterId, address, createdAt, expiresAt, orderId, ip, userAgent } = session
  const order = orderId === undefined ? [] : [`by order ${orderId}`]
  const from = [ip === '' ? 'address unknown' : `from ${ip}`, ...(userAgent === '' ? [] : [JSON.stringify(userAgent)])]
  const times = [`created ${timeOf(createdAt)}`, `expires ${timeOf(expiresAt)}`]
  return [id, `${adapterId} ${address}`, ...times, ...order, ...from].map(plain).join(', ')
}

function blocked(blockedAt: number | undefined): string[] {
  return since('blocked since', blockedAt)
}

/** What happened, with its time; nothing without one. */
function since(what: string, epochMs: number | undefined): string[] {
  return epochMs === undefined ? [] : [`${what} ${timeOf(epochMs)}`]
}

function timeOf(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

/** Text without what a terminal acts on or shows out of order: clients choose some of it. */
function plain(text: string): string {
  return text.replace(/\p{C}/gu, '?')
}
