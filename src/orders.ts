import { CountersignError } from './errors.ts'
import type { Host, IssuedSession, ProvenIdentity } from './host/host.ts'
import type { ChallengeAction } from './message.ts'
import type { OrderKind, OrderLogin, OrderProof, OrderRecord, OrderStatus } from './order.ts'
import { changeOrder, refused } from './order-change.ts'
import type { OrderRecords } from './order-records.ts'
import { claimUrl, newOrder, type OrderSettings, type StartOrder } from './order-start.ts'
import { type OrderEvent, OrderWatches } from './order-watch.ts'
import type { OriginPolicy } from './origin.ts'
import type { RequestContext } from './request.ts'
import type { Proof } from './sign-in.ts'
import { hashToken, type Keyring, newToken, tokenFromBytes, tokenMatches } from './token.ts'
import { proveIdentity } from './wallet/adapters.ts'
import type { SignatureVerifier, WalletAdapter } from './wallet/wallet.ts'

/** What {@link Orders} works with. */
export interface OrdersOptions {
  readonly settings: OrderSettings
  readonly records: OrderRecords
  readonly keyring: Keyring
  /** The configured wallet adapters, at least one. */
  readonly adapters: readonly WalletAdapter[]
  readonly verifier: SignatureVerifier
  readonly origins: OriginPolicy
  readonly host: Host
  /** Aborts when the server means to stop: all watches then end with `reconnect`. */
  readonly shutdown: AbortSignal
}

/** A started order. Times are epoch milliseconds. */
export interface StartedOrder {
  readonly orderId: string
  readonly claimUrl: string
  /** Secret. */
  readonly claimToken: string
  /** Secret, for the desktop only. */
  readonly desktopToken: string
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly expiresAt: number
  /** Digits for the desktop to show: two to compare, or six where the phone's user has to enter them. */
  readonly confirmationCode: string
}

/** An order's identifier and where the order stands. */
export interface OrderState {
  readonly orderId: string
  readonly status: OrderStatus
}

/** A claimed order. */
export interface ClaimedOrder extends OrderState {
  /** Secret, for the phone only. */
  readonly challengeToken: string
}

/** What the wallet signs and what its user sees. Times are epoch milliseconds. */
export interface OrderChallenge {
  readonly action: ChallengeAction
  readonly challengeId: string
  readonly nonce: string
  readonly origin: string
  readonly issuedAt: number
  readonly expiresAt: number
  readonly message: string
  readonly kind: OrderKind
  readonly status: OrderStatus
  readonly adapterId?: string
  readonly displayTitle?: string
  readonly displaySummary?: string
  readonly payloadHash?: string
  /** Absent where the user has to enter it. */
  readonly confirmationCode?: string
  readonly confirmationCodeRequired: boolean
  /** The desktop, as it was when it started the order; ip and userAgent are empty when unknown. */
  readonly requester: { readonly origin: string; readonly ip: string; readonly userAgent: string }
}

/** What came of a finalized order. */
export type FinalizedOrder = OrderState & { readonly redirectTo: string } & (
    | { readonly kind: 'login'; readonly issued: IssuedSession }
    | { readonly kind: 'sign'; readonly proofArtifact: ProofArtifact }
  )

/** A wallet's signature with all that is needed to check it offline. */
export interface ProofArtifact extends OrderProof {
  /** The text that was signed, to the letter. */
  readonly message: string
  readonly payloadHash?: string
}

/** Names an order, with the phone's token. */
export interface PhoneInput {
  readonly orderId: string
  readonly challengeToken: string
}

/** Names an order, with the desktop's token. */
export interface DesktopInput {
  readonly orderId: string
  readonly desktopToken: string
}

/**
 * Cross-device orders: a phone approves with its wallet what a desktop started.
 *
 * Each method rejects with a `CountersignError`. For all but {@link start}, in this order: ORDER_NOT_FOUND,
 * ORDER_TOKEN_INVALID for any token but the one the method asks for, ORIGIN_MISMATCH for a request from neither the order's
 * origin nor the service's own; then the reasons that the order's state gives (see `applyCommand`). STORE_UNAVAILABLE may
 * come at any point; then the call may or may not have taken effect, and a retry tells.
 */
export class Orders {
  readonly #options: OrdersOptions
  readonly #watches: OrderWatches

  constructor(options: OrdersOptions) {
    this.#options = options
    this.#watches = new OrderWatches(options.records, options.shutdown)
  }

