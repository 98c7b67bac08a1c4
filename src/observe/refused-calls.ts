import type { AuditTrail } from '../base/audit.ts'
import type { CallObserver } from '../rpc/invoke.ts'
import { CallEnded, type ErrorReason, reasons } from '../shared/errors.ts'
import { Sampler } from './call-log.ts'

/** The calls that bring a signature over a challenge. */
const signedCalls: ReadonlySet<string> = new Set([
  'countersign.v1.SignInService/VerifySignIn',
  'countersign.v1.WalletService/LinkWallet',
  'countersign.v1.OrderService/ApproveOrder',
])

/**
 * Tells the audit trail of refused calls. Because a caller can cause them at will, the first of each address, kind and
 * reason is told at once, and those that follow as one event a second: the newest, with their number as `repeated`.
 */
export function refusedCalls(audit: AuditTrail): CallObserver {
  const sampler = new Sampler()
  return ({ method, outcome, request, named }) => {
    if (outcome === 'ok' || outcome instanceof CallEnded) return
    const { reason, metadata } = outcome
    const type = typeOf(reason, method)
    if (type === undefined) return
    // Read now: the request is not kept for the second that it may take.
    const { ip, origin, userAgent } = request
    const { limit } = metadata
    sampler.add(ip ?? '', `${type} ${reason} ${limit}`, (repeated) =>
      audit.tell({ type, reason, limit, method, repeated, ...named }, { ip, origin, userAgent }),
    )
  }
}

function typeOf(reason: ErrorReason, method: string): 'challenge.refused' | 'limit.hit' | 'call.refused' | undefined {
  const { audit } = reasons[reason]
  if (audit === 'limit') return 'limit.hit'
  if (audit.startsWith('signature') && signedCalls.has(method)) return 'challenge.refused'
  return audit.endsWith('call') ? 'call.refused' : undefined
}
