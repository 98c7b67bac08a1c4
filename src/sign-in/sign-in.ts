import { afterNonceUsed } from '../errors.ts'
import type { Host, IssuedSession } from '../host/host.ts'
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
  readonly #host: Host

  constructor(appName: string, nonces: Nonces, prover: Prover, origins: OriginPolicy, host: Host) {
    this.#appName = appName
    this.#nonces = nonces
    this.#prover = prover
    this.#origins = origins
    this.#host = host
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
    return await this.#nonces.issue(origin, { ip: request.ip, make })
  }

  /**
   * Consumes the nonce, checks the proof over its challenge, and then creates a session. The request must come
   * from the nonce's own origin, which must still be trusted.
   */
  async verify(nonceId: string, proof: Proof, request: RequestContext): Promise<IssuedSession> {
    const nonce = await this.#nonces.consume(nonceId, request, this.#origins)
    const { identity } = await this.#prover.prove(nonce, proof, request.origin)
    try {
      const user = await this.#host.resolveUser(identity, request)
      return await this.#host.createSession(user, identity, request)
    } catch (thrown) {
      throw afterNonceUsed(thrown)
    }
  }
}
