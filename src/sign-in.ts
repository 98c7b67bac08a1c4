import { CountersignError } from './errors.ts'
import type { Host, IssuedSession, ProvenIdentity } from './host/host.ts'
import type { NonceRecord, Nonces } from './nonce.ts'
import type { OriginPolicy } from './origin.ts'
import type { RequestContext } from './request.ts'

/** A wallet's proof over a challenge. Hex in either case. */
export interface Proof {
  readonly publicKeyHex: string
  readonly signatureHex: string
  /** Must derive from the key when present. */
  readonly address?: string | undefined
  /** Without it, the configured adapters are tried in order. */
  readonly adapterId?: string | undefined
}

/** Checks a proof over a message: the identity it proves, or a `CountersignError`. */
export type Prover = (message: string, proof: Proof) => ProvenIdentity

/** Direct sign-in: a nonce challenge, a signature over it, a session. */
export class SignIn {
  readonly #appName: string
  readonly #nonces: Nonces
  readonly #prove: Prover
  readonly #origins: OriginPolicy
  readonly #host: Host

  constructor(appName: string, nonces: Nonces, prove: Prover, origins: OriginPolicy, host: Host) {
    this.#appName = appName
    this.#nonces = nonces
    this.#prove = prove
    this.#origins = origins
    this.#host = host
  }

  /** Makes a challenge for the request's origin, which must be trusted. `expectedAppName` must be the server's own, if given. */
  async issueNonce(expectedAppName: string | undefined, request: RequestContext): Promise<NonceRecord> {
    const origin = this.#origins.requireTrusted(request)
    if (expectedAppName !== undefined && expectedAppName !== this.#appName) {
      throw new CountersignError(
        'APP_NAME_MISMATCH',
        `This service signs in to ${JSON.stringify(this.#appName)}; correct appName in the client or on the server (COUNTERSIGN_APP_NAME)`,
      )
    }
    return await this.#nonces.issue(origin)
  }

  /**
   * Uses the nonce up, checks the proof over its stored message, and only then creates a session. The request must come from
   * the nonce's own origin.
   */
  async verify(nonceId: string, proof: Proof, request: RequestContext): Promise<IssuedSession> {
    const { message } = await this.#nonces.consume(nonceId, ({ origin }) =>
      this.#origins.requireSame(request, origin, 'nonce'),
    )
    const identity = this.#prove(message, proof)
    const user = await this.#host.resolveUser(identity, request)
    return await this.#host.createSession(user, identity, request)
  }
}
