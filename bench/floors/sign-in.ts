/**
 * The baseline of a sign-in: the same result as Countersign's, stored and answered, by the fewest commands to Redis:
 * five in three trips. bench/README.md says what it leaves out.
 */
import { createPublicKey, hash, randomBytes, verify } from 'node:crypto'
import { createClient } from 'redis'
import { nimiq } from '../../src/core/wallet/nimiq.ts'
import { scripts } from '../../src/store/redis/scripts.ts'

const nonceMs = 300_000
const sessionMs = 7 * 24 * 3_600_000
/** Countersign bounds the sessions of a user, too. */
const mostSessions = 100

/** What a wallet signs. */
interface Challenge {
  readonly action: string
  readonly challengeId: string
  readonly nonceId: string
  readonly nonce: string
  readonly origin: string
  readonly issuedAt: number
  readonly expiresAt: number
  readonly message: string
}

interface Proof {
  readonly nonceId: string
  readonly publicKeyHex: string
  readonly signatureHex: string
}

/** Where a sign-in comes from, as far as a session says it. */
interface Caller {
  readonly ip: string
  readonly userAgent: string
}

interface Session extends Caller {
  readonly id: string
  readonly userId: string
  readonly adapterId: string
  readonly publicKeyHex: string
  readonly address: string
  readonly createdAt: number
  readonly expiresAt: number
}

interface SignedIn {
  readonly token: string
  readonly session: Session
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>
}

async function connect(url: string) {
  const client = createClient({ url, scripts, maintNotifications: 'disabled', commandOptions: { timeout: 0 } })
  await client.connect()
  return client
}

/** Issues nonces and signs in with them. */
export class LeastSignIn implements Disposable {
  readonly #redis: Awaited<ReturnType<typeof connect>>

  private constructor(redis: Awaited<ReturnType<typeof connect>>) {
    this.#redis = redis
  }

  static async open(redisUrl: string): Promise<LeastSignIn> {
    return new LeastSignIn(await connect(redisUrl))
  }

  async issue(origin: string): Promise<Challenge> {
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
    const names = { action: 'auth.login', challengeId: 'login' }
    const challenge = { ...names, nonceId, nonce, origin, issuedAt, expiresAt, message }
    await this.#set(`nonce:${nonceId}`, challenge, nonceMs)
    return challenge
  }

  /** Throws an error if it is not a sign-in. */
  async verify({ nonceId, publicKeyHex, signatureHex }: Proof, caller: Caller): Promise<SignedIn> {
    const userId = `usr_${hash('sha256', publicKeyHex, 'base64url')}`
    const [stored, user] = await Promise.all([
      this.#redis.getDel(`floor:nonce:${nonceId}`),
      this.#redis.get(`floor:user:${userId}`),
    ])
    if (stored === null) throw new Error('there is no such nonce')
    const publicKey = Buffer.from(publicKeyHex, 'hex')
    const key = createPublicKey({ key: publicKey, format: 'raw-public', asymmetricKeyType: 'ed25519' })
    const { message } = JSON.parse(stored) as Challenge
    if (!verify(null, Buffer.from(message), key, Buffer.from(signatureHex, 'hex'))) throw new Error('not signed')
    const token = randomBytes(32).toString('base64url')
    const id = hash('sha256', token, 'base64url')
    const createdAt = Date.now()
    const lives = { createdAt, expiresAt: createdAt + sessionMs }
    const wallet = { adapterId: 'ed25519', publicKeyHex, address: nimiq.deriveAddress(publicKey) }
    const session = { id, userId, ...wallet, ...lives, ...caller }
    // The user is stored before the session that refers to it.
    if (user === null) await this.#set(`user:${userId}`, { id: userId }, sessionMs)
    await Promise.all([
      this.#set(`session:${id}`, session, sessionMs),
      this.#redis.addMember(`floor:sessions:${userId}`, { member: id, ttlMs: sessionMs, most: mostSessions }),
    ])
    const cookie = `countersign_session=${token}; Max-Age=${sessionMs / 1000}; Path=/; HttpOnly; SameSite=Lax`
    return { token, session, headers: { 'set-auth-token': token, 'set-cookie': cookie } }
  }

  /** The session of a bearer token, by one read. Throws an error if there is none. */
  async session(authorization: string): Promise<Session> {
    const id = hash('sha256', authorization.slice('Bearer '.length), 'base64url')
    const stored = await this.#redis.get(`floor:session:${id}`)
    if (stored === null) throw new Error('there is no such session')
    return JSON.parse(stored)
  }

  [Symbol.dispose](): void {
    this.#redis.destroy()
  }

  async #set(key: string, value: object, ttlMs: number): Promise<void> {
    await this.#redis.set(`floor:${key}`, JSON.stringify(value), { expiration: { type: 'PX', value: ttlMs } })
  }
}

/** A challenge as protobuf has it. */
export function challengeMessage(challenge: Challenge) {
  return { ...challenge, issuedAt: BigInt(challenge.issuedAt), expiresAt: BigInt(challenge.expiresAt) }
}

/** A session as protobuf has it. */
export function sessionMessage(session: Session) {
  const { createdAt, expiresAt } = session
  return { ...session, createdAt: BigInt(createdAt), expiresAt: BigInt(expiresAt), current: true }
}
