/** The least that issues and verifies real nonces; bench/README.md says what it does and leaves out. */
import { createPublicKey, hash, randomBytes, verify } from 'node:crypto'
import { nimiq } from '../src/wallet/nimiq.ts'
import type { FloorSteps } from './floor-steps.ts'

/**
 * What a floor does to the store: as little as a sign-in can (a nonce is stored, taken once, and a session stored), or what
 * Countersign does, with the same result.
 */
export type FloorWork = 'least' | 'same commands'

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

/** A session as it is stored. */
export interface FloorSession {
  readonly id: string
  readonly userId: string
  readonly adapterId: string
  readonly publicKeyHex: string
  readonly address: string
  readonly createdAt: number
  readonly expiresAt: number
}

interface FloorSignedIn {
  readonly token: string
  readonly session: FloorSession
  /** Headers of the answer; none of the least. */
  readonly headers: Readonly<Record<string, string>>
}

/** Issues nonces and signs in with them. */
export class FloorSignIn {
  readonly #steps: FloorSteps
  readonly #same: boolean

  constructor(steps: FloorSteps, work: FloorWork) {
    this.#steps = steps
    this.#same = work === 'same commands'
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
    const stored = this.#same ? `1:${JSON.stringify(challenge)}` : message
    await this.#steps.set(`nonce:${nonceId}`, stored, nonceMs)
    return challenge
  }

  /** Throws an error if it is not a sign-in. */
  async verify({ nonceId, publicKeyHex, signatureHex }: FloorProof): Promise<FloorSignedIn> {
    const rawKey = Buffer.from(publicKeyHex, 'hex')
    // The least keeps nobody but the session's key.
    const userId = this.#same ? `usr_${hash('sha256', publicKeyHex, 'base64url')}` : publicKeyHex
    const [stored, , user] = this.#same
      ? await Promise.all([
          this.#steps.takeIf(`nonce:${nonceId}`, '{"action":"auth.login"'),
          this.#steps.get(`claim:${userId}`),
          this.#steps.get(`user:${userId}`),
        ])
      : [await this.#steps.take(`nonce:${nonceId}`)]
    if (typeof stored !== 'string') throw new Error('there is no such nonce')
    const message = this.#same ? JSON.parse(stored.slice('1:'.length)).message : stored
    const key = createPublicKey({ key: rawKey, format: 'raw-public', asymmetricKeyType: 'ed25519' })
    if (!verify(null, Buffer.from(message), key, Buffer.from(signatureHex, 'hex'))) throw new Error('not signed')
    const token = randomBytes(32).toString('base64url')
    const id = hash('sha256', token, 'base64url')
    const createdAt = Date.now()
    const expiresAt = createdAt + sessionMs
    const address = this.#same ? nimiq.deriveAddress(rawKey) : publicKeyHex
    const session = { id, userId, adapterId: 'ed25519', publicKeyHex, address, createdAt, expiresAt }
    if (!this.#same) {
      await this.#steps.set(`session:${id}`, JSON.stringify(session), sessionMs)
      return { token, session, headers: {} }
    }
    // A user who is new is stored before the session, as anything that it refers to.
    if (typeof user !== 'string') await this.#steps.set(`user:${userId}`, `1:{"id":"${userId}"}`, sessionMs)
    await Promise.all([
      this.#steps.set(`session:${id}`, `1:${JSON.stringify(session)}`, sessionMs),
      this.#steps.addMember(`sessions:${userId}`, id, sessionMs),
      this.#steps.get(`claim:${userId}`),
      this.#steps.get(`user:${userId}`),
    ])
    const cookie = `countersign_session=${token}; Max-Age=${sessionMs / 1000}; Path=/; HttpOnly; SameSite=Lax`
    return { token, session, headers: { 'set-auth-token': token, 'set-cookie': cookie } }
  }
  /** The session of a bearer token, by one read. Throws an error if there is none. */
  async session(authorization: string): Promise<FloorSession> {
    const id = hash('sha256', authorization.slice('Bearer '.length), 'base64url')
    const stored = await this.#steps.get(`session:${id}`)
    if (typeof stored !== 'string') throw new Error('there is no such session')
    return JSON.parse(this.#same ? stored.slice('1:'.length) : stored)
  }
}
