import { areGroups, groupsExpected, isInAny } from '../../shared/groups.ts'
import type { RequestInput } from './request.ts'
import { type Session, SessionCheckError } from './session.ts'
import type { SessionVerifier } from './session-verifier.ts'

/** The answer of a guard to a call that it does not let through. */
export interface Refusal {
  /**
   * HTTP status: 401 for a call without a live session, 403 for one whose cookie does not count because of its Origin
   * or whose user is in none of the groups, 503 if sessions cannot be checked at the moment.
   */
  readonly status: 401 | 403 | 503
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>
  /** Body of the answer, in the form of Countersign's own errors. */
  readonly body: {
    readonly code: 'SESSION_REQUIRED' | 'ORIGIN_NOT_TRUSTED' | 'GROUP_REQUIRED' | 'SERVICE_UNAVAILABLE'
    readonly message: string
    readonly metadata?: { readonly groups: string }
  }
}

/** Options of a guard. */
export interface GuardOptions {
  /** Groups of which the user must be in one, such as `['staff']`. Default: every signed-in user passes. */
  readonly groups?: readonly string[] | undefined
}

/** The session of a request, or what to answer instead. */
type Admitted = { readonly session: Session } | { readonly refusal: Refusal }

/**
 * Makes what a guard asks for each request. What that returns rejects with an error that is no refusal: a mistake in
 * the program. Throws a `TypeError` if the options do not fit.
 */
export function admission(
  verifier: SessionVerifier,
  { groups }: GuardOptions = {},
): (request: RequestInput) => Promise<Admitted> {
  // An empty list would be taken for no condition.
  if (groups !== undefined && (!areGroups(groups) || groups.length === 0)) {
    throw new TypeError(`groups must be ${groupsExpected}, one or more`)
  }
  return async (request) => {
    const admitted = await admit(verifier, request)
    if (groups === undefined || 'refusal' in admitted || isInAny(admitted.session.groups, groups)) return admitted
    const names = groups.join(',')
    const message = `This is for members of ${names}; ask the operator to add you`
    return refused(403, { code: 'GROUP_REQUIRED', message, metadata: { groups: names } })
  }
}

async function admit(verifier: SessionVerifier, request: RequestInput): Promise<Admitted> {
  try {
    const session = await verifier.verify(request)
    if (session !== undefined) return { session }
    // A verifier of the application's own, or of its tests, can lack the method.
    const message = verifier.cookieRefusal?.(request)
    if (message !== undefined) return refused(403, { code: 'ORIGIN_NOT_TRUSTED', message })
    return refused(401, { code: 'SESSION_REQUIRED', message: 'This call needs a live session: sign in' })
  } catch (error) {
    if (!(error instanceof SessionCheckError)) throw error
    const { retryAfterMs } = error
    const retry = retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }
    const message = 'Sessions cannot be checked at the moment; try again shortly'
    return refused(503, { code: 'SERVICE_UNAVAILABLE', message }, retry)
  }
}

/** Answers about who is signed in are for no cache. */
function refused(status: Refusal['status'], body: Refusal['body'], headers: Refusal['headers'] = {}): Admitted {
  return { refusal: { status, headers: { 'cache-control': 'no-store', ...headers }, body } }
}
