import { type AuditTrail, noAudit, signedInFacts } from '../../base/audit.ts'
import { networkOfRequest, sameNetwork } from '../../base/networks.ts'
import type { RequestContext } from '../../base/request.ts'
import { equalInConstantTime, hashToken, type Keyring, newToken, tokenFromBytes } from '../../base/token.ts'
import type { LiveCount } from '../../limits/concurrency.ts'
import type { RateLimiter } from '../../limits/rate.ts'
import { CountersignError, type ErrorReason, invalidField, refused } from '../../shared/errors.ts'
import { given, pick } from '../../shared/given.ts'
import type {
  ApprovedOrder,
  ClaimedOrder,
  DesktopOrder,
  HandOver,
  InboxOrder,
  OrderChallenge,
  OrderPreview,
  OrderRequester,
  OrderState,
  PhoneOrder,
  ProofArtifact,
  RejectedOrder,
  StartedOrder,
  StartOrderOptions,
} from '../../shared/orders.ts'
import { typedCode } from '../../shared/typed-code.ts'
import type { OriginPolicy } from '../origin-policy.ts'
import type { ListedWallet } from '../sign-in/user-wallets.ts'
import type { CurrentSession, Host, IssuedSession, OrderSession } from '../users/host.ts'
import type { StoredChallenge } from '../wallet/form.ts'
import type { Proven, ProveOptions, Prover } from '../wallet/prover.ts'
import type { Proof, ProvenIdentity, WalletIdentity, WalletNamed } from '../wallet/wallet.ts'
import { Admission, callingDesktop, matchesAny, phoneHashes, requesterOf } from './admission.ts'
import { changeOrder, contractChecks } from './change.ts'
import type { InboxOrders } from './inbox-orders.ts'
import { type KnownComputers, OrderComputers, requireComputerProof } from './known-computers.ts'
import type { LinkOrders } from './link-orders.ts'
import {
  actionOf,
  contentFields,
  deadlinesOf,
  forgottenAt,
  identityOf,
  isUnsettled,
  type OrderLogin,
  type OrderRecord,
  proofOf,
  type ReturnCodeCheck,
  type TakeBackOutcome,
  takesReturnCode,
  ticketLifeMs,
} from './order.ts'
import { addressedFacts, orderFacts, requesterIn, startedFacts, walletFacts } from './order-audit.ts'
import type { OrderRecords } from './records.ts'
import { claimUrl, newOrder, type OrderBeginning, type OrderSettings, type Requester } from './start.ts'
import { OrderWatches, type WatchEvent } from './watch.ts'

/** Rejects with LOGIN_REFUSED if an operator has blocked the wallet. */
type RequireNotBlocked = (wallet: WalletIdentity) => Promise<void>

/** What {@link Orders} works with. */
export interface OrdersOptions {
  readonly settings: OrderSettings
  readonly records: OrderRecords
  readonly keyring: Keyring
  readonly prover: Prover
  readonly origins: OriginPolicy
  readonly host: Host
  /** Keeps which computers are known. Without it, none is. */
  readonly computers?: KnownComputers | undefined
  /** Adds the wallets of link orders. Without it, these are NOT_ENABLED. */
  readonly links?: LinkOrders | undefined
  /** Keeps the orders for inboxes. Without it, these are NOT_ENABLED. */
  readonly inbox?: InboxOrders | undefined
  /** Rejects with LOGIN_REFUSED if an operator has blocked the wallet. Without it, no wallet is blocked. */
  readonly requireNotBlocked?: RequireNotBlocked
  /**
   * Rejects with LOGIN_REFUSED if a proven wallet is not on the list of those who may sign in. Asked before a login
   * order is approved; the host asks it again when the order is finalized. Without it, there is no list.
   */
  readonly requireListed?: ((identity: ProvenIdentity) => Promise<void>) | undefined
  /** Counts the orders that are stored, and refuses those beyond its ceiling. Without it, there is no ceiling. */
  readonly live?: LiveCount | undefined
  /**
   * Limits the sign-ins of each wallet, and of each network the link orders and, where others need a start key, the
   * orders that are started without one. Without it, there is no such limit.
   */
  readonly limiter?: RateLimiter | undefined
  /** Receives audit events of orders. Default: none. */
  readonly audit?: AuditTrail | undefined
  /** Aborts when the server begins to stop. All watches then end with `reconnect`. */
  readonly shutdown: AbortSignal
}

/** The answer of a call, without the `ok` that REST and the RPCs add. */
type Plain<Answer> = Omit<Answer, 'ok'>

