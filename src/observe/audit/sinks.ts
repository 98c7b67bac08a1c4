import type { AuditEvent, AuditEventHook, AuditSink } from '../../base/audit.ts'
import { causeText, type LogFields, type Logger } from '../../base/log.ts'

/**
 * Writes events to the log, at level info, with the text `audit`. Refused calls and limits are left out: the service
 * logs each failed call anyway.
 */
export function logSink(log: Logger): AuditSink {
  return (event) => {
    if (isRefusal(event)) return
    const { type, time: _time, ...fields } = event
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

function isRefusal({ type }: AuditEvent): boolean {
  return type === 'challenge.refused' || type === 'call.refused' || type === 'limit.hit'
}
