import { hash } from 'node:crypto'
import type { Session } from './host.ts'

/** What the session of a token is found by, made of a token that this server signed. */
export interface SignedToken {
  readonly sessionId: string
  /** What is stored of the token. */
  readonly tokenHash: string
  /** The session as it was read last. Good for as long as the store has the same text. */
  last?: ReadSession | undefined
}

/** A session as it was read, and what it was read from. */
export interface ReadSession {
  readonly text: string
  readonly version: number
  /** Frozen, because it is handed out again and again. */
  readonly session: Session
}

/** Most tokens of each of the two generations. A token takes about 3 KiB together with its session. */
const maxTokens = 4_000
/** Time in ms after which the newer generation becomes the older one, as it also does when it is full. */
const generationMs = 30_000

/**
 * Cache of session tokens, two generations. Without it, a session check takes 1.5 to 1.8 times the CPU: most tokens are
 * used again and again, and a lookup here takes a small part of the time that the check of a token's signature, its hash
 * and the reading of its session take.
 *
 * It holds SHA-256 hashes of tokens, and no token; a token without the server's signature is not held, so made-up tokens
 * fill no memory. Whether a session is live is not known here: the store is asked at every use. A token is forgotten
 * between 30 and 60 seconds after its last use, or sooner under load.
 */
export class RecentTokens {
  readonly #max: number
  #newer = new Map<string, SignedToken>()
  #older = new Map<string, SignedToken>()
  #timer: NodeJS.Timeout | undefined

  /** `max` is the most tokens of each generation; 0 turns the cache off. */
  constructor(max: number = maxTokens) {
    this.#max = max
  }

  /** What is made of a token; `make` makes it, or returns `undefined` for a token that this server did not sign. */
  of(token: string, make: () => SignedToken | undefined): SignedToken | undefined {
    if (this.#max === 0) return make()
    const key = hash('sha256', token, 'base64url')
    const known = this.#newer.get(key)
    if (known !== undefined) return known
    const signed = this.#older.get(key) ?? make()
    if (signed === undefined) return undefined
    if (this.#newer.size >= this.#max) {
      this.#age()
      this.#timer?.refresh()
    }
    this.#newer.set(key, signed)
    this.#timer ??= setInterval(() => this.#age(), generationMs).unref()
    return signed
  }

  /** Forgets all tokens. */
  clear(): void {
    this.#newer.clear()
    this.#older.clear()
  }

  #age(): void {
    this.#older = this.#newer
    this.#newer = new Map()
    if (this.#older.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
