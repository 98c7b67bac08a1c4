import { type Explanation, explain, type KnownProblem, messageOf, problemsOfTheWay } from '../problem.ts'
import { sqlStateOf, UnfitServerError } from './connection.ts'

const roomAdvice =
  'Raise its max_connections, or lower ?connections= in COUNTERSIGN_STORE: each instance takes that many and one more'

const roomProblem = 'PostgreSQL has no room for more connections (53300), and calls share those that are established.'

/** Calls go on although the server has no room for as many connections as they want. */
export const roomWarning = `${roomProblem} ${roomAdvice}`

/** The server refuses the statement by which other instances learn of changes. */
export const refusedNotifications =
  'PostgreSQL refuses notifications, so watchers on other instances see changes of orders up to 15 seconds late: see ' +
  'the log of the server'

const correct = 'Correct it in COUNTERSIGN_STORE'

/** The first one whose sign is found counts. */
const knownProblems: readonly KnownProblem[] = [
  {
    sign: /^28P01 |client password must be/,
    problem: 'the server does not accept the user or the password, or asks for one',
    advice: `${correct}; write special characters of a password percent-encoded (PGPASSWORD and .pgpass do not count)`,
  },
  { sign: /^28000 /, advice: 'Let the user in by pg_hba.conf of the server, or correct COUNTERSIGN_STORE' },
  { sign: /^3D000 /, problem: 'the server does not have a database of this name', advice: correct },
  {
    sign: /^42501 /,
    problem: 'the user lacks a permission for the tables of Countersign',
    advice: 'Give it CREATE on the database, or let an administrator run what `countersign doctor --sql` prints',
  },
  { sign: /^53300 |^57P03 /, advice: roomAdvice },
  {
    sign: /^53100 |^53200 /,
    problem: 'the server has no room left',
    advice: 'Make room, or name another server in COUNTERSIGN_STORE',
  },
  {
    sign: /^08P01 .*startup parameter|pooler/,
    advice: 'Name the server itself in COUNTERSIGN_STORE, or a pooler in session mode',
  },
  {
    sign: /does not support SSL/,
    problem: 'the server does not use TLS',
    advice: 'Switch ssl on at the server: without TLS only a server on this machine can be used (sslmode=disable)',
  },
  ...problemsOfTheWay({
    authority: 'Name a file with the certificate of its authority by ?sslrootcert= in COUNTERSIGN_STORE',
    hostName: 'the certificate',
  }),
]

/** Says why a server cannot be used and what to do about it, in one line without credentials. */
export function explainProblem(cause: unknown): Explanation {
  const isUnfit = cause instanceof UnfitServerError
  const otherwise = `${isUnfit ? 'Name another server or database in' : 'Start it or correct'} COUNTERSIGN_STORE.`
  return explain({ cause, message: messageOf(cause), known: knownProblems, otherwise })
}

/** The error that is kept as the cause of a failed call, and logged: details of the server's name keys and values. */
export function withoutDetails(cause: unknown): unknown {
  const code = sqlStateOf(cause)
  return code === undefined ? cause : new Error(`${code} ${messageOf(cause)}`)
}
