import type { ChallengeAction } from '../challenge.ts'
import { CountersignError } from '../errors.ts'
import { whyForeign } from '../foreign-record.ts'
import type { Host, IssuedSession } from '../host/host.ts'
import type { LiveRecords } from '../live-records.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import type { RequestContext } from '../request.ts'
import { hashToken, type Keyring, newToken, tokenFromBytes, tokenMatches } from '../token.ts'
import type { Proof, ProvenIdentity } from '../wallet/proof.ts'
import type { Prover } from '../wallet/prover.ts'
import { changeOrder, refused } from './change.ts'
import {
  actionOf,
  forgottenAt,
  type OrderKind,
  type OrderLogin,
  type OrderRecord,
  type OrderStatus,
  type StoredProof,
} from './order.ts'
import type { OrderRecords } from './records.ts'
import { claimUrl, newOrder, type OrderSettings, type StartOrder } from './start.ts'
import { type OrderEvent, OrderWatches } from './watch.ts'

/** What {@link Orders} works with. */
export interface OrdersOptions {
  readonly settings: OrderSettings
  readonly records: OrderRecords
  readonly keyring: Keyring
  readonly prover: Prover
  readonly origins: OriginPolicy
  readonly host: Host
  /** Counts the orders that are stored, and refuses those beyond its ceiling. Without it, there is no ceiling. */
  readonly live?: LiveRecords | undefined
  /** Aborts when the server begins to stop. All watches then end with `reconnect`. */
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
  /** Digits for the desktop to show: two to compare, or six if the phone's user has to enter them. */
  readonly confirmationCode: string
}

/** Identifier and status of an order. */
export interface OrderState {
  readonly orderId: string
  readonly status: OrderStatus
}

/** A claimed order. */
export interface ClaimedOrder extends OrderState {
  /** Secret, for the phone only. */
  readonly challengeToken: string
}

/** The text for the wallet to sign, and what to show its user. Times are epoch milliseconds. */
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
  /** Absent if the user has to enter it. */
  readonly confirmationCode?: string
  readonly confirmationCodeRequired: boolean
  /** The desktop, as it was when it started the order. `ip` and `userAgent` are empty if unknown. */
  readonly requester: { readonly origin: string; readonly ip: string; readonly userAgent: string }
}

/** The result of a finalized order. */
export type FinalizedOrder = OrderState & { readonly redirectTo: string } & (
    | { readonly kind: 'login'; readonly issued: IssuedSession }
    | { readonly kind: 'sign'; readonly proofArtifact: ProofArtifact }
  )

/**
 * A wallet's signature with everything needed to check it offline. To check whose it is, compare `adapterId` and `address` with
 * those of the owner, never the key alone.
 */
export interface ProofArtifact extends Omit<StoredProof, 'subject'> {
  /** The exact text that was signed. */
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
 * Each method rejects with a `CountersignError`. For all but {@link start}, the checks are in this order:
 * ORDER_NOT_FOUND, also for an order of another service that shares the storage and for one whose origin is no longer
 * trusted; ORDER_TOKEN_INVALID for any token but the one that the method takes; ORIGIN_MISMATCH for a request
 * from neither the order's origin nor the service's own; then the reasons of the order's status (see `applyCommand`).
 * STORE_UNAVAILABLE can come at any point. The call may or may not have taken effect then; a retry tells which.
 */
export class Orders {
  readonly #options: OrdersOptions
  readonly #watches: OrderWatches

  constructor(options: OrdersOptions) {
    this.#options = options
    this.#watches = new OrderWatches(options.records, options.shutdown)
  }

  /**
   * Makes an order, for the desktop. The request must come from a trusted origin (ORIGIN_NOT_TRUSTED); the adapter, if
   * one is named, must be configured (ADAPTER_UNKNOWN). SERVER_BUSY if there are too many live orders.
   */
  async start(input: StartOrder, request: RequestContext): Promise<StartedOrder> {
    const { settings, records, prover, origins, live } = this.#options
    const origin = origins.requireTrusted(request)
    if (input.adapterId !== undefined) prover.requireConfigured(input.adapterId)
    const { order, claimToken, desktopToken } = newOrder(input, origin, request, settings, records.now())
    live?.add(forgottenAt(order), order.issuedAt, request.ip, placesOf(order))
    await records.create(order)
    const { orderId, kind, status, expiresAt, confirmationCode } = order
    const url = claimUrl(settings, orderId, claimToken)
    return { orderId, claimUrl: url, claimToken, desktopToken, kind, status, expiresAt, confirmationCode }
  }

