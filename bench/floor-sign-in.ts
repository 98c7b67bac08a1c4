/** The least that issues and verifies real nonces; bench/README.md says what it does and leaves out. */
import { createPublicKey, hash, randomBytes, verify } from 'node:crypto'
import { nimiq } from '../src/wallet/nimiq.ts'
import type { FloorSteps } from './floor-steps.ts'

/**
 * How much a floor does.
 *
 * - `bare`: a nonce is stored, taken once, and a session stored. Three commands, and nobody is kept but the session's key.
 * - `least`: the same result as Countersign's, with the user, the address, the list of the user's sessions and the cookie, by the
 *   fewest commands: five in three trips.
 * - `same commands`: the same result by the commands that Countersign sends.
 */
export type FloorWork = 'bare' | 'least' | 'same commands'

const nonceMs = 300_000
const sessionMs = 7 * 24 * 3_600_000

/** What is to be signed. */
export interface FloorChallenge {
  readonly action: string
  readonly challengeId: string
  readonly nonceId: string
  readonly nonce: string
  readonly origin: string
  readonly issuedAt: number
  readonly expiresAt: number
  readonly message: string
}

interface FloorProof {
  readonly nonceId: string
  readonly publicKeyHex: string
  readonly signatureHex: string
}

/** Who signs in, as far as a session says it. */
export interface FloorCaller {
  readonly ip: string
  readonly userAgent: string
}

/** A session as it is stored. */
export interface FloorSession {
  readonly id: string
  readonly userId: string
  readonly adapterId: string
  readonly publicKeyHex: string
  readonly address: string
  readonly createdAt: number
  readonly expiresAt: number
  /** Absent from one of the bare floor, as is the next. */
  readonly ip?: string
  readonly userAgent?: string
}

interface FloorSignedIn {
  readonly token: string
  readonly session: FloorSession
  /** Headers of the answer that are about the session; none of the bare floor. */
  readonly headers: Readonly<Record<string, string>>
}

/** Issues nonces and signs in with them. */
export class FloorSignIn {
  readonly #steps: FloorSteps
  readonly #isBare: boolean
  /** Whether the wallet's claim is read beside its user, and both again once the session is stored. */
  readonly #readsAgain: boolean

  constructor(steps: FloorSteps, work: FloorWork) {
    this.#steps = steps
    this.#isBare = work === 'bare'
    this.#readsAgain = work === 'same commands'
  }

  async issue(origin: string): Promise<FloorChallenge> {
    const nonceId = randomBytes(16).toString('base64url')
    const nonce = randomBytes(32).toString('base64url')
    const issuedAt = Date.now()
    const expiresAt = issuedAt + nonceMs
    const message = `Countersign requests authentication
Action: auth.login
Origin: ${origin}
Challenge ID: login
Nonce: ${nonce}
Issued At: ${new Date(issuedAt).toISOString()}
Expires At: ${new Date(expiresAt).toISOString()}`
    const challenge = {
      action: 'auth.login',
      challengeId: 'login',
      nonceId,
      nonce,
      origin,
      issuedAt,
      expiresAt,
      message,
    }
    const stored = this.#isBare ? message : `1:${JSON.stringify(challenge)}`
    await this.#steps.set(`nonce:${nonceId}`, stored, nonceMs)
    return challenge
  }

  /** Throws an error if it is not a sign-in. */
  async verify({ nonceId, publicKeyHex, signatureHex }: FloorProof, caller: FloorCaller): Promise<FloorSignedIn> {
    const rawKey = Buffer.from(publicKeyHex, 'hex')
    const userId = this.#isBare ? publicKeyHex : `usr_${hash('sha256', publicKeyHex, 'base64url')}`
    const userKey = `user:${userId}`
    const [stored, user] = this.#isBare
      ? [await this.#steps.take(`nonce:${nonceId}`)]
      : await this.#takeAndRead(`nonce:${nonceId}`, userKey, `claim:${userId}`)
    const isKnown = typeof user === 'string'
    if (typeof stored !== 'string') throw new Error('there is no such nonce')
    const message = this.#isBare ? stored : JSON.parse(stored.slice('1:'.length)).message
    const key = createPublicKey({ key: rawKey, format: 'raw-public', asymmetricKeyType: 'ed25519' })
    if (!verify(null, Buffer.from(message), key, Buffer.from(signatureHex, 'hex'))) throw new Error('not signed')
    const token = randomBytes(32).toString('base64url')
    const id = hash('sha256', token, 'base64url')
    const createdAt = Date.now()
    const expiresAt = createdAt + sessionMs
    const address = this.#isBare ? publicKeyHex : nimiq.deriveAddress(rawKey)
    const session = { id, userId, adapterId: 'ed25519', publicKeyHex, address, createdAt, expiresAt }
    if (this.#isBare) {
      await this.#steps.set(`session:${id}`, JSON.stringify(session), sessionMs)
      return { token, session, headers: {} }
    }
    const full = { ...session, ...caller }
    // A user who is new is stored before the session, as anything that it refers to.
    if (!isKnown) await this.#steps.set(userKey, `1:{"id":"${userId}"}`, sessionMs)
    await Promise.all([
      this.#steps.set(`session:${id}`, `1:${JSON.stringify(full)}`, sessionMs),
      this.#steps.addMember(`sessions:${userId}`, id, sessionMs),
    ])
    if (this.#readsAgain) await Promise.all([this.#steps.get(userKey), this.#steps.get(`claim:${userId}`)])
    const cookie = `countersign_session=${token}; Max-Age=${sessionMs / 1000}; Path=/; HttpOnly; SameSite=Lax`
    return { token, session: full, headers: { 'set-auth-token': token, 'set-cookie': cookie } }
  }

  /** The nonce, taken, and the user. By Countersign's commands, the nonce is read first, and the claim is read beside the user. */
  async #takeAndRead(nonceKey: string, userKey: string, claimKey: string): Promise<unknown[]> {
    if (!this.#readsAgain) return await Promise.all([this.#steps.take(nonceKey), this.#steps.get(userKey)])
    const [, user] = await Promise.all([this.#steps.get(nonceKey), this.#steps.get(userKey), this.#steps.get(claimKey)])
    return [await this.#steps.take(nonceKey), user]
  }

  /** The session of a bearer token, by one read. Throws an error if there is none. */
  async session(authorization: string): Promise<FloorSession> {
    const id = hash('sha256', authorization.slice('Bearer '.length), 'base64url')
    const stored = await this.#steps.get(`session:${id}`)
    if (typeof stored !== 'string') throw new Error('there is no such session')
    return JSON.parse(this.#isBare ? stored : stored.slice('1:'.length))
  }
}
