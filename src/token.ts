import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'

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
  return tokenFromBytes(kind, randomBytes(tokenBytes))
}

/** The token made of 32 secret bytes, for tokens that are derived. */
export function tokenFromBytes(kind: TokenKind, bytes: Uint8Array): string {
  if (bytes.length !== tokenBytes) throw new TypeError(`a token is made of ${tokenBytes} bytes, not ${bytes.length}`)
  return prefixes[kind] + Buffer.from(bytes).toString('base64url')
}

/** A new identifier: 128 random bits in base64url (22 characters). It cannot be guessed, but it is not a secret. */
export function newId(): string {
  return randomBytes(16).toString('base64url')
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

/** Purpose of a key made from the server's secret. The output for one purpose reveals nothing about another's. */
export type KeyPurpose = 'session token' | 'challenge token' | 'finalize seed' | 'return code' | 'access token key'

/**
 * The server's secrets: the first signs and derives, all verify. To rotate, put the new one last on all instances, then
 * first on all instances, and remove the old one once the tokens that it signed have expired. Without the first step an
 * instance that does not know the new secret yet refuses what another one signs with it.
 */
export class Keyring {
  #secrets: readonly string[] = []

  constructor(secrets: readonly string[]) {
    this.replace(secrets)
  }

  /** Goes by other secrets from now on. What was signed with one that is not among them is no longer valid. */
  replace(secrets: readonly string[]): void {
    if (secrets.length === 0) throw new TypeError('a keyring needs at least one secret')
    this.#secrets = secrets
  }

  /** HMAC-SHA-256 of a text under the first secret, base64url (43 characters). */
  sign(purpose: KeyPurpose, text: string): string {
    return this.#mac(this.#secrets[0] as string, purpose, [text]).toString('base64url')
  }

  /** Whether a signature was made by any of the secrets. */
  verify(purpose: KeyPurpose, text: string, signature: string): boolean {
    let valid = false
    for (const secret of this.#secrets) {
      const expected = this.#mac(secret, purpose, [text]).toString('base64url')
      valid = equalInConstantTime(expected, signature) || valid
    }
    return valid
  }

  /**
   * 32 secret bytes that are determined by the server's secret and the parts, one of which is the caller's own secret.
   * One result for each of the server's secrets, in their order: new values use the first, old values can match any.
   */
  derive(purpose: KeyPurpose, parts: readonly string[]): [Uint8Array, ...Uint8Array[]] {
    return this.#secrets.map((secret) => this.#mac(secret, purpose, parts)) as [Buffer, ...Buffer[]]
  }

  #mac(secret: string, purpose: KeyPurpose, parts: readonly string[]): Buffer {
    const mac = createHmac('sha256', secret).update(`countersign:v1:${purpose}`)
    // Each part has its length in front of it, so that no two lists of parts have the same input.
    for (const part of parts) mac.update(`\n${Buffer.byteLength(part)}:${part}`)
    return mac.digest()
  }
}
