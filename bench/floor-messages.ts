import type { FloorChallenge, FloorSession } from './floor-sign-in.ts'

/** A challenge as protobuf has it. */
export function challengeMessage(challenge: FloorChallenge) {
  return { ...challenge, issuedAt: BigInt(challenge.issuedAt), expiresAt: BigInt(challenge.expiresAt) }
}

/** A session as protobuf has it. */
export function sessionMessage(session: FloorSession) {
  const { createdAt, expiresAt } = session
  return { ...session, createdAt: BigInt(createdAt), expiresAt: BigInt(expiresAt), current: true }
}
