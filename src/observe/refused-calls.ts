import type { AuditTrail } from '../base/audit/trail.ts'
import type { CallObserver } from '../rpc/invoke.ts'
import { CallEnded, type ErrorReason } from '../shared/errors.ts'
import { Sampler } from './call-log.ts'

/** The calls that bring a signature over a challenge. */
const signedCalls: ReadonlySet<string> = new Set([
  'countersign.v1.SignInService/VerifySignIn',
  'countersign.v1.WalletService/LinkWallet',
  'countersign.v1.OrderService/ApproveOrder',
])

/** Reasons for which a signature, or what it is for, is refused. */
const challengeReasons: ReadonlySet<ErrorReason> = new Set([
  'NONCE_NOT_FOUND',
  'NONCE_EXPIRED',
  'SIGNATURE_INVALID',
  'ADDRESS_MISMATCH',
  'ADAPTER_UNKNOWN',
  'CONTRACT_WALLET_NEEDS_RPC',
  'LOGIN_REFUSED',
  'WALLET_TAKEN',
  'WRONG_WALLET',
])

/** Reasons that an attack could have. Wrong codes are told as what happened to their order. */
const suspectReasons: ReadonlySet<ErrorReason> = new Set([
  'ORIGIN_NOT_TRUSTED',
  'ORIGIN_MISMATCH',
  'LOGIN_REFUSED',
  'SESSION_INVALID',
  'SESSION_NOT_FRESH',
  'ORDER_TOKEN_INVALID',
  'ORDER_ALREADY_CLAIMED',
  'COMPUTER_PROOF_INVALID',
  'HANDOVER_INVALID',
  'NETWORK_MISMATCH',
  'START_KEY_REQUIRED',
])

const limitReasons: ReadonlySet<ErrorReason> = new Set(['RATE_LIMITED', 'SERVER_BUSY'])

/**
 * Tells the audit trail of refused calls. Because a caller can cause them at will, the first of each address, kind and reason is told
 * at once, and those that follow as one event a second: the newest, with their number as `repeated`.
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
  if (limitReasons.has(reason)) return 'limit.hit'
  if (signedCalls.has(method) && challengeReasons.has(reason)) return 'challenge.refused'
  return suspectReasons.has(reason) ? 'call.refused' : undefined
}
