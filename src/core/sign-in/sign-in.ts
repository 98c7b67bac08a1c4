import { type AuditTrail, noAudit, signedInFacts } from '../../base/audit.ts'
import type { RequestContext } from '../../base/request.ts'
import type { RateLimiter } from '../../limits/rate.ts'
import { afterNonceUsed } from '../../shared/errors.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import type { Host, IssuedSession } from '../users/host.ts'
import type { Prover } from '../wallet/prover.ts'
import type { FormFields } from '../wallet/sign-in-form.ts'
import type { Proof, WalletNamed } from '../wallet/wallet.ts'
import type { NonceRecord, Nonces } from './nonce.ts'

/** Parts of {@link SignIn}. */
export interface SignInParts {
  readonly nonces: Nonces
  readonly prover: Prover
  readonly origins: OriginPolicy
  readonly host: Host
  /** Records successful sign-ins. Default: nothing is recorded. */
  readonly audit?: AuditTrail | undefined
  /** Limits the sign-ins of each wallet. Without it, there is no such limit. */
  readonly limiter?: RateLimiter | undefined
}

/** Direct sign-in: a nonce challenge, a signature over it, a session. */
export class SignIn {
  readonly #parts: SignInParts

  constructor(parts: SignInParts) {
    this.#parts = parts
  }

  /**
   * Makes a challenge for the request's origin, which must be trusted. `expectedAppName`, if given, must be the
   * server's own. The message is the text for the wallet that is named, and the nonce keeps what is named.
   */
  async issueNonce(
    expectedAppName: string | undefined,
    wallet: WalletNamed,
    request: RequestContext,
  ): Promise<NonceRecord> {
    const { nonces, prover, origins } = this.#parts
    const origin = origins.requireTrusted(request)
    nonces.requireAppName(expectedAppName)
    const make = (nonce: NonceRecord): string => prover.textFor(nonce, wallet, request.origin)
    return await nonces.issue(origin, { askedFor: wallet, ip: request.ip, make })
  }

  /**
   * Makes a challenge as {@link issueNonce} does, with the fields of its form, from which the caller writes the text.
   * The account may be named later, by the proof. The nonce keeps what is named here.
   */
  async issueForm(
    expectedAppName: string | undefined,
    wallet: WalletNamed,
    request: RequestContext,
  ): Promise<NonceRecord & { readonly form: FormFields }> {
    const { nonces, prover, origins } = this.#parts
    const origin = origins.requireTrusted(request)
    nonces.requireAppName(expectedAppName)
    const named = prover.namedForForm(wallet)
    const nonce = await nonces.issue(origin, { named, ip: request.ip })
    return { ...nonce, ...prover.formFor(nonce, named, request.origin) }
  }

  /**
   * Consumes the nonce, checks the proof over its challenge, and then creates a session. The request must come
   * from the nonce's own origin, which must still be trusted. RATE_LIMITED if the wallet has signed in too often; the
   * nonce is used then.
   */
  async verify(nonceId: string, proof: Proof, request: RequestContext): Promise<IssuedSession> {
    const { nonces, prover, origins, host, audit = noAudit, limiter } = this.#parts
    const nonce = await nonces.consume(nonceId, { request, origins })
    const { identity } = await prover.prove(nonce, proof, { pageOrigin: request.origin })
    await limiter?.countSignIn(identity)
    try {
      const user = await host.resolveUser(identity, request)
      const issued = await host.createSession(user, identity, request)
      audit.record(signedInFacts(issued.session), request)
      return issued
    } catch (thrown) {
      throw afterNonceUsed(thrown)
    }
  }
}
