import type { AuditEventHook, AuditSink, AuditTrail } from '../base/audit.ts'
import { causeText, type LogFields, type Logger } from '../base/log.ts'
import { Sampler } from '../base/timing/sampler.ts'
import type { CallObserver } from '../rpc/invoke.ts'
import { CallEnded, type CountersignError, type ErrorReason, reasons } from '../shared/errors.ts'

/**
 * Logs failed calls: at level error if it is the server's or the application's fault, at level warn if the server is at
 * its limits, at level info if it is the caller's.
 *
 * Failures with a reference are all logged. Of the others, which a caller can cause at will, the first of each address
 * and reason is logged at once, and those that follow make at most one line each second: the newest, with their number
 * as `repeated`.
 */
export function callLog(log: Logger): CallObserver {
  const sampler = new Sampler()
  return ({ method, protocol, httpMethod, path, request, named, outcome }) => {
    if (outcome === 'ok' || outcome instanceof CallEnded) return
    const { reason, metadata, cause } = outcome
    const { level } = reasons[reason]
    const call = { method, protocol, httpMethod, path, ip: request.ip, ...named }
    if (level === 'error') {
      log.error('request failed', { reason, ...call, reference: metadata.reference, cause: causeText(cause) })
      return
    }
    // The server's limits and outages are the same for everyone.
    const address = level === 'warn' ? '' : (request.ip ?? '')
    sampler.add(address, `${reason} ${metadata.limit}`, (repeated) => writeRefusal(log, outcome, { ...call, repeated }))
  }
}

function writeRefusal(log: Logger, error: CountersignError, call: LogFields): void {
  const { reason, message, cause, metadata } = error
  const { level, log: logged } = reasons[reason]
  log[level](reason === 'STORE_UNAVAILABLE' ? 'store unavailable' : 'request refused', {
    reason,
    limit: metadata.limit,
    message: logged.includes('message') ? message : undefined,
    ...call,
    cause: logged.includes('cause') && cause instanceof Error ? cause.message : undefined,
  })
}

/** The calls that bring a signature over a challenge. */
const signedCalls: ReadonlySet<string> = new Set([
  'countersign.v1.SignInService/VerifySignIn',
  'countersign.v1.WalletService/LinkWallet',
  'countersign.v1.OrderService/ApproveOrder',
])

/**
 * Records refused calls in the audit trail. Because a caller can cause them at will, the first of each address, kind
 * and reason is recorded at once, and those that follow as one event a second: the newest, with their number as
 * `repeated`.
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
      audit.record({ type, reason, limit, method, repeated, ...named }, { ip, origin, userAgent }),
    )
  }
}

function typeOf(reason: ErrorReason, method: string): 'challenge.refused' | 'limit.hit' | 'call.refused' | undefined {
  const { audit } = reasons[reason]
  if (audit === 'limit') return 'limit.hit'
  if (audit.startsWith('signature') && signedCalls.has(method)) return 'challenge.refused'
  return audit.endsWith('call') ? 'call.refused' : undefined
}

/**
 * Writes events to the log, at level info, with the text `audit`. Refused calls and limits are left out: the service
 * logs each failed call anyway.
 */
export function logSink(log: Logger): AuditSink {
  return (event) => {
    const { type, time: _time, ...fields } = event
    if (type === 'challenge.refused' || type === 'call.refused' || type === 'limit.hit') return
    log.info('audit', { type, ...(fields satisfies LogFields) })
  }
}

/** Calls a function of the application. If it throws or rejects, the log says so, and nothing else happens. */
export function hookSink(hook: AuditEventHook, log: Logger): AuditSink {
  const failed = (thrown: unknown): void => log.error('onAuditEvent failed', { cause: causeText(thrown) })
  return (event) => {
    try {
      const answer = hook(event)
      if (answer instanceof Promise) answer.catch(failed)
    } catch (thrown) {
      failed(thrown)
    }
  }
}
