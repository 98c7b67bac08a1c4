import { type AuditTrail, noAudit, signedInFacts } from '../audit/trail.ts'
import { afterNonceUsed } from '../errors.ts'
import type { Host, IssuedSession, ReadsAhead } from '../host/host.ts'
import type { RateLimiter } from '../limits/rate.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import type { RequestContext } from '../request.ts'
import type { Proof } from '../wallet/proof.ts'
import type { Prover, WalletNamed } from '../wallet/prover.ts'
import { requireAppName } from './app-name.ts'
import type { NonceRecord, Nonces } from './nonce.ts'

/** Direct sign-in: a nonce challenge, a signature over it, a session. */
export class SignIn {
  readonly #appName: string
  readonly #nonces: Nonces
  readonly #prover: Prover
  readonly #origins: OriginPolicy
  readonly #host: Host & Partial<ReadsAhead>
  readonly #audit: AuditTrail
  readonly #limiter: RateLimiter | undefined

  constructor(
    appName: string,
    nonces: Nonces,
    prover: Prover,
    origins: OriginPolicy,
    host: Host & Partial<ReadsAhead>,
    audit: AuditTrail = noAudit,
    limiter?: RateLimiter,
  ) {
    this.#appName = appName
    this.#nonces = nonces
    this.#prover = prover
    this.#origins = origins
    this.#host = host
    this.#audit = audit
    this.#limiter = limiter
  }

  /**
   * Makes a challenge for the request's origin, which must be trusted. `expectedAppName`, if given, must be the
   * server's own. The message is the text for the wallet that is named.
   */
  async issueNonce(
    expectedAppName: string | undefined,
    wallet: WalletNamed,
    request: RequestContext,
  ): Promise<NonceRecord> {
    const origin = this.#origins.requireTrusted(request)
    requireAppName(expectedAppName, this.#appName)
    const make = (nonce: NonceRecord): string => this.#prover.textFor(nonce, wallet, request.origin)
    return this.#nonces.issue(origin, { ip: request.ip, make })
  }

  /**
   * Consumes the nonce, checks the proof over its challenge, and then creates a session. The request must come
   * from the nonce's own origin, which must still be trusted. RATE_LIMITED if the wallet has signed in too often; the nonce is used
   * then.
   */
  async verify(nonceId: string, proof: Proof, request: RequestContext): Promise<IssuedSession> {
    const claimed = this.#prover.walletClaimed(proof)
    if (claimed !== undefined) this.#host.readAhead?.(claimed, request)
    const nonce = await this.#nonces.consume(nonceId, request, this.#origins)
    const { identity } = await this.#prover.prove(nonce, proof, request.origin)
    const counting = this.#limiter?.countSignIn(identity)
    if (counting !== undefined) await counting
    try {
      const user = await this.#host.resolveUser(identity, request)
      const issued = await this.#host.createSession(user, identity, request)
      this.#audit.tell(signedInFacts(issued.session), request)
      return issued
    } catch (thrown) {
      throw afterNonceUsed(thrown)
    }
  }
}
