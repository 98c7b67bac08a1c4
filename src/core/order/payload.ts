import { hash } from 'node:crypto'
import { canonicalPayload } from './canonical-payload.ts'

/** What a sign order is about. */
export interface Payload {
  /** Canonical form (RFC 8785). */
  readonly payload: string
  /** `sha256:` and the base64url SHA-256 of the canonical form. */
  readonly payloadHash: string
}

/** Reads a payload for a new order. Throws what {@link canonicalPayload} throws. */
export function readPayload(text: string): Payload {
  const payload = canonicalPayload(text)
  return { payload, payloadHash: `sha256:${hash('sha256', payload, 'base64url')}` }
}
