import type { AuditFacts } from '../../../base/audit.ts'
import { given, pick } from '../../../shared/defined-fields.ts'
import { CountersignError } from '../../../shared/errors.ts'
import { listed } from '../../sign-in/user-wallets.ts'
import type { CurrentSession } from '../../users/host.ts'
import type { ProvenIdentity } from '../../wallet/wallet.ts'
import type { OrdersByRecipe } from '../order.ts'
import type { OrderCall, Recipe } from './recipe.ts'

/**
 * Orders of kind link: the wallet that approves is added to the user of the session that starts and finalizes the
 * order. The order is finalized before the wallet is added, and each call adds it, so that a retry completes it.
 */
export const link: Recipe<'link'> = {
  label: 'orders of kind link',
  action: 'auth.link',
  takes: [],
  scanned: true,
  countsOwnStart: true,
  // A relayed order would lead every later sign-in of the wallet to the attacker's account.
  alwaysReturnCode: true,
  showsWallet: true,

  async begin(_input, { parts, request }) {
    const { admission, limiter } = parts
    const { links } = parts.requireUsers()
    const started = async () => {
      const requester = admission.callingDesktop(request)
      const { session, cookies } = await links.freshSession(request)
      const { userId, id: sessionId, adapterId, address, firstWallet } = session
      const starter = { userId, sessionId, adapterId, address, firstWallet }
      return { requester, own: { kind: 'link', starter }, cookies } as const
    }
    // The session first: a call without one takes nothing from the users of its network, whose allowance is small.
    const beginning = await started().catch(async (refusal: unknown) => {
      await limiter?.spend('session', request)
      throw refusal
    })
    await limiter?.spend('start-link', request)
    return beginning
  },

  shown: ({ starter }) => given({ sessionAccount: starter.address || undefined }),

  async requireApprover({ starter }, identity, { parts }) {
    await parts.requireUsers().users.requireLinkable(starter, identity)
  },

  async finalize(order, call) {
    const { parts, request } = call
    const own = await starterSession(order, call)
    return async ({ identity }) => {
      const before = parts.records.now()
      const requireStanding = () => parts.requireStanding(order.orderId)
      const wallet = await parts.requireUsers().users.link(own.session, identity, requireStanding)
      // A repeated call finds it added, and changes nothing.
      if (wallet.linkedAt >= before) parts.audit.record(walletFacts('wallet.linked', order, identity), request)
      return { kind: 'link', wallet: listed(wallet, own.session), cookies: own.cookies }
    }
  },

  async takeBack(order, identity, { parts, request }) {
    const walletUnlinked = await parts.requireUsers().users.withdraw(order.starter, identity, order.issuedAt)
    if (walletUnlinked) parts.audit.record(walletFacts('wallet.unlinked', order, identity), request)
    return { walletUnlinked }
  },

  subject: ({ starter: { userId, sessionId } }) => ({ userId, sessionId }),
}

/** The request's session, which must be the one that started the order (SESSION_REQUIRED). */
async function starterSession(
  { starter }: OrdersByRecipe['link'],
  { parts, request }: OrderCall,
): Promise<CurrentSession> {
  const current = await parts.requireUsers().host.currentSession(request)
  if (current.session.id === starter.sessionId) return current
  throw new CountersignError(
    'SESSION_REQUIRED',
    'Only the session that started the order can finalize it; start a new order from this one',
  )
}

/** Audit facts of a wallet that an order added to its user, or took back. */
function walletFacts(
  type: 'wallet.linked' | 'wallet.unlinked',
  { orderId, starter: { userId, sessionId } }: OrdersByRecipe['link'],
  identity: ProvenIdentity,
): AuditFacts {
  return { type, userId, sessionId, orderId, ...pick(identity, ['adapterId', 'address', 'publicKeyHex']) }
}
