import type { JsonValue } from '@bufbuild/protobuf'
import type { RpcAnswer } from '../../support/rpc-answer.ts'

/** What is compared of an answer, by name. Fields that are absent in both answers are equal. */
export type Fields = Readonly<Record<string, JsonValue>>

/** Headers of a connection and of a body's framing; the body is compared after decoding. */
const ignoredHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'transfer-encoding',
  // These carry the failure, which is compared field by field.
  'grpc-message',
  'grpc-status-details-bin',
])

/**
 * The fields of an answer: status, failure, messages and every header but the few above. `undefined` stands for a
 * server that hung up.
 */
export function fieldsOf(answer: RpcAnswer | undefined): Fields {
  if (answer === undefined) return { answered: false }
  const { status, headers, messages, failure, other } = answer
  const fields: Record<string, JsonValue> = { answered: true, status, messages: messages.map(withoutChance) }
  if (failure !== undefined) {
    const { code, message, reason, metadata, details } = failure
    Object.assign(fields, { code, message: withoutUuid(message), details: [...details] })
    if (reason !== undefined) fields.reason = reason
    if (metadata !== undefined) {
      fields.metadata = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, withoutUuid(value)]))
    }
  }
  if (other !== undefined) fields.body = other
  for (const [name, value] of headers) {
    if (!ignoredHeaders.has(name)) fields[`header ${name}`] = value
  }
  return fields
}

/** The names of the fields that differ. */
export function differencesOf(one: Fields, other: Fields): string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].filter((name) => stable(one[name]) !== stable(other[name])).sort()
}

function stable(value: JsonValue | undefined): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}

/** Fields of messages whose values are drawn at random or follow the clock. Their types and lengths are compared. */
const chance: Readonly<Record<string, readonly string[]>> = {
  // IssueNonce
  nonceId: ['nonceId', 'nonce', 'issuedAt', 'expiresAt', 'message'],
  // StartOrder
  claimUrl: ['orderId', 'claimUrl', 'claimToken', 'desktopToken', 'expiresAt', 'confirmationCode'],
}

function withoutChance(message: JsonValue): JsonValue {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return message
  const names = Object.keys(chance).flatMap((mark) => (mark in message ? (chance[mark] ?? []) : []))
  return Object.fromEntries(
    Object.entries(message).map(([name, value]) => [
      name,
      names.includes(name) ? `${typeof value} of length ${String(value).length}` : (value as JsonValue),
    ]),
  )
}

function withoutUuid(text: string): string {
  return text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'a UUID')
}
