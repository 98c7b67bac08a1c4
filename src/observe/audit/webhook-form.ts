import { createHmac } from 'node:crypto'
import type { AuditEvent } from '../../base/audit.ts'

/** The request that delivers an event: Standard Webhooks 1.0.0 (standardwebhooks.com). */
export interface WebhookRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * Makes the request for an event. `secrets` are the keys, each in the form that {@link isWebhookSecret} wants; each of
 * them signs, so that a receiver can change from one to the next. `at` is the time of the request in epoch
 * milliseconds.
 */
export function webhookRequest(event: AuditEvent, secrets: readonly string[], at: number): WebhookRequest {
  const { id, type, time, ...data } = event
  const body = JSON.stringify({ type, timestamp: new Date(time).toISOString(), data })
  const seconds = Math.floor(at / 1000)
  const signed = `${id}.${seconds}.${body}`
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', keyOf(secret)).update(signed).digest('base64')}`,
  )
  return {
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': signatures.join(' '),
    },
    body,
  }
}

const secretForm = /^whsec_([A-Za-z0-9+/]+={0,2})$/

/** Whether a text is a secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
export function isWebhookSecret(text: string): boolean {
  const { length } = secretForm.test(text) ? keyOf(text) : Buffer.alloc(0)
  return length >= 24 && length <= 64
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secretForm.exec(secret)?.[1] ?? '', 'base64')
}
