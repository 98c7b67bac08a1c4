import { createHmac, hash, randomFillSync, timingSafeEqual } from 'node:crypto'

/** Kind of a token: who holds it, and so what it grants. */
export type TokenKind = 'claim' | 'challenge' | 'desktop' | 'session' | 'hand-over'

/** Prefix of each kind, so that secret scanners find leaked tokens and people can tell them apart. */
const prefixes: Record<TokenKind, string> = {
  claim: 'csc_',
  challenge: 'csp_',
  desktop: 'csd_',
  session: 'css_',
  'hand-over': 'csh_',
}

const tokenBytes = 32

/** A new token: 256 random bits in base64url (43 characters) behind the kind's prefix. */
export function newToken(kind: TokenKind): string {
  return prefixes[kind] + randomText(tokenBytes)
}

/** The token made of 32 secret bytes, for tokens that are derived. */
export function tokenFromBytes(kind: TokenKind, bytes: Uint8Array): string {
  if (bytes.length !== tokenBytes) throw new TypeError(`a token is made of ${tokenBytes} bytes, not ${bytes.length}`)
  return prefixes[kind] + Buffer.from(bytes).toString('base64url')
}

/** A new identifier: 128 random bits in base64url (22 characters). It cannot be guessed, but it is not a secret. */
export function newId(): string {
  return randomText(16)
}

/** Random bytes for the next texts, of this process alone. A call of the system for each text takes longer. */
const pool = Buffer.alloc(4096)
let unused = 0

/** So many random bytes, in base64url: 4,096 at most. Each is used once and then wiped. */
export function randomText(bytes: number): string {
  if (bytes > unused) {
    randomFillSync(pool)
    unused = pool.length
  }
  const taken = pool.subarray(unused - bytes, unused)
  unused -= bytes
  const text = taken.toString('base64url')
  taken.fill(0)
  return text
}

/**
 * What is stored of a token: its SHA-256, base64url. A token has 256 random bits, so no salt or stretching is needed.
 */
export function hashToken(token: string): string {
  return hash('sha256', token, 'base64url')
}

/** Whether a token has a stored hash. Takes the same time wherever they differ. */
export function tokenMatches(token: string, hash: string): boolean {
  return equalInConstantTime(hashToken(token), hash)
}

/** Whether two texts are equal. Takes time that depends on their lengths only. */
export function equalInConstantTime(a: string, b: string): boolean {
  const left = Buffer.from(a)
  const right = Buffer.from(b)
  return left.length === right.length && timingSafeEqual(left, right)
}

/**
 * Purpose of a key made from the server's secret; those of the OpenID Connect issuer begin with `oidc`. The output for
 * one purpose reveals nothing about another's.
 */
export type KeyPurpose =
  | 'session token'
  | 'session cookie'
  | 'challenge token'
  | 'finalize seed'
  | 'return code'
  | 'access token key'
  | 'placeholder address'
  | 'store copy'
  | `oidc ${string}`

/** Prepares what follows from the secrets for other ones, and returns what puts it in force. */
type Follower = (next: Keyring) => Promise<() => void> | (() => void)

/**
 * The server's secrets: the first signs and derives, all verify. To rotate, put the new one last on all instances, then
 * first on all instances, and remove the old one once the tokens that it signed have expired. Without the first step an
 * instance that does not know the new secret yet refuses what another one signs with it.
 */
export class Keyring {
  #secrets: readonly string[]
  readonly #followers: Follower[] = []

  constructor(secrets: readonly string[]) {
    if (secrets.length === 0) throw new TypeError('a keyring needs at least one secret')
    this.#secrets = secrets
  }

  /** Adds what is derived from the secrets, or cached of signatures. */
  follow(follower: Follower): void {
    this.#followers.push(follower)
  }

  /**
   * Prepares all followers for other secrets. Resolves with what puts the secrets in force, and the followers with
   * them, in one step. What was signed with a secret that is not among them is no longer valid then.
   */
  async prepare(secrets: readonly string[]): Promise<() => void> {
    const next = new Keyring(secrets)
    const apply = await Promise.all(this.#followers.map((follower) => follower(next)))
    return () => {
      this.#secrets = secrets
      for (const each of apply) each()
    }
  }

  /** HMAC-SHA-256 of a text under the first secret, base64url (43 characters). */
  sign(purpose: KeyPurpose, text: string): string {
    return macOf(this.#secrets[0] as string, inputOf(purpose, [text])).toString('base64url')
  }

  /** Whether a signature was made by any of the secrets. */
  verify(purpose: KeyPurpose, text: string, signature: string): boolean {
    const input = inputOf(purpose, [text])
    let valid = false
    for (const secret of this.#secrets) {
      valid = equalInConstantTime(macOf(secret, input).toString('base64url'), signature) || valid
    }
    return valid
  }

  /**
   * 32 secret bytes that are determined by the server's secret and the parts, one of which is the caller's own secret.
   * One result for each of the server's secrets, in their order: new values use the first, old values can match any.
   */
  derive(purpose: KeyPurpose, parts: readonly string[]): [Uint8Array, ...Uint8Array[]] {
    const input = inputOf(purpose, parts)
    return this.#secrets.map((secret) => macOf(secret, input)) as [Buffer, ...Buffer[]]
  }
}

/** HMAC-SHA-256 (RFC 2104). */
function macOf(secret: string, input: string): Buffer {
  return createHmac('sha256', secret).update(input).digest()
}

/** What is signed. Each part has its length in front of it, so that no two lists of parts have the same input. */
function inputOf(purpose: KeyPurpose, parts: readonly string[]): string {
  let input = `countersign:v1:${purpose}`
  for (const part of parts) input += `\n${Buffer.byteLength(part)}:${part}`
  return input
}

/** Whether an id has the form of the service's own user ids, derived from a wallet or random. */
export function isMadeUserId(id: string): boolean {
  return /^usr_[\w-]{22}$/.test(id)
}
