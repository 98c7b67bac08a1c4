import { type Explanation, explain, type KnownProblem, messageOf, problemsOfTheWay } from '../problem.ts'

/** A mistake that operators make. */
interface RedisProblem extends KnownProblem {
  /** Whether it is about connections with TLS or about those without; undefined means both. */
  readonly tls?: boolean
}

const permissions = 'Give it the permissions that docs/operations.md lists, or name another user in COUNTERSIGN_STORE'
const clientCertificate = 'Set COUNTERSIGN_REDIS_TLS_CERT and COUNTERSIGN_REDIS_TLS_KEY to files that it accepts'

/** The first one whose sign is found counts. */
const knownProblems: readonly RedisProblem[] = [
  {
    sign: /\bNOAUTH\b/,
    problem: 'a server asks for a password (NOAUTH)',
    advice: 'Write the password into COUNTERSIGN_STORE, as in redis://user:password@host',
  },
  {
    sign: /\bWRONGPASS\b/,
    problem: 'a server does not accept the user or the password (WRONGPASS)',
    advice: 'Correct them in COUNTERSIGN_STORE; write special characters of a password percent-encoded',
  },
  {
    // Redis 8 and Valkey 8 say NOPERM only outside of scripts.
    sign: /\b(?:NOPERM|ACL failure in script)\b.* the '([^']+)' command/,
    problem: ([, command]) => `the user is not permitted to run ${command?.toUpperCase()} (NOPERM)`,
    advice: permissions,
  },
  {
    sign: /\b(?:NOPERM|ACL failure in script)\b.* (key|channel)|can't (access)[^:]* keys|can't (publish)/,
    problem: ([, kind, keys]) =>
      `the user is not permitted to use the ${kind === 'key' || keys !== undefined ? 'keys' : 'channels'} of ` +
      'Countersign (NOPERM)',
    advice: permissions,
  },
  {
    sign: /executing the script can't run this command/,
    problem: "the user is not permitted to run a command that Countersign's scripts need (NOPERM)",
    advice: permissions,
  },
  {
    sign: /unknown command ['`]HELLO\b/i,
    problem: 'the server does not know HELLO, so it is older than Redis 7',
    advice: 'Upgrade it, or name another one in COUNTERSIGN_STORE',
  },
  {
    sign: /unknown command ['`](\w+)/,
    problem: ([, command]) => `the server does not have the command ${command?.toUpperCase()}`,
    advice: 'Take back its rename-command, or name another server in COUNTERSIGN_STORE',
  },
  {
    sign: /DB index is out of range/,
    problem: 'the server does not have a database of this number',
    advice: 'Correct the number at the end of COUNTERSIGN_STORE',
  },
  {
    sign: /\bLOADING\b/,
    problem: 'the server is still loading its data (LOADING)',
    advice: 'Start again when it has finished, or name another server in COUNTERSIGN_STORE',
  },
  {
    sign: /\bBUSY\b/,
    problem: 'the server is busy with a script (BUSY)',
    advice: 'End that with SCRIPT KILL and start again, or name another server in COUNTERSIGN_STORE',
  },
  {
    sign: /written before version/,
    problem: 'it was written before version 0.1.0, so begin with an empty one',
    advice: 'Delete its keys, set another COUNTERSIGN_KEY_PREFIX, or name another store in COUNTERSIGN_STORE',
  },
  {
    sign: /\bOOM\b/,
    problem: 'the server has no memory left for writes (OOM)',
    advice: 'Raise its maxmemory, or name another server in COUNTERSIGN_STORE',
  },
  {
    sign: /\bMISCONF\b/,
    problem: 'the server takes no writes because it cannot save to its disk (MISCONF)',
    advice: 'Its log says why; repair that, or name another server in COUNTERSIGN_STORE',
  },
  {
    sign: /\bNOREPLICAS\b/,
    problem: 'the server takes no writes because it has too few replicas (NOREPLICAS)',
    advice: 'Start its replicas, lower its min-replicas-to-write, or name another server in COUNTERSIGN_STORE',
  },
  ...problemsOfTheWay({
    authority:
      'Set COUNTERSIGN_REDIS_TLS_CA to a file with the certificate of its authority, or correct COUNTERSIGN_STORE',
    hostName: 'set COUNTERSIGN_REDIS_TLS_SERVER_NAME to the name in the certificate',
  }),
  {
    sign: /CERTIFICATE_REQUIRED|ALERT_HANDSHAKE_FAILURE/,
    problem: 'a server asks for a client certificate',
    advice: `${clientCertificate}, or correct COUNTERSIGN_STORE`,
  },
  {
    sign: /ALERT_UNKNOWN_CA|ALERT_BAD_CERTIFICATE|ALERT_CERTIFICATE_EXPIRED/,
    problem: 'a server does not accept the client certificate',
    advice: `${clientCertificate}, or correct COUNTERSIGN_STORE`,
  },
  {
    sign: /ECONNRESET|EPIPE|closed unexpectedly/i,
    tls: false,
    problem: 'a server closed the connection at once',
    advice: 'If its port uses TLS, write rediss in place of redis in COUNTERSIGN_STORE',
  },
  {
    sign: /WRONG_VERSION_NUMBER/,
    problem: 'a server does not use TLS on this port',
    advice: 'Write redis in place of rediss in COUNTERSIGN_STORE',
  },
  {
    // A port without TLS waits for the rest of what it takes for a command, and says nothing.
    sign: /no answer|timeout/,
    tls: true,
    advice: 'If the port does not use TLS, write redis in place of rediss in COUNTERSIGN_STORE',
  },
  { sign: /^the server at /, advice: 'Correct COUNTERSIGN_STORE' },
]

/**
 * Says why a server cannot be used and what to do about it, in one line without credentials.
 *
 * @param tls whether connections use TLS.
 */
export function explainProblem(cause: unknown, tls: boolean): Explanation {
  const known = knownProblems.filter(({ tls: onlyWith = tls }) => onlyWith === tls)
  return explain({ cause, message: shownOf(cause), known })
}

/**
 * The error that is kept as the cause of a failed call, and logged. Redis repeats the arguments of a command that it
 * does not know, keys and values among them; they are left out.
 */
export function withoutArguments(cause: unknown): unknown {
  if (!(cause instanceof Error) || !cause.message.includes(argumentsStart)) return cause
  return new Error(shownOf(cause))
}

const argumentsStart = ', with args beginning with:'

/** What an error says, in one line, without the arguments of a command. */
function shownOf(cause: unknown): string {
  const [shown = ''] = messageOf(cause).split(argumentsStart, 1)
  return shown
}