/** The result of a finalized order. */
export type OrderResult = Plain<OrderState> & { readonly redirectTo: string } & (
    | { readonly kind: 'login'; readonly issued: IssuedSession }
    | { readonly kind: 'sign'; readonly proofArtifact: ProofArtifact }
    /** `cookies` are Set-Cookie header values. */
    | { readonly kind: 'link'; readonly wallet: ListedWallet; readonly cookies: readonly string[] }
  )

/**
 * Cross-device orders: a phone approves with its wallet what a desktop started.
 *
 * Each method rejects with a `CountersignError`. For all but {@link start}, the checks are in this order:
 * ORDER_NOT_FOUND, also for an order of another service that shares the storage and for one whose origin is no longer
 * trusted; ORDER_TOKEN_INVALID for any token but the one that the method takes (HANDOVER_INVALID for a ticket);
 * COMPUTER_PROOF_INVALID; ORIGIN_MISMATCH for a request from neither the order's origin nor the service's own;
 * NETWORK_MISMATCH, if networks are compared, for a phone that is not on the desktop's; SESSION_REQUIRED and
 * SESSION_INVALID for a link order that another session than its own finalizes; then the reasons of the order's status
 * (see `applyCommand`). STORE_UNAVAILABLE can come at any point. The call may or may not have taken effect then; a
 * retry tells which.
 */
export class Orders {
  readonly #options: OrdersOptions
  readonly #watches: OrderWatches
  readonly #computers: OrderComputers
  readonly #admission: Admission
  readonly #audit: AuditTrail

  constructor(options: OrdersOptions) {
    this.#options = options
    this.#audit = options.audit ?? noAudit
    this.#watches = new OrderWatches(options.records, options.shutdown)
    this.#computers = new OrderComputers(options.computers, options.settings, this.#audit)
    this.#admission = new Admission(options.settings, options.origins)
  }

  /** Number of open watches. */
  get watchers(): number {
    return this.#watches.size
  }

  /** Whether orders are started by who has a start key, and by the service's own pages, only. */
  get startTakesKey(): boolean {
    return this.#options.settings.orderStartKeys !== undefined
  }

  /**
   * Makes an order, for the desktop. The request, or the requester that a backend with a start key names, must come
   * from a trusted origin (ORIGIN_NOT_TRUSTED); the adapter, if one is named, must be configured (ADAPTER_UNKNOWN).
   * SERVER_BUSY if there are too many live orders, RATE_LIMITED if too many of the requester's network are open.
   *
   * A link order takes a session that may add a wallet (SESSION_REQUIRED, SESSION_INVALID, SESSION_NOT_FRESH) and no
   * start key. RATE_LIMITED if too many are started from the network. `cookies` are Set-Cookie header values.
   *
   * An order for an inbox takes a start key and the id of a user (INVALID_REQUEST). RATE_LIMITED if too many wait for
   * the user.
   */
  async start(
    input: StartOrderOptions,
    request: RequestContext,
  ): Promise<StartedOrder & { readonly cookies?: readonly string[] }> {
    const { settings, records, prover, live } = this.#options
    const { cookies, ...beginning } = await this.#beginning(input, request)
    const { requester } = beginning
    const { adapterId, expectedAddress, expectedPublicKeyHex } = input
    if (adapterId !== undefined) prover.requireConfigured(adapterId)
    const { order, claimToken, desktopToken } = newOrder(input, { ...beginning, issuedAt: records.now() }, settings)
    if (adapterId !== undefined && expectedAddress !== undefined) {
      prover.requireAddress(adapterId, expectedAddress, 'expected_address')
    }
    if (adapterId !== undefined && expectedPublicKeyHex !== undefined) {
      prover.requireKeys(adapterId, 'expected_public_key_hex')
    }
    const slots = live?.slotsOf(Buffer.byteLength(JSON.stringify(order)))
    const countedUntil = countedUntilOf(order)
    live?.add(countedUntil, order.issuedAt, requester.ip || undefined, slots)
    try {
      await this.#create(order, requester)
    } catch (error) {
      const notStored = error instanceof CountersignError && notStoredReasons.has(error.reason)
      if (notStored) live?.remove(countedUntil, requester.ip || undefined, slots)
      throw error
    }
    records.observe?.(order)
    this.#audit.record(startedFacts(order), requesterIn(order))
    const { orderId, kind, status, expiresAt, confirmationCode, inboxUserId } = order
    const started = { orderId, claimToken, desktopToken, kind, status, expiresAt, confirmationCode }
    if (inboxUserId === undefined) {
      return { ...started, claimUrl: claimUrl(settings, orderId, claimToken), ...given({ cookies }) }
    }
    const approvalUrl = this.#requireInbox().approvalUrl(orderId)
    this.#audit.record(addressedFacts(order, inboxUserId, approvalUrl), requesterIn(order))
    return { ...started, claimUrl: '', approvalUrl }
  }