  /**
   * Makes an order, for the desktop. The request must come from a trusted origin (ORIGIN_NOT_TRUSTED); the adapter, if one is
   * named, must be configured (ADAPTER_UNKNOWN).
   */
  async start(input: StartOrder, request: RequestContext): Promise<StartedOrder> {
    const { settings, records, adapters, origins } = this.#options
    const origin = origins.requireTrusted(request)
    if (input.adapterId !== undefined && !adapters.some(({ id }) => id === input.adapterId)) {
      const known = adapters.map(({ id }) => id).join(', ')
      throw new CountersignError('ADAPTER_UNKNOWN', `The wallet adapter is not configured; configured: ${known}`)
    }
    const { order, claimToken, desktopToken } = newOrder(input, origin, request, settings)
    await records.create(order)
    const { orderId, kind, status, expiresAt, confirmationCode } = order
    const url = claimUrl(settings, orderId, claimToken)
    return { orderId, claimUrl: url, claimToken, desktopToken, kind, status, expiresAt, confirmationCode }
  }

  /**
   * Takes the order for one phone. Without a `claimKey`, a secret of the phone's own, a lost answer cannot be had again:
   * the challenge token is random then, and derived otherwise.
   */
  async claim(
    input: { readonly orderId: string; readonly claimToken: string; readonly claimKey?: string | undefined },
    request: RequestContext,
  ): Promise<ClaimedOrder> {
    const { orderId, claimToken, claimKey } = input
    const tokens = this.#challengeTokens(orderId, claimToken, claimKey)
    const [newest, ...older] = tokens
    const order = await changeOrder(this.#options.records, orderId, {
      admit: (order) => this.#admitFromPage(order, claimToken, order.claimTokenHash, request),
      command: { type: 'claim', challengeTokenHashes: [hashToken(newest), ...older.map(hashToken)] },
    })
    const challengeToken = tokens.find((token) => matches(token, order.challengeTokenHash)) as string
    return { orderId, status: order.status, challengeToken }
  }

  /** Returns what the phone's wallet is to sign and its user is to see. Safe to retry, also once approved. */
  async challenge(input: PhoneInput, request: RequestContext): Promise<OrderChallenge> {
    const order = await changeOrder(this.#options.records, input.orderId, {
      admit: this.#admitPhone(input, request),
      command: { type: 'read' },
    })
    const { adapterId, displayTitle, displaySummary, payloadHash, confirmationCode } = order
    return {
      action: order.kind === 'login' ? 'auth.login' : 'order.approve',
      challengeId: order.challengeId,
      nonce: order.nonce,
      origin: order.origin,
      issuedAt: order.issuedAt,
      expiresAt: order.expiresAt,
      message: order.message,
      kind: order.kind,
      status: order.status,
      ...(adapterId === undefined ? {} : { adapterId }),
      ...(displayTitle === undefined ? {} : { displayTitle }),
      ...(displaySummary === undefined ? {} : { displaySummary }),
      ...(payloadHash === undefined ? {} : { payloadHash }),
      ...(order.codeRequired ? {} : { confirmationCode }),
      confirmationCodeRequired: order.codeRequired,
      requester: { origin: order.origin, ...order.requester },
    }
  }

  /**
   * Checks the wallet's proof over the order's stored message, and the confirmation code where one is required, and approves
   * the order, for the phone. A wrong proof (SIGNATURE_INVALID, ADDRESS_MISMATCH, ADAPTER_UNKNOWN) changes nothing, and no
   * code is looked at then.
   */
  async approve(
    input: PhoneInput & { readonly proof: Proof; readonly confirmationCode?: string | undefined },
    request: RequestContext,
  ): Promise<OrderState> {
    const { orderId, proof, confirmationCode } = input
    const publicKeyHex = proof.publicKeyHex.toLowerCase()
    const signatureHex = proof.signatureHex.toLowerCase()
    const { status } = await changeOrder(this.#options.records, orderId, {
      admit: this.#admitPhone(input, request),
      intent: { type: 'approve', proof: { publicKeyHex, signatureHex } },
      complete: (order) => ({ type: 'approve', proof: this.#prove(order, proof), confirmationCode }),
    })
    return { orderId, status }
  }

  /** Ends the order, for the phone. */
  async reject(input: PhoneInput, request: RequestContext): Promise<OrderState> {
    const { orderId, status } = await changeOrder(this.#options.records, input.orderId, {
      admit: this.#admitPhone(input, request),
      command: { type: 'reject' },
    })
    return { orderId, status }
  }

  /** Ends the order, for the desktop. */
  async cancel(input: DesktopInput, request: RequestContext): Promise<OrderState> {
    const { orderId, status } = await changeOrder(this.#options.records, input.orderId, {
      admit: this.#admitDesktop(input, request),
      command: { type: 'cancel' },
    })
    return { orderId, status }
  }

  /**
   * Turns an approved order into its result, for the desktop: a session or a proof artifact. LOGIN_REFUSED, when the
   * application does not let the wallet sign in, leaves the order approved.
   *
   * The order is finalized before the session is made, and the session's token follows from the desktop's token: whoever
   * comes between the two steps, or after a crash there, makes or finds the very same session.
   */
  async finalize(input: DesktopInput, request: RequestContext): Promise<FinalizedOrder> {
    const { records, keyring, host } = this.#options
    const { orderId, desktopToken } = input
    const seeds = keyring.derive('finalize seed', [orderId, desktopToken])
    const order = await changeOrder(records, orderId, {
      admit: this.#admitDesktop(input, request),
      intent: { type: 'finalize' },
      complete: async (order) => {
        if (order.kind === 'sign') return { type: 'finalize' }
        const user = await host.resolveUser(identityOf(order), request)
        return { type: 'finalize', login: { userId: user.id, seedHash: hashSeed(seeds[0]) } }
      },
    })
    const { status, kind, returnTo: redirectTo, message, payloadHash } = order
    if (kind === 'sign') {
      const proofArtifact = { ...proofOf(order), message, ...(payloadHash === undefined ? {} : { payloadHash }) }
      return { orderId, status, kind, redirectTo, proofArtifact }
    }
    const { userId, seedHash } = order.login as OrderLogin
    // Not the newest one when the server's secret was changed since the first try.
    const seed = seeds.find((candidate) => hashSeed(candidate) === seedHash)
    if (seed === undefined) throw refused('ORDER_FINALIZED')
    const issued = await host.createSession({ id: userId }, identityOf(order), request, { orderId, seed })
    return { orderId, status, kind, redirectTo, issued }
  }

  /** Tells the desktop what happens to the order: see {@link OrderWatches.watch}. `signal` aborts when the caller leaves. */
  watch(
    input: DesktopInput & { readonly afterSequence?: number | undefined },
    request: RequestContext,
    signal: AbortSignal,
  ): AsyncGenerator<OrderEvent, void, undefined> {
    const { orderId, afterSequence } = input
    return this.#watches.watch({ orderId, admit: this.#admitDesktop(input, request), afterSequence, signal })
  }

  #admitPhone({ challengeToken }: PhoneInput, request: RequestContext): (order: OrderRecord) => void {
    return (order) => this.#admitFromPage(order, challengeToken, order.challengeTokenHash, request)
  }

  /** The token comes first: who has none is not told the order's origin either. */
  #admitFromPage(order: OrderRecord, token: string, hash: string | undefined, request: RequestContext): void {
    if (!matches(token, hash)) throw refused('ORDER_TOKEN_INVALID')
    this.#options.origins.requireSameOrOwn(request, order.origin, 'order')
  }

  #admitDesktop({ desktopToken }: DesktopInput, request: RequestContext): (order: OrderRecord) => void {
    return (order) => {
      // Only browsers say where they are. An application's backend may know the service by another name than its pages do.
      if (request.originSource === 'Origin header') {
        this.#admitFromPage(order, desktopToken, order.desktopTokenHash, request)
      } else if (!matches(desktopToken, order.desktopTokenHash)) {
        throw refused('ORDER_TOKEN_INVALID')
      }
    }
  }

  /** The challenge token that a claim gets, then those that it would have got under the server's older secrets. */
  #challengeTokens(orderId: string, claimToken: string, claimKey: string | undefined): [string, ...string[]] {
    if (claimKey === undefined) return [newToken('challenge')]
    const [newest, ...older] = this.#options.keyring.derive('challenge token', [orderId, claimToken, claimKey])
    return [tokenFromBytes('challenge', newest), ...older.map((bytes) => tokenFromBytes('challenge', bytes))]
  }

  #prove(order: OrderRecord, proof: Proof): OrderProof {
    if (order.adapterId !== undefined && (proof.adapterId ?? order.adapterId) !== order.adapterId) {
      throw new CountersignError('INVALID_REQUEST', `proof.adapter_id must be ${order.adapterId}, as the order asks`)
    }
    const { adapters, verifier } = this.#options
    const adapterId = order.adapterId ?? proof.adapterId
    return proveIdentity({ ...proof, adapters, verifier, message: order.message, adapterId })
  }
}

/** Whether a token is the one whose hash an order holds; while it holds none, no token is. */
function matches(token: string, hash: string | undefined): boolean {
  return hash !== undefined && tokenMatches(token, hash)
}

/** The proof of an order that is approved or finalized. */
function proofOf(order: OrderRecord): OrderProof {
  return order.proof as OrderProof
}

/** Whom it proved to be. */
function identityOf(order: OrderRecord): ProvenIdentity {
  const { adapterId, publicKeyHex, address } = proofOf(order)
  return { adapterId, publicKeyHex, address }
}

function hashSeed(seed: Uint8Array): string {
  return hashToken(Buffer.from(seed).toString('base64url'))
}
