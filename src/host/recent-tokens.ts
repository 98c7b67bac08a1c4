import { hash } from 'node:crypto'
import type { Session } from './host.ts'

/** What the session of a token is found by, made of a token that this server signed. */
export interface SignedToken {
  readonly sessionId: string
  /** What is stored of the token. */
  readonly tokenHash: string
  /** What was read when the token was used last. Good for as long as the store has the same. */
  last?: ReadSession | undefined
}

/** A session as it was read, and what it was read from. */
export interface ReadSession {
  readonly text: string
  readonly version: number
  /** Frozen, because it is handed out again and again. */
  readonly session: Session
}

/** Most tokens that were used lately, and as many that were before. One takes about 3 KiB together with its session. */
const mostTokens = 4_000
/**
 * Time in ms after which tokens that were used lately become those that were used before, as they do when there are
 * {@link mostTokens}. So a token is forgotten between one and two of these times after its last use, or sooner under load.
 */
const unusedMs = 30_000

/**
 * What was made of the tokens that were used lately. Most tokens are used again and again, and to find what was made of one takes a
 * small part of the time that it takes to check its signature, to hash it, and to read its session.
 *
 * Keeps SHA-256 hashes of tokens, and no token. A token without the server's signature is not kept, so that whoever sends made-up
 * tokens fills no memory. Whether the session of a token lives is not known here: the store says so at every use. A token that is
 * no longer used is forgotten after about a minute, so that a quiet server does not hold the sessions of hours ago.
 */
export class RecentTokens {
  #recent = new Map<number, RecentToken>()
  #before = new Map<number, RecentToken>()
  #era: number | undefined
  #timer: NodeJS.Timeout | undefined

  /**
   * What is made of a token; `make` makes it, or returns `undefined` if nobody signed the token. `era` is that of the keyring:
   * what was kept in another one is forgotten.
   */
  of(token: string, era: number, make: () => SignedToken | undefined): SignedToken | undefined {
    if (era !== this.#era) {
      this.#era = era
      this.#recent.clear()
      this.#before.clear()
    }
    // As Latin-1, which has a character for each byte: the fastest form.
    const tokenHash = hash('sha256', token, 'latin1')
    const key = keyOf(tokenHash)
    const recent = this.#recent.get(key)
    if (recent?.tokenHash === tokenHash) return recent.signed
    const before = this.#before.get(key)
    const signed = before?.tokenHash === tokenHash ? before.signed : make()
    if (signed === undefined) return undefined
    if (this.#recent.size >= mostTokens) {
      this.#beginAnew()
      this.#timer?.refresh()
    }
    this.#recent.set(key, { tokenHash, signed })
    this.#timer ??= setInterval(() => this.#age(), unusedMs).unref()
    return signed
  }

  #age(): void {
    this.#beginAnew()
    if (this.#before.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Forgets the tokens that were used before; those that were used lately take their place. */
  #beginAnew(): void {
    this.#before = this.#recent
    this.#recent = new Map()
  }
}

interface RecentToken {
  readonly tokenHash: string
  readonly signed: SignedToken
}

/**
 * The first 24 bits of a hash. Of two tokens that share them, the one that was used last is kept. To find a text in a map, V8 would
 * enter each hash into its table of texts first.
 */
function keyOf(tokenHash: string): number {
  return (tokenHash.charCodeAt(0) << 16) | (tokenHash.charCodeAt(1) << 8) | tokenHash.charCodeAt(2)
}