  /**
   * Assigns the order to one phone. With a `claimKey`, a secret of the phone, the challenge token is derived, so that a
   * retry gets the same. Without one it is random, and a lost answer cannot be recovered.
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

  /** Returns the text for the phone's wallet to sign, and what to show its user. Safe to retry, also once approved. */
  async readChallenge(input: PhoneInput, request: RequestContext): Promise<OrderChallenge> {
    const order = await changeOrder(this.#options.records, input.orderId, {
      admit: this.#admitPhone(input, request),
      command: { type: 'readChallenge' },
    })
    const { adapterId, displayTitle, displaySummary, payloadHash, confirmationCode } = order
    return {
      action: actionOf(order.kind),
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
   * Checks the wallet's proof over the order's stored message, and the confirmation code if one is required, and
   * approves the order, for the phone. A wrong proof (SIGNATURE_INVALID, ADDRESS_MISMATCH, ADAPTER_UNKNOWN) changes
   * nothing, and the code is not looked at.
   */
  async approve(
    input: PhoneInput & { readonly proof: Proof; readonly confirmationCode?: string | undefined },
    request: RequestContext,
  ): Promise<OrderState> {
    const { orderId, proof, confirmationCode } = input
    const { status } = await changeOrder(this.#options.records, orderId, {
      admit: this.#admitPhone(input, request),
      intent: { type: 'approve', proof },
      complete: async (order) => {
        const identity = await this.#prove(order, proof)
        const signatureHex = proof.signatureHex.toLowerCase()
        return { type: 'approve', proof: { ...identity, signatureHex }, confirmationCode }
      },
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
   * Turns an approved order into its result, for the desktop: a session or a proof artifact. If the application does
   * not allow the wallet to sign in (LOGIN_REFUSED), the order stays approved.
   *
   * The order is finalized before the session is made, and the session's token is derived from the desktop's token. So
   * a retry between the two steps, or after a crash there, makes or finds the same session.
   */
  async finalize(input: DesktopInput, request: RequestContext): Promise<FinalizedOrder> {
    const { records, keyring, host } = this.#options
    const { orderId, desktopToken } = input
    const seeds = keyring.derive('finalize seed', [orderId, desktopToken])
    const order = await changeOrder(records, orderId, {
      admit: this.#admitDesktop(input, request),
      intent: { type: 'finalize' },
      complete: async (order) => {
        switch (order.kind) {
          case 'sign':
            return { type: 'finalize' }
          case 'login': {
            const user = await host.resolveUser(identityOf(order), request)
            return { type: 'finalize', login: { userId: user.id, seedHash: hashSeed(seeds[0]) } }
          }
        }
      },
    })
    const { status, kind, returnTo: redirectTo } = order
    switch (kind) {
      case 'sign':
        return { orderId, status, kind, redirectTo, proofArtifact: artifactOf(order) }
      case 'login': {
        const issued = await this.#makeSession(order, seeds, request)
        return { orderId, status, kind, redirectTo, issued }
      }
    }
  }

  /**
   * Tells the desktop what happens to the order: see {@link OrderWatches.watch}. `signal` aborts when the caller
   * leaves.
   */
  watch(
    input: DesktopInput & { readonly afterSequence?: number | undefined },
    request: RequestContext,
    signal: AbortSignal,
  ): AsyncGenerator<OrderEvent, void, undefined> {
    const { orderId, afterSequence } = input
    return this.#watches.watch({ orderId, admit: this.#admitDesktop(input, request), afterSequence, signal })
  }

  async #makeSession(
    order: OrderRecord,
    seeds: readonly Uint8Array[],
    request: RequestContext,
  ): Promise<IssuedSession> {
    const { orderId, login } = order
    const { userId, seedHash } = login as OrderLogin
    // Not the first one if the server's secret has changed since the first try.
    const seed = seeds.find((candidate) => hashSeed(candidate) === seedHash)
    if (seed === undefined) throw refused('ORDER_FINALIZED')
    return await this.#options.host.createSession({ id: userId }, identityOf(order), request, { orderId, seed })
  }

  #admitPhone({ challengeToken }: PhoneInput, request: RequestContext): (order: OrderRecord) => void {
    return (order) => this.#admitFromPage(order, challengeToken, order.challengeTokenHash, request)
  }

  #admitFromPage(order: OrderRecord, token: string, hash: string | undefined, request: RequestContext): void {
    this.#admitHolder(order, token, hash)
    this.#options.origins.requireSameOrOwn(request, order.origin, 'order')
  }