  /** Stores a new order. One for an inbox is entered there first. */
  async #create(order: OrderRecord, { startKeyId = '' }: Requester): Promise<void> {
    const { records } = this.#options
    if (order.inboxUserId === undefined) return await records.create(order)
    const inbox = this.#requireInbox()
    await inbox.enter(order, startKeyId)
    try {
      await records.create(order)
      // Asked after the write: a concurrent deletion of the user either finds this order, or is seen here.
      await inbox.requireUser(order)
    } catch (error) {
      await Promise.allSettled([this.#withdraw(order), inbox.takeOut(order)])
      throw error
    }
  }

  /** Cancels an order that its starter is not told of. */
  async #withdraw({ orderId }: OrderRecord): Promise<void> {
    await changeOrder(this.#options.records, orderId, { admit: () => {}, command: { type: 'cancel' } })
  }

  /** The desktop that starts an order; of a link order, with its user. `cookies` are Set-Cookie header values. */
  async #beginning(
    input: StartOrderOptions,
    request: RequestContext,
  ): Promise<Omit<OrderBeginning, 'issuedAt'> & { readonly cookies?: readonly string[] }> {
    const { settings, origins, limiter } = this.#options
    if (input.inboxUserId !== undefined) this.#requireInbox()
    if (input.kind !== 'link') {
      const requester = requesterOf(input, request, { settings, origins })
      // Calls of backends with start keys are not limited; without start keys, `start-order` counted the call already.
      if (this.startTakesKey && requester.startedWithKey !== true) await limiter?.spend('start-order', request)
      return { requester }
    }
    const links = this.#requireLinks()
    const beginning = async () => ({ requester: callingDesktop(request, origins), ...(await links.starterOf(request)) })
    // The session first: a call without one takes nothing from the users of its network, whose allowance is small.
    const begun = await beginning().catch(async (refusal: unknown) => {
      await limiter?.spend('session', request)
      throw refusal
    })
    await limiter?.spend('start-link', request)
    return begun
  }

