import { areGroups } from '../../shared/groups.ts'
import type { BaseSession } from '../../shared/session.ts'

/** A live session, and what the service says of its user. Times are epoch milliseconds. */
export interface Session extends BaseSession {
  /** The user's groups, by the people file of the service's operator. */
  readonly groups: readonly string[]
}

/**
 * The session in an object that a service answered with, in Connect's JSON or in this process: without fields that are
 * not a session's, and frozen, because all who ask for it within its time in the cache share it. `undefined` if a field
 * is missing or malformed.
 */
export function readSession(fields: Readonly<Record<string, unknown>>): Session | undefined {
  const { id, userId, orderId } = fields
  // JSON of protobuf messages leaves out empty text, and has 64-bit integers as text.
  const { adapterId = '', publicKeyHex = '', address = '', ip = '', userAgent = '', groups = [] } = fields
  const createdAt = Number(fields.createdAt)
  const expiresAt = Number(fields.expiresAt)
  if (!isText(id) || id === '' || !isText(userId) || userId === '') return undefined
  if (!isText(adapterId) || !isText(publicKeyHex) || !isText(address) || !isText(ip) || !isText(userAgent))
    return undefined
  if (!Number.isSafeInteger(createdAt) || !Number.isSafeInteger(expiresAt)) return undefined
  if (!areGroups(groups)) return undefined
  const ofOrder = isText(orderId) && orderId !== '' ? { orderId } : {}
  const wallet = { adapterId, publicKeyHex, address }
  const times = { createdAt, expiresAt }
  const own = Object.freeze([...groups])
  return Object.freeze({ id, userId, ...wallet, ...times, ...ofOrder, ip, userAgent, groups: own })
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/**
 * Why a session could not be checked:
 *
 * - SERVICE_UNAVAILABLE: the service did not answer in time, could not be reached, or said that it cannot answer at the
 *   moment.
 * - UNEXPECTED_ANSWER: what answered is not the service; check `url`.
 */
export type SessionCheckErrorReason = 'SERVICE_UNAVAILABLE' | 'UNEXPECTED_ANSWER'

/** Details of a {@link SessionCheckError}. */
export interface SessionCheckErrorOptions {
  /** Time after which a retry can succeed, in milliseconds, if the service stated one. */
  readonly retryAfterMs?: number | undefined
  /** The error underneath: the network's or the service's. */
  readonly cause?: unknown
}

/**
 * The error that a check of a session rejects with if the validity of the token cannot be decided at the moment. It
 * never means "signed out": answer with HTTP 503, because a client that reads 401 throws its token away.
 */
export class SessionCheckError extends Error {
  override readonly name = 'SessionCheckError'
  readonly reason: SessionCheckErrorReason
  readonly retryAfterMs: number | undefined

  constructor(reason: SessionCheckErrorReason, message: string, options: SessionCheckErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.retryAfterMs = options.retryAfterMs
  }
}
