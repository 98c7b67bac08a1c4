import { causeOf, StoreOpenError } from './implementation.ts'
import type { Store } from './store.ts'

/** A mistake that operators make, by what the server or the system says about it. */
export interface KnownProblem {
  /** Found in the code and message of the error. */
  readonly sign: RegExp
  /** Says what is wrong; without it, the message of the error does. */
  readonly problem?: string | ((found: RegExpExecArray) => string)
  /** Says what to do. */
  readonly advice: string
}

/** Why a server cannot be used and what to do about it, each in one line without credentials. */
export interface Explanation {
  readonly problem: string
  readonly advice: string
}

/** Problems of the way to a server, with the advice that depends on the settings of its kind. */
export function problemsOfTheWay({ authority, hostName }: Record<'authority' | 'hostName', string>): KnownProblem[] {
  return [
    {
      sign: /SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)/,
      problem: 'the certificate of a server is not from an authority that is trusted here',
      advice: authority,
    },
    {
      sign: /CERT_HAS_EXPIRED/,
      problem: 'the certificate of a server has expired',
      advice: 'Renew it, or name another server in COUNTERSIGN_STORE',
    },
    {
      sign: /ERR_TLS_CERT_ALTNAME_INVALID/,
      problem: 'the certificate of a server is for another host name',
      advice: `Correct the host in COUNTERSIGN_STORE, or ${hostName}`,
    },
    {
      sign: /ENOTFOUND|EAI_AGAIN/,
      problem: ([code]) => `a host name is not known (${code})`,
      advice: 'Correct the host in COUNTERSIGN_STORE, or the name service',
    },
  ]
}

interface Explained {
  readonly cause: unknown
  /** What is shown of the cause's message. */
  readonly message: string
  readonly known: readonly KnownProblem[]
  /** Advice for causes that are not known. */
  readonly otherwise?: string
}

/** Explains an error by the first known problem whose sign is found, otherwise by its message. */
export function explain({
  cause,
  message,
  known,
  otherwise = 'Start it or correct COUNTERSIGN_STORE.',
}: Explained): Explanation {
  const code = cause instanceof Error && 'code' in cause ? `${cause.code} ` : ''
  for (const { sign, problem = message, advice } of known) {
    const found = sign.exec(code + message)
    if (found !== null) return { problem: typeof problem === 'string' ? problem : problem(found), advice: `${advice}.` }
  }
  return { problem: message, advice: otherwise }
}

/** What an error says, in one line. */
export function messageOf(cause: unknown): string {
  // Several addresses of a host were tried in vain.
  const first = cause instanceof AggregateError ? cause.errors[0] : cause
  const message = first instanceof Error ? first.message || first.name : String(first)
  return message.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '')
}

interface Proof {
  readonly store: Store
  readonly proof: Promise<void>
  readonly explain: (cause: unknown) => Explanation
}

/** Resolves with a store once its servers have proved themselves. Otherwise closes it, and says why. */
export async function proven({ store, proof, explain }: Proof): Promise<Store> {
  try {
    await proof
    return store
  } catch (cause) {
    await store.close()
    const { problem, advice } = explain(causeOf(cause))
    throw new StoreOpenError(`Cannot open the store, ${store.description}: ${problem}`, { advice, cause })
  }
}