  #requireLinks(): LinkOrders {
    const { links } = this.#options
    if (links !== undefined) return links
    throw new CountersignError('NOT_ENABLED', 'The application keeps its users and their wallets itself')
  }

  #requireInbox(): InboxOrders {
    const { inbox } = this.#options
    if (inbox !== undefined) return inbox
    throw new CountersignError('NOT_ENABLED', 'The application keeps its users itself, so they have no inbox here')
  }

  /** Returns who asks, for the page of a claim URL, as long as no phone has claimed the order. Changes nothing. */
  async preview(
    input: { readonly orderId: string; readonly claimToken: string },
    request: RequestContext,
  ): Promise<OrderPreview> {
    const { orderId, claimToken } = input
    const order = await changeOrder(this.#options.records, orderId, {
      admit: (order) => this.#admission.fromPage(order, request, { token: claimToken, hashes: [order.claimTokenHash] }),
      command: { type: 'preview' },
      stored: this.#teller(request),
    })
    const { ip: _ip, ...requester } = this.#shownRequester(order, request)
    return { kind: order.kind, expiresAt: order.expiresAt, ...requester, ...comparedCode(order) }
  }

  /**
   * Assigns the order to one phone. With a `claimKey`, a secret of the phone, the challenge token is derived, so that a
   * retry gets the same. Without one it is random, and a lost answer cannot be recovered.
   */
  async claim(
    input: { readonly orderId: string; readonly claimToken: string; readonly claimKey?: string | undefined },
    request: RequestContext,
  ): Promise<Plain<ClaimedOrder>> {
    const { orderId, claimToken, claimKey } = input
    const tokens = this.#challengeTokens(orderId, claimToken, claimKey)
    const order = await changeOrder(this.#options.records, orderId, {
      admit: (order) => {
        this.#admission.fromPage(order, request, { token: claimToken, hashes: [order.claimTokenHash] })
        this.#admission.requireNearby(order, request)
      },
      command: { type: 'claim', challengeTokenHashes: tokens.map(hashToken) as [string, ...string[]] },
      stored: this.#teller(request),
    })
    const challengeToken = tokens.find((token) => matchesAny(token, phoneHashes(order))) as string
    return { orderId, status: order.status, challengeToken }
  }

  /**
   * The orders that wait for the request's user, newest first. Takes a session that no order made (SESSION_NOT_FRESH);
   * with a cookie, from the service's own origin.
   */
  async listInbox(request: RequestContext): Promise<readonly InboxOrder[]> {
    return await this.#requireInbox().list(request)
  }

  /**
   * Assigns an order of the inbox to a browser of its user; the session is as for {@link listInbox}. A further claim
   * replaces the challenge token, and those before can only reject. The claim key is as for {@link claim}. `cookies`
   * are Set-Cookie header values.
   */
  async claimFromInbox(
    { orderId, claimKey }: { readonly orderId: string; readonly claimKey: string },
    request: RequestContext,
  ): Promise<Plain<ClaimedOrder> & { readonly cookies: readonly string[] }> {
    const inbox = this.#requireInbox()
    const { session, cookies } = await inbox.claimer(request)
    const tokens = this.#challengeTokens(orderId, session.id, claimKey)
    const order = await changeOrder(this.#options.records, orderId, {
      admit: (order) => this.#admission.ofUser(order, session.userId, request),
      command: {
        type: 'claimFromInbox',
        challengeTokenHashes: tokens.map(hashToken) as [string, ...string[]],
        sessionId: session.id,
      },
      stored: this.#teller(request),
    }).catch(async (error: unknown) => {
      // The entry of an order that is over, or that was never stored.
      const isOver = error instanceof CountersignError && error.reason.startsWith('ORDER_')
      if (isOver) await inbox.takeOut({ inboxUserId: session.userId, orderId })
      throw error
    })
    const challengeToken = tokens.find((token) => matchesAny(token, phoneHashes(order))) as string
    return { orderId, status: order.status, challengeToken, cookies }
  }

  /**
   * Makes a ticket that continues the order in another browser, for the phone. It is good for 60 seconds and one use,
   * and takes the place of the one before it.
   */
  async handOver(input: PhoneOrder, request: RequestContext): Promise<HandOver> {
    const { records, settings } = this.#options
    const ticket = newToken('hand-over') + input.orderId
    const expiresAt = records.now() + ticketLifeMs
    await changeOrder(records, input.orderId, {
      admit: this.#ofPhone(input, request),
      command: { type: 'handOver', ticketHash: hashToken(ticket), expiresAt },
      stored: this.#teller(request),
    })
    return { ticket, handoverUrl: settings.handOverUrl(ticket), expiresAt }
  }

  /**
   * Exchanges a ticket for a challenge token, for the browser that takes over. The token before it can only reject the
   * order and take it back from then on. The claim key is as for {@link claim}, for 60 seconds.
   */
  async redeem(
    input: { readonly ticket: string; readonly claimKey?: string | undefined },
    request: RequestContext,
  ): Promise<Plain<ClaimedOrder>> {
    const { ticket, claimKey } = input
    const orderId = ticketForm.exec(ticket)?.[1]
    if (orderId === undefined) throw refused('HANDOVER_INVALID')
    const tokens = this.#challengeTokens(orderId, ticket, claimKey)
    const order = await changeOrder(this.#options.records, orderId, {
      admit: (order) => {
        this.#admission.fromPage(order, request, {
          token: ticket,
          hashes: [order.handOver?.ticketHash],
          refusal: 'HANDOVER_INVALID',
        })
        this.#admission.requireNearby(order, request)
      },
      command: { type: 'redeem', challengeTokenHashes: tokens.map(hashToken) as [string, ...string[]] },
      stored: this.#teller(request),
    }).catch((error: unknown) => {
      // The caller has named no order.
      throw error instanceof CountersignError && error.reason === 'ORDER_NOT_FOUND'
        ? refused('HANDOVER_INVALID', { cause: error })
        : error
    })
    const challengeToken = tokens.find((token) => matchesAny(token, [order.challengeTokenHash])) as string
    return { orderId, status: order.status, challengeToken }
  }

  /**
   * Returns the text for the phone's wallet to sign, and what to show its user. Safe to retry, also once approved. The
   * text is for the wallet that is named (ADAPTER_UNKNOWN, INVALID_REQUEST): the plain text if none is.
   */
  async readChallenge(input: PhoneOrder & WalletNamed, request: RequestContext): Promise<OrderChallenge> {
    const { prover } = this.#options
    const { orderId: _orderId, challengeToken: _token, ...wallet } = input
    const order = await changeOrder(this.#options.records, input.orderId, {
      admit: this.#ofPhone(input, request),
      command: { type: 'readChallenge' },
      stored: this.#teller(request),
    })
    return {
      action: actionOf(order.kind),
      ...pick(order, ['challengeId', 'nonce', 'origin', 'issuedAt', 'expiresAt', 'kind', 'status']),
      message: prover.textFor(storedChallengeOf(order), wallet, request.origin),
      ...pick(order, contentFields),
      ...given({ sessionAccount: order.starter?.address || undefined }),
      ...(order.inboxUserId === undefined ? {} : { fromInbox: true }),
      ...comparedCode(order),
      canRememberComputer: this.#computers.canRemember(order),
      ...this.#shownReturnCode(order),
      ...deadlinesOf(order),
      requester: this.#shownRequester(order, request),
    }
  }

  /**
   * Checks the wallet's proof over the order's challenge, and approves the order, for the phone. A wrong proof
   * (SIGNATURE_INVALID, ADDRESS_MISMATCH, ADAPTER_UNKNOWN), or one of another wallet than the order asks for
   * (WRONG_WALLET), or one that the user of a link order cannot add (WALLET_TAKEN, INVALID_REQUEST), changes nothing.
   * An RPC is asked about three proofs of contract wallets (then RATE_LIMITED); one that does not answer
   * (EVM_RPC_UNAVAILABLE) does not count.
   */
  async approve(
    input: PhoneOrder & {
      readonly proof: Proof
      /** Whether the computer is to be known from now on. Default: no. */
      readonly rememberComputer?: boolean | undefined
    },
    request: RequestContext,
  ): Promise<Plain<ApprovedOrder>> {
    const { orderId, proof, rememberComputer = false } = input
    const { records, requireNotBlocked, requireListed } = this.#options
    const admitPhone = this.#admission.ofPhone(input, request)
    let proven: Proven | undefined
    const order = await changeOrder(records, orderId, {
      admit: (order) => {
        admitPhone(order)
        this.#admission.requireNearby(order, request)
      },
      intent: { type: 'approve', proof },
      stored: this.#teller(request),
      complete: async (order) => {
        // Once, also after a lost race: nothing that it depends on changes.
        if (proven === undefined) {
          const checks = contractChecks(records, orderId)
          proven = await this.#prove(order, proof, { pageOrigin: request.origin, remote: checks })
          if (checks.counted) return undefined
        }
        const { identity, text } = proven
        await requireNotBlocked?.(identity)
        if (order.kind === 'link') await this.#requireLinks().requireAddable(order, identity)
        if (order.kind === 'login') await requireListed?.(identity)
        if (order.inboxUserId !== undefined) await this.#requireInbox().requireApprover(order, identity)
        // Here, so that the refusal for a wallet that cannot approve comes first.
        await this.#requireClaimer(order, input.challengeToken)
        const approval = await this.#computers.decide(order, identity, rememberComputer)
        const signatureHex = proof.signatureHex.toLowerCase()
        const message = order.kind !== 'sign' || text === order.message ? {} : { message: text }
        return { type: 'approve', proof: { ...identity, signatureHex, ...message }, approval }
      },
    })
    await this.#takeOut(order)
    return { orderId, status: order.status, ...this.#shownReturnCode(order), ...pick(deadlinesOf(order), ['finishBy']) }
  }

  /** Admits who holds the order's challenge token. */
  #ofPhone(input: PhoneOrder, request: RequestContext): (order: OrderRecord) => Promise<void> {
    const admit = this.#admission.ofPhone(input, request)
    return async (order) => {
      admit(order)
      await this.#requireClaimer(order, input.challengeToken)
    }
  }

  /** Refuses a token of an order for an inbox unless the session that claimed the order with it still counts. */
  async #requireClaimer(order: OrderRecord, challengeToken: string): Promise<void> {
    if (order.inboxUserId !== undefined) await this.#requireInbox().requireClaimer(order, hashToken(challengeToken))
  }

  /** Takes an order that is approved or over out of the inbox that it is in, if any. */
  async #takeOut(order: OrderRecord): Promise<void> {
    if (order.inboxUserId !== undefined) await this.#options.inbox?.takeOut(order)
  }

  /** Ends the order, for the phone, or takes a finalized login or link order back: see {@link #takeBack}. */
  async reject(input: PhoneOrder, request: RequestContext): Promise<Plain<RejectedOrder>> {
    const { challengeToken, orderId } = input
    const order = await changeOrder(this.#options.records, orderId, {
      admit: async (order) => {
        this.#admission.fromPage(order, request, { token: challengeToken, hashes: phoneHashes(order) })
        await this.#requireClaimer(order, challengeToken)
      },
      command: { type: 'reject' },
      stored: this.#teller(request),
    })
    await this.#takeOut(order)
    const { status, takenBack } = order
    if (takenBack === undefined) return { orderId, status }
    return { orderId, status, ...(isUnsettled(order) ? await this.#takeBack(order, request) : takenBack) }
  }

  /** Ends the order, for the desktop. */
  async cancel(input: DesktopOrder, request: RequestContext): Promise<Plain<OrderState>> {
    const order = await changeOrder(this.#options.records, input.orderId, {
      admit: this.#admission.ofDesktop(input, request),
      command: { type: 'cancel' },
      stored: this.#teller(request),
    })
    await this.#takeOut(order)
    return { orderId: order.orderId, status: order.status }
  }

  /**
   * Turns an approved order into its result, for the desktop: a session, a proof artifact or another wallet of the
   * user. If the application does not allow the wallet to sign in, or the wallet is blocked (LOGIN_REFUSED), has signed
   * in too often (RATE_LIMITED) or is another user's (WALLET_TAKEN), the order stays approved.
   *
   * The order is finalized before the session is made, and the session's token is derived from the desktop's token. So
   * a retry between the two steps, or after a crash there, makes or finds the same session. The computer becomes known
   * last. A link order takes the session that started it, is finalized first likewise, and each call adds the wallet.
   *
   * An order for an inbox takes a finalize key (INVALID_REQUEST), and the same gets the same answer until the order is
   * forgotten. Its wallet must still be one that can approve it (WRONG_WALLET, LOGIN_REFUSED).
   */
  async finalize(
    input: DesktopOrder & {
      readonly returnCode?: string | undefined
      readonly computerProof?: string | undefined
      readonly finalizeKey?: string | undefined
    },
    request: RequestContext,
  ): Promise<OrderResult> {
    const { records, keyring, host, limiter } = this.#options
    const { orderId, desktopToken, computerProof, finalizeKey } = input
    const returnCode = input.returnCode === undefined ? undefined : readReturnCode(input.returnCode)
    const seeds = keyring.derive('finalize seed', [orderId, desktopToken])
    const tellChange = this.#teller(request)
    let repeated = true
    const starting: { own?: CurrentSession } = {}
    const admit = this.#admission.ofDesktop(input, request, (order) =>
      requireComputerProof(order, computerProof, desktopToken),
    )
    const finalizeKeyHash = finalizeKey === undefined ? undefined : hashToken(finalizeKey)
    const intent = (order: OrderRecord) =>
      ({ type: 'finalize', returnCode: this.#checkReturnCode(order, returnCode), finalizeKeyHash }) as const
    const order = await changeOrder(records, orderId, {
      admit: async (order) => {
        admit(order)
        requireFinalizeKey(order, finalizeKey)
        if (order.kind === 'link') starting.own = await this.#requireLinks().requireStarter(order, request)
      },
      stored: (before, after) => {
        repeated = false
        tellChange?.(before, after)
      },
      intent,
      complete: async (order) => {
        switch (order.kind) {
          case 'sign':
            await this.#options.requireNotBlocked?.(identityOf(order))
            if (order.inboxUserId !== undefined) {
              await this.#requireInbox().requireApprover(order, identityOf(order))
            }
            return intent(order)
          case 'login': {
            await limiter?.countSignIn(identityOf(order))
            const user = await host.resolveUser(identityOf(order), request)
            const sessionId = await host.orderSessionId({ orderId, seed: seeds[0] })
            return { ...intent(order), login: { userId: user.id, seedHash: hashSeed(seeds[0]), sessionId } }
          }
          case 'link': {
            await this.#options.requireNotBlocked?.(identityOf(order))
            await this.#requireLinks().requireAddable(order, identityOf(order))
            return intent(order)
          }
        }
      },
    })
    const { status, kind, returnTo: redirectTo } = order
    switch (kind) {
      case 'sign':
        await this.#computers.note(order, request)
        return { orderId, status, kind, redirectTo, proofArtifact: artifactOf(order) }
      case 'login': {
        const issued = await this.#makeSession(order, seeds, request)
        this.#audit.record(signedInFacts(issued.session, { orderId, repeated }), request)
        await this.#computers.note(order, request, issued.session)
        return { orderId, status, kind, redirectTo, issued }
      }
      case 'link': {
        const own = starting.own as CurrentSession
        const wallet = await this.#addWallet(order, own, request)
        return { orderId, status, kind, redirectTo, wallet, cookies: own.cookies }
      }
    }
  }

  /**
   * The order's events, for the desktop: see {@link OrderWatches.watch}. `signal` aborts when the caller
   * leaves.
   */
  watch(
    input: DesktopOrder & { readonly afterSequence?: number | undefined },
    request: RequestContext,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent, void, undefined> {
    const { orderId, afterSequence } = input
    return this.#watches.watch({ orderId, admit: this.#admission.ofDesktop(input, request), afterSequence, signal })
  }

  /** Records a change by a request in the audit trail. */
  #teller(request: RequestContext): ((before: OrderRecord, after: OrderRecord) => void) | undefined {
    if (!this.#audit.hasSinks) return undefined
    return (before, after) => {
      for (const facts of orderFacts(before, after)) this.#audit.record(facts, request)
    }
  }

  async #makeSession(
    order: OrderRecord,
    seeds: readonly Uint8Array[],
    request: RequestContext,
  ): Promise<IssuedSession> {
    const { records, host } = this.#options
    const { orderId, login } = order
    const { userId, seedHash } = login as OrderLogin
    // Not the first one if the server's secret has changed since the first try.
    const seed = seeds.find((candidate) => hashSeed(candidate) === seedHash)
    if (seed === undefined) throw refused('ORDER_FINALIZED')
    const grant = { orderId, seed, computerId: this.#computers.idOf(order) }
    try {
      return await host.createSession({ id: userId }, identityOf(order), request, grant)
    } catch (error) {
      const ended = error instanceof CountersignError && error.reason === 'ORDER_FINALIZED'
      if (ended && (await records.load(orderId))?.order.takenBack !== undefined) throw refused('ORDER_REJECTED')
      throw error
    }
  }

  /** Adds the wallet of a finalized link order, for its starter's session `own`. */
  async #addWallet(order: OrderRecord, own: CurrentSession, request: RequestContext): Promise<ListedWallet> {
    const { records } = this.#options
    const { orderId } = order
    const requireStanding = async (): Promise<void> => {
      if ((await records.load(orderId))?.order.takenBack !== undefined) throw refused('ORDER_REJECTED')
    }
    const before = records.now()
    const wallet = await this.#requireLinks().add(order, { own, requireStanding })
    // A repeated call finds it added, and changes nothing.
    if (wallet.linkedAt >= before) this.#audit.record(walletFacts('wallet.linked', order), request)
    return wallet
  }

  /**
   * Carries out a take-back that is stored: ends the session that the order has made or is about to make and forgets
   * the computer, or unlinks the wallet that it has added or is about to add. A crash in between leaves it to the
   * phone's retry; the desktop cannot finalize in the meantime.
   */
  async #takeBack(order: OrderRecord, request: RequestContext): Promise<TakeBackOutcome> {
    const outcome: TakeBackOutcome =
      order.kind === 'link'
        ? { walletUnlinked: await this.#unlinkWallet(order, request) }
        : { sessionEnded: await this.#endLogin(order, request) }
    try {
      const change = { admit: () => {}, command: { type: 'settleTakeBack', ...outcome } } as const
      return (await changeOrder(this.#options.records, order.orderId, change)).takenBack ?? outcome
    } catch (error) {
      // The order's ten minutes ended in between. What had to be done is done.
      if (error instanceof CountersignError && error.reason === 'ORDER_NOT_FOUND') return outcome
      throw error
    }
  }

  /** Takes the wallet of an order from its user again. Resolves with whether it was added by the order. */
  async #unlinkWallet(order: OrderRecord, request: RequestContext): Promise<boolean> {
    const unlinked = await this.#requireLinks().takeBack(order)
    if (unlinked) this.#audit.record(walletFacts('wallet.unlinked', order), request)
    return unlinked
  }

  /**
   * Ends the session of a login order that is taken back, and forgets its computer. Resolves with whether the session
   * was still live.
   */
  async #endLogin(order: OrderRecord, request: RequestContext): Promise<boolean> {
    const { orderId, login } = order
    const { userId, sessionId } = login as OrderLogin
    const session = { userId, sessionId, orderId }
    const [end, forgotten] = await Promise.allSettled([
      this.#endSession(session, request),
      // Also if the host fails: it may stay away for longer than the phone tries again.
      this.#computers.forget(order),
    ])
    if (forgotten.status === 'rejected') throw forgotten.reason
    if (end.status === 'rejected') throw end.reason
    return end.value
  }

  /** Ends the session of an order that is taken back. Resolves with whether it was still live. */
  async #endSession(session: OrderSession, request: RequestContext): Promise<boolean> {
    const ended = await this.#options.host.endOrderSession(session)
    if (ended) this.#audit.record({ type: 'session.ended', by: 'take-back', ...session }, request)
    return ended
  }

  /** The return code, for answers to the phone. */
  #shownReturnCode(order: OrderRecord): { readonly returnCode?: string } {
    return order.status === 'approved' && takesReturnCode(order) ? { returnCode: this.#returnCodes(order)[0] } : {}
  }

  #checkReturnCode(order: OrderRecord, returnCode: string | undefined): ReturnCodeCheck {
    if (returnCode === undefined) return 'absent'
    if (order.proof === undefined) return 'wrong'
    // Made under any of the server's secrets: the phone may have been shown it before the secret was rotated.
    const right = this.#returnCodes(order).map((code) => equalInConstantTime(code, returnCode))
    return right.includes(true) ? 'right' : 'wrong'
  }

  /** The return code, which is not stored anywhere; then those under the server's other secrets. */
  #returnCodes(order: OrderRecord): [string, ...string[]] {
    const { adapterId, subject, signatureHex } = proofOf(order)
    const parts = [order.orderId, adapterId, subject, signatureHex]
    return this.#options.keyring.derive('return code', parts).map(sixDigits) as [string, ...string[]]
  }

  #shownRequester(order: OrderRecord, request: RequestContext): OrderRequester {
    const { ip, userAgent, network, startedWithKey = false, startedBy } = order.requester
    const compares = this.#options.settings.proximity !== 'off' && order.inboxUserId === undefined
    const near = compares ? sameNetwork(network, networkOfRequest(request)) : undefined
    return {
      origin: order.origin,
      ip,
      userAgent,
      ...given({ sameNetwork: near }),
      startedWithKey,
      ...given({ startedBy }),
    }
  }

  /**
   * The challenge token that the holder of a claim token, a ticket or a session gets; then those that it would have got
   * under the server's other secrets.
   */
  #challengeTokens(orderId: string, grant: string, claimKey: string | undefined): [string, ...string[]] {
    if (claimKey === undefined) return [newToken('challenge')]
    const [newest, ...older] = this.#options.keyring.derive('challenge token', [orderId, grant, claimKey])
    return [tokenFromBytes('challenge', newest), ...older.map((bytes) => tokenFromBytes('challenge', bytes))]
  }

  async #prove(order: OrderRecord, proof: Proof, options: ProveOptions): Promise<Proven> {
    if (order.adapterId !== undefined && (proof.adapterId ?? order.adapterId) !== order.adapterId) {
      const message = `proof.adapter_id must be ${order.adapterId}, as the order asks`
      throw invalidField('adapter_id', message, { expected: order.adapterId })
    }
    const { prover } = this.#options
    const named = { ...proof, adapterId: order.adapterId ?? proof.adapterId }
    const proven = await prover.prove(storedChallengeOf(order), named, options)
    const { identity } = proven
    const { expectedPublicKeyHex, expectedAddress } = order
    const hasKey = expectedPublicKeyHex === undefined || expectedPublicKeyHex === identity.publicKeyHex
    if (hasKey && (expectedAddress === undefined || prover.isAddressOf(identity, expectedAddress))) return proven
    throw refused('WRONG_WALLET')
  }
}