  /** Checked before anything about the order's origin is told. */
  #admitHolder(order: OrderRecord, token: string, hash: string | undefined): void {
    const { settings, origins } = this.#options
    const foreign = whyForeign(order, settings.appName, origins)
    if (foreign !== undefined) throw refused('ORDER_NOT_FOUND', foreign)
    if (!matches(token, hash)) throw refused('ORDER_TOKEN_INVALID')
  }

  #admitDesktop({ desktopToken }: DesktopInput, request: RequestContext): (order: OrderRecord) => void {
    return (order) => {
      // Only browsers send their origin. An application's backend may call the service by another name than its pages
      // do.
      if (request.originSource === 'Origin header') {
        this.#admitFromPage(order, desktopToken, order.desktopTokenHash, request)
      } else {
        this.#admitHolder(order, desktopToken, order.desktopTokenHash)
      }
    }
  }

  /** The challenge token that a claim gets; then those that it would have got under the server's other secrets. */
  #challengeTokens(orderId: string, claimToken: string, claimKey: string | undefined): [string, ...string[]] {
    if (claimKey === undefined) return [newToken('challenge')]
    const [newest, ...older] = this.#options.keyring.derive('challenge token', [orderId, claimToken, claimKey])
    return [tokenFromBytes('challenge', newest), ...older.map((bytes) => tokenFromBytes('challenge', bytes))]
  }

  async #prove(order: OrderRecord, proof: Proof): Promise<ProvenIdentity> {
    if (order.adapterId !== undefined && (proof.adapterId ?? order.adapterId) !== order.adapterId) {
      throw new CountersignError('INVALID_REQUEST', `proof.adapter_id must be ${order.adapterId}, as the order asks`, {
        metadata: { field: 'adapter_id', expected: order.adapterId },
      })
    }
    return await this.#options.prover.prove(order.message, { ...proof, adapterId: order.adapterId ?? proof.adapterId })
  }
}

/**
 * Bytes of a stored order that count as one live order. An order with a usual title and summary has 1,200, and 2,000 once it is
 * finalized. The longest texts make 15,000, and must not make the ceiling mean ten times the memory.
 */
const bytesOfPlace = 2048

function placesOf(order: OrderRecord): number {
  return Math.ceil(Buffer.byteLength(JSON.stringify(order)) / bytesOfPlace)
}

/** Whether a token has the hash that an order holds. If it holds none, no token has. */
function matches(token: string, hash: string | undefined): boolean {
  return hash !== undefined && tokenMatches(token, hash)
}

/** The proof of an order that is approved or finalized. */
function proofOf(order: OrderRecord): StoredProof {
  return order.proof as StoredProof
}

/** The identity that the proof of an approved or finalized order proves. */
function identityOf(order: OrderRecord): ProvenIdentity {
  const { adapterId, subject, publicKeyHex, address } = proofOf(order)
  return { adapterId, subject, publicKeyHex, address }
}

function artifactOf(order: OrderRecord): ProofArtifact {
  const { adapterId, publicKeyHex, address, signatureHex } = proofOf(order)
  const { message, payloadHash } = order
  return {
    adapterId,
    publicKeyHex,
    address,
    signatureHex,
    message,
    ...(payloadHash === undefined ? {} : { payloadHash }),
  }
}

function hashSeed(seed: Uint8Array): string {
  return hashToken(Buffer.from(seed).toString('base64url'))
}
