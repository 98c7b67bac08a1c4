import type { AuditFacts } from '../../audit/event.ts'
import type { Session } from '../../host/host.ts'
import { type AdministeredUser, AdministrationError } from '../../host/user-administration.ts'
import type { ProvenIdentity } from '../../wallet/proof.ts'
import type { Office } from './office.ts'

/** What an action did or found. */
export interface Outcome {
  /** For machines. */
  readonly json: unknown
  /** For people, without the last line break. */
  readonly text: string
  /** What it changed, for the audit trail; absent if it only looked. */
  readonly changed?: Omit<Extract<AuditFacts, { readonly type: 'operator.acted' }>, 'type' | 'action'>
}

/** Something that an operator can ask for. */
export interface Action {
  readonly name: string
  /** The names of its arguments. */
  readonly takes: readonly string[]
  /** What it does, for the help. */
  readonly about: string
  /** Whether it cannot be undone, so that the operator is asked first. */
  readonly isFinal?: true
  /** Rejects with an `AdministrationError` if it cannot be done. The arguments are as many as it takes. */
  readonly run: (office: Office, ...args: string[]) => Promise<Outcome>
}

/** All actions, in the order of the help. */
export const actions: readonly Action[] = [
  {
    name: 'find',
    takes: ['WALLET'],
    about: 'shows whose a wallet is, and whether it is blocked',
    run: async (office, text = '') => {
      const found = await office.known(text)
      if (found.length === 0) throw new AdministrationError('nothing is known of this wallet')
      const users = await Promise.all(
        [...new Set(found.flatMap(({ userIds }) => userIds))].map((id) => office.users.find(id)),
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
    run: async (office, userId = '') => {
      const user = await office.user(userId)
      return { json: user, text: userText(user) }
    },
  },
  {
    name: 'sessions',
    takes: ['USER_ID'],
    about: "lists a user's live sessions",
    run: async (office, userId = '') => {
      const { sessions } = await office.user(userId)
      return { json: { sessions }, text: sessions.length === 0 ? 'no sessions' : sessions.map(sessionLine).join('\n') }
    },
  },
  {
    name: 'end-session',
    takes: ['USER_ID', 'SESSION_ID'],
    about: 'ends one session',
    run: async (office, userId = '', sessionId = '') => {
      if (await office.users.endSession(userId, sessionId))
        return { json: { sessionsEnded: 1 }, text: 'ended 1 session', changed: { userId, sessionId } }
      throw new AdministrationError('the user has no live session with this id')
    },
  },
  {
    name: 'end-sessions',
    takes: ['USER_ID'],
    about: 'ends all sessions of a user',
    run: async (office, userId = '') => {
      await office.user(userId)
      const sessionsEnded = await office.users.endSessions(userId)
      return { json: { sessionsEnded }, text: `ended ${counted(sessionsEnded, 'session')}`, changed: { userId } }
    },
  },
  {
    name: 'block',
    takes: ['WALLET'],
    about: 'keeps a wallet from signing in, being linked and approving orders, and ends its sessions',
    run: async (office, text = '') => {
      const wallet = await office.wallet(text)
      const { wasBlocked, sessionsEnded } = await office.users.block(wallet)
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
    run: async (office, text = '') => {
      const wallet = await office.wallet(text)
      const wasBlocked = await office.users.unblock(wallet)
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
    run: async (office, text = '', userId = '') => {
      const wallet = await office.wallet(text)
      const movedFrom = await office.users.move(wallet, userId)
      const done =
        movedFrom === undefined ? `is the wallet of ${userId} already` : `moved from ${movedFrom} to ${userId}`
      const changed = { userId, adapterId: wallet.adapterId, address: wallet.address }
      return { json: { wallet, userId, movedFrom }, text: `${walletLine(wallet)}: ${done}`, changed }
    },
  },
  {
    name: 'export',
    takes: ['USER_ID'],
    about: 'prints all that is kept of a user, as JSON',
    run: async (office, userId = '') => {
      const json = await office.export(userId)
      return { json, text: JSON.stringify(json, undefined, 2) }
    },
  },
  {
    name: 'delete',
    takes: ['USER_ID'],
    about: 'ends the sessions of a user and deletes all that is kept; asks first, unless --yes is given',
    isFinal: true,
    run: async (office, userId = '') => {
      if (!(await office.users.delete(userId))) throw new AdministrationError('no user has this id')
      // Without the user: what waits for a webhook is kept for days.
      return { json: { deleted: userId }, text: `deleted ${userId}`, changed: {} }
    },
  },
]

/** One line about a wallet. */
function walletLine({ adapterId, address, publicKeyHex }: ProvenIdentity, more: readonly string[] = []): string {
  const key = publicKeyHex === '' ? [] : [`key ${publicKeyHex}`]
  return [`${adapterId} ${address}`, ...key, ...more].map(plain).join(', ')
}

function userText({ id, user, wallets, sessions }: AdministeredUser): string {
  const created = user === undefined ? [] : [`  created ${timeOf(user.createdAt)}`]
  const lines = wallets.map((wallet) =>
    walletLine(wallet, [`linked ${timeOf(wallet.linkedAt)}`, ...blocked(wallet.blockedAt)]),
  )
  return [
    `user ${plain(id)}`,
    ...created,
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
  return blockedAt === undefined ? [] : [`blocked since ${timeOf(blockedAt)}`]
}

function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function timeOf(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

/** Text without what a terminal acts on or shows out of order: clients choose some of it. */
function plain(text: string): string {
  return text.replace(/\p{C}/gu, '?')
}
