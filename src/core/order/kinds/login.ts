import { signedInFacts } from '../../../base/audit.ts'
import { hashToken } from '../../../base/token.ts'
import { given } from '../../../shared/defined-fields.ts'
import { CountersignError, internalError, refused } from '../../../shared/errors.ts'
import type { IssuedSession } from '../../users/host.ts'
import type { FinalizeCall, FinalizedOrder, Recipe } from './recipe.ts'

/**
 * Orders of kind login: the desktop gets a session of the wallet's user.
 *
 * The order is finalized before the session is made, and the session's token is derived from the desktop's token. So a
 * retry between the two steps, or after a crash there, makes or finds the same session. The computer becomes known
 * last.
 */
export const login: Recipe<'login'> = {
  label: 'orders of kind login',
  action: 'auth.login',
  takes: ['displayTitle', 'displaySummary', 'payloadHash', 'computerKey', 'requester'],
  scanned: true,
  startsOnOwnPages: true,
  remembersComputer: true,

  async begin(input, { parts, request }) {
    return { requester: await parts.admission.requester(input, request, login), own: { kind: 'login' } }
  },

  async requireApprover(_order, identity, { parts }) {
    await parts.list?.requireListed(identity)
  },

  async resolve({ orderId }, identity, call) {
    const { parts, request } = call
    const [seed] = seedsOf(orderId, call)
    await parts.limiter?.countSignIn(identity)
    const { id: userId } = await parts.host.resolveUser(identity, request)
    return { userId, seedHash: hashSeed(seed), sessionId: await parts.host.orderSessionId({ orderId, seed }) }
  },

  finalize:
    async ({ orderId }, call) =>
    async (finalized) => {
      const { parts, request } = call
      const issued = await makeSession(finalized, call)
      parts.audit.record(signedInFacts(issued.session, { orderId, repeated: finalized.repeated }), request)
      await parts.computers.note(finalized.order, request, issued.session)
      return { kind: 'login', issued }
    },

  async takeBack(order, _identity, { parts, request }) {
    const { orderId, login: made } = order
    if (made === undefined) throw internalError(new Error(`order ${orderId} is finalized without a login`))
    const session = { userId: made.userId, sessionId: made.sessionId, orderId }
    const [end, forgotten] = await Promise.allSettled([
      parts.host.endOrderSession(session),
      // Also if the host fails: it may stay away for longer than the phone tries again.
      parts.computers.forget(order),
    ])
    if (end.status === 'fulfilled' && end.value) {
      parts.audit.record({ type: 'session.ended', by: 'take-back', ...session }, request)
    }
    if (forgotten.status === 'rejected') throw forgotten.reason
    if (end.status === 'rejected') throw end.reason
    return { sessionEnded: end.value }
  },

  subject: ({ login }) => given({ userId: login?.userId, sessionId: login?.sessionId }),
}

/** Of these the token of the session is derived: by the newest of the server's secrets, then by the others. */
function seedsOf(orderId: string, { parts, desktopToken }: FinalizeCall): readonly [Uint8Array, ...Uint8Array[]] {
  return parts.keyring.derive('finalize seed', [orderId, desktopToken])
}

async function makeSession({ order, identity }: FinalizedOrder, call: FinalizeCall): Promise<IssuedSession> {
  const { parts, request } = call
  const { orderId, login } = order
  const seed = seedsOf(orderId, call).find((candidate) => hashSeed(candidate) === login?.seedHash)
  // All secrets have changed since the order was finalized.
  if (login === undefined || seed === undefined) throw refused('ORDER_FINALIZED')
  const grant = { orderId, seed, computerId: parts.computers.idOf(order) }
  try {
    return await parts.host.createSession({ id: login.userId }, identity, request, grant)
  } catch (error) {
    if (error instanceof CountersignError && error.reason === 'ORDER_FINALIZED') await parts.requireStanding(orderId)
    throw error
  }
}

function hashSeed(seed: Uint8Array): string {
  return hashToken(Buffer.from(seed).toString('base64url'))
}