/** An order's challenge, of which the text for a wallet is made. */
function storedChallengeOf(order: OrderRecord): StoredChallenge {
  return { ...order, action: actionOf(order.kind) }
}

/** A ticket ends with the identifier of its order, so that it can be redeemed without naming one. */
const ticketForm = /^csh_[A-Za-z0-9_-]{43}([A-Za-z0-9_-]{1,64})$/

/** Six decimal digits of 32 random bytes. Of 2^48 values, none is more likely than another by more than one in 10^8. */
function sixDigits(bytes: Uint8Array): string {
  return String(Buffer.from(bytes).readUIntBE(0, 6) % 1_000_000).padStart(6, '0')
}

function artifactOf(order: OrderRecord): ProofArtifact {
  const { adapterId, publicKeyHex, address, signatureHex, message = order.message } = proofOf(order)
  return { adapterId, publicKeyHex, address, signatureHex, message, ...pick(order, ['payloadHash', 'payload']) }
}

function hashSeed(seed: Uint8Array): string {
  return hashToken(Buffer.from(seed).toString('base64url'))
}

/** Throws INVALID_REQUEST for a text that cannot be a return code, which is no try. */
function readReturnCode(text: string): string {
  const code = typedCode(text)
  if (/^[0-9]{6}$/.test(code)) return code
  throw invalidField('return_code', 'return_code must be six digits')
}

/** The digits that the user compares. With return codes and for an inbox there are none. */
function comparedCode({ confirmationCode }: OrderRecord) {
  return confirmationCode === '' ? {} : { confirmationCode }
}

/** Reasons for which an order is certainly not stored. */
const notStoredReasons: ReadonlySet<ErrorReason> = new Set(['RATE_LIMITED', 'INVALID_REQUEST'])

/** Step in ms of the ends that orders for an inbox are counted until: lives of a day would be 86,400 seconds. */
const countedStepMs = 60_000

/** Until when the ceiling counts a new order. */
function countedUntilOf(order: OrderRecord): number {
  const end = forgottenAt(order)
  return order.inboxUserId === undefined ? end : Math.ceil(end / countedStepMs) * countedStepMs
}

/** Refuses a finalize of an order for an inbox without a key, and of any other order with one. */
function requireFinalizeKey({ inboxUserId }: OrderRecord, finalizeKey: string | undefined): void {
  if ((inboxUserId === undefined) === (finalizeKey === undefined)) return
  const message =
    inboxUserId === undefined
      ? 'finalize_key is for orders with inbox_user_id only'
      : 'finalize_key is required for an order with inbox_user_id'
  throw invalidField('finalize_key', message)
}
