import type { AuditCaller } from '../../base/audit.ts'
import { networkOfRequest, sameNetwork } from '../../base/networks.ts'
import type { RequestContext } from '../../base/request.ts'
import { equalInConstantTime, hashToken, newToken, tokenFromBytes } from '../../base/token.ts'
import type { LiveCount } from '../../limits/concurrency.ts'
import { given, pick } from '../../shared/defined-fields.ts'
import { CountersignError, type ErrorReason, internalError, invalidField, refused } from '../../shared/errors.ts'
import type {
  ApprovedOrder,
  ClaimedOrder,
  DesktopOrder,
  HandOver,
  InboxOrder,
  OrderChallenge,
  OrderKind,
  OrderPreview,
  OrderRequester,
  OrderState,
  PhoneOrder,
  RejectedOrder,
  StartedOrder,
  StartOrderOptions,
} from '../../shared/orders.ts'
import { typedCode } from '../../shared/typed-code.ts'
import type { WalletClaims } from '../users/user-records.ts'
import type { Proven, ProveOptions, Prover } from '../wallet/prover.ts'
import type { StoredChallenge } from '../wallet/sign-in-form.ts'
import type { Proof, ProvenIdentity, WalletNamed } from '../wallet/wallet.ts'
import { Admission, matchesAny, phoneHashes } from './admission.ts'
import { changeOrder, contractChecks, type OrderChange, type OrderStep, orderFacts } from './change.ts'
import { inboxClaimer, listInbox } from './kinds/inbox.ts'
import type { OrderCall, OrderParts, OrderTools, OrderYield } from './kinds/recipe.ts'
import { recipeFor, rulesOf, withRecipe } from './kinds/recipes.ts'
import { type KnownComputers, OrderComputers, requireComputerProof } from './known-computers.ts'
import { contentFields, identityOf, type OrderRecord, proofOf, type TakeBackOutcome } from './order.ts'
import type { OrderRecords } from './records.ts'
import { claimUrl, newOrder, type OrderSettings } from './start.ts'
import { deadlinesOf, forgottenAt, isUnsettled, type ReturnCodeCheck, takesReturnCode, ticketLifeMs } from './states.ts'
import type { OrderWatches, WatchEvent } from './watch.ts'

/** What {@link Orders} works with. */
export interface OrdersOptions extends OrderTools {
  readonly settings: OrderSettings
  readonly records: OrderRecords
  readonly prover: Prover
  /** Without them, no computer is known. */
  readonly computers?: KnownComputers | undefined
  /** Refuses wallets that an operator has blocked. Without it, none is blocked. */
  readonly claims?: Pick<WalletClaims, 'requireNotBlocked'> | undefined
  /** Counts the orders that are stored, and refuses those beyond its ceiling. Without it, there is no ceiling. */
  readonly live?: LiveCount | undefined
  /** Watches of the same records. */
  readonly watches: OrderWatches
}

/** What a call about orders works with. */
type Parts = OrderParts &
  Omit<OrdersOptions, 'computers' | 'watches'> & { readonly admission: Admission; readonly computers: OrderComputers }

/** The answer of a call, without the `ok` that REST and the RPCs add. */
type Plain<Answer> = Omit<Answer, 'ok'>

/** The result of a finalized order. */
export type OrderResult = Plain<OrderState> & { readonly redirectTo: string } & OrderYield

/**
 * Cross-device orders: a phone approves with its wallet what a desktop started.
 *
 * Each method finds the order, checks the caller's token, and leaves to the order's recipe (`kinds/`) what differs. It
 * rejects with a `CountersignError`. For all but {@link start}, the checks are in this order: ORDER_NOT_FOUND, also
 * for an order of another service that shares the storage and for one whose origin is no longer trusted;
 * ORDER_TOKEN_INVALID for any token but the one that the method takes (HANDOVER_INVALID for a ticket);
 * COMPUTER_PROOF_INVALID; ORIGIN_MISMATCH for a request from neither the order's origin nor the service's own;
 * NETWORK_MISMATCH, if networks are compared, for a phone that is not on the desktop's; SESSION_REQUIRED and
 * SESSION_INVALID for a link order that another session than its own finalizes; then the reasons of the order's status
 * (see `applyCommand`). STORE_UNAVAILABLE can come at any point. The call may or may not have taken effect then; a
 * retry tells which.
 */
export class Orders {
  readonly #parts: Parts
  readonly #watches: OrderWatches

  constructor({ computers, watches, ...options }: OrdersOptions) {
    const { settings, records, audit } = options
    this.#watches = watches
    this.#parts = {
      ...options,
      admission: new Admission(options),
      computers: new OrderComputers(computers, settings, audit),
      async withdraw(orderId) {
        await changeOrder(records, orderId, () => ({ type: 'cancel' }))
      },
      requireUsers() {
        if (options.keptUsers !== undefined) return options.keptUsers
        throw new CountersignError('NOT_ENABLED', 'The application keeps its users and their wallets itself')
      },
      async requireStanding(orderId) {
        if ((await records.load(orderId))?.order.takenBack !== undefined) throw refused('ORDER_REJECTED')
      },
    }
  }

  /** Number of open watches. */
  get watchers(): number {
    return this.#watches.size
  }

  /** The limit on which a start counts at first. Backends with a start key start all their orders from one address. */
  startLimitOf(kind: OrderKind | undefined): 'start-order' | 'unlimited' {
    if (this.#parts.settings.orderStartKeys !== undefined) return 'unlimited'
    return kind !== undefined && recipeFor({ kind }).countsOwnStart ? 'unlimited' : 'start-order'
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
    const call = this.#call(request)
    const { settings, records, prover, live, audit } = call.parts
    const { adapterId, expectedAddress, expectedPublicKeyHex } = input
    const recipe = recipeFor(input)
    const beginning = await recipe.begin(input, call)
    const { startKeyId = '', ip: address } = beginning.requester
    if (adapterId !== undefined) prover.requireConfigured(adapterId)
    const { order, claimToken, desktopToken } = newOrder(input, recipe, beginning, {
      settings,
      issuedAt: records.now(),
    })
    if (adapterId !== undefined && expectedAddress !== undefined) {
      prover.requireAddress(adapterId, expectedAddress, 'expected_address')
    }
    if (adapterId !== undefined && expectedPublicKeyHex !== undefined) {
      prover.requireKeys(adapterId, 'expected_public_key_hex')
    }
    const ip = address || undefined
    const slots = live?.slotsOf(Buffer.byteLength(JSON.stringify(order)))
    const countedUntil = countedUntilOf(order)
    live?.add(countedUntil, order.issuedAt, ip, slots)
    try {
      await withRecipe(order, (recipe, order) => recipe.create?.(order, startKeyId, call) ?? records.create(order))
    } catch (error) {
      const notStored = error instanceof CountersignError && notStoredReasons.has(error.reason)
      if (notStored) live?.remove(countedUntil, ip, slots)
      throw error
    }
    records.observe?.(order)
    const { orderId, kind, status, expiresAt, confirmationCode, origin, requester } = order
    const caller: AuditCaller = { ip, origin, userAgent: requester.userAgent }
    audit.record({ type: 'order.started', orderId, kind, ...pick(requester, ['startedWithKey', 'startedBy']) }, caller)
    return {
      ...{ orderId, claimToken, desktopToken, kind, status, expiresAt, confirmationCode },
      claimUrl: recipe.scanned ? claimUrl(settings, orderId, claimToken) : '',
      ...given({ approvalUrl: withRecipe(order, (recipe, order) => recipe.announce?.(order, call)) }),
      ...given({ cookies: beginning.cookies }),
    }
  }

  /** The requester, for the page of a claim URL, as long as no phone has claimed the order. Changes nothing. */
  async preview(
    input: { readonly orderId: string; readonly claimToken: string },
    request: RequestContext,
  ): Promise<OrderPreview> {
    const { orderId, claimToken } = input
    const { after: order } = await this.#change(orderId, request, (order) => {
      this.#parts.admission.fromPage(order, request, { token: claimToken, hashes: [order.claimTokenHash] })
      return { type: 'preview' }
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
    const { admission } = this.#parts
    const tokens = this.#challengeTokens(orderId, claimToken, claimKey)
    const { after } = await this.#change(orderId, request, (order) => {
      admission.fromPage(order, request, { token: claimToken, hashes: [order.claimTokenHash] })
      admission.requireNearby(order, request)
      return { type: 'claim', challengeTokenHashes: hashesOf(tokens) }
    })
    return claimedOrder(after, tokens)
  }

  /**
   * The orders that wait for the request's user, newest first. Takes a session that no order made (SESSION_NOT_FRESH);
   * with a cookie, from the service's own origin.
   */
  async listInbox(request: RequestContext): Promise<readonly InboxOrder[]> {
    return await listInbox(this.#call(request))
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
    const { session, cookies, inboxes } = await inboxClaimer(this.#call(request))
    const tokens = this.#challengeTokens(orderId, session.id, claimKey)
    const { after } = await this.#change(orderId, request, (order) => {
      this.#parts.admission.ofUser(order, session.userId, request)
      return { type: 'claimFromInbox', challengeTokenHashes: hashesOf(tokens), sessionId: session.id }
    }).catch(async (error: unknown) => {
      // The entry of an order that is over, or that was never stored.
      const isOver = error instanceof CountersignError && error.reason.startsWith('ORDER_')
      if (isOver) await inboxes.takeOut(session.userId, orderId)
      throw error
    })
    return { ...claimedOrder(after, tokens), cookies }
  }

  /**
   * Makes a ticket that continues the order in another browser, for the phone. It is good for 60 seconds and one use,
   * and takes the place of the one before it.
   */
  async handOver(input: PhoneOrder, request: RequestContext): Promise<HandOver> {
    const { records, settings } = this.#parts
    const ticket = newToken('hand-over') + input.orderId
    const expiresAt = records.now() + ticketLifeMs
    await this.#change(input.orderId, request, async (order) => {
      await this.#admitPhone(order, input, request)
      return { type: 'handOver', ticketHash: hashToken(ticket), expiresAt }
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
    const { admission } = this.#parts
    const orderId = ticketForm.exec(ticket)?.[1]
    if (orderId === undefined) throw refused('HANDOVER_INVALID')
    const tokens = this.#challengeTokens(orderId, ticket, claimKey)
    const { after } = await this.#change(orderId, request, (order) => {
      const hashes = [order.handOver?.ticketHash]
      admission.fromPage(order, request, { token: ticket, hashes, refusal: 'HANDOVER_INVALID' })
      admission.requireNearby(order, request)
      return { type: 'redeem', challengeTokenHashes: hashesOf(tokens) }
    }).catch((error: unknown) => {
      // The caller has named no order.
      throw error instanceof CountersignError && error.reason === 'ORDER_NOT_FOUND'
        ? refused('HANDOVER_INVALID', { cause: error })
        : error
    })
    return claimedOrder(after, tokens)
  }

  /**
   * Returns the text for the phone's wallet to sign, and what to show its user. Safe to retry, also once approved. The
   * text is for the wallet that is named (ADAPTER_UNKNOWN, INVALID_REQUEST): the plain text if none is.
   */
  async readChallenge(input: PhoneOrder & WalletNamed, request: RequestContext): Promise<OrderChallenge> {
    const { prover, computers } = this.#parts
    const { orderId: _orderId, challengeToken: _token, ...wallet } = input
    const { after: order } = await this.#change(input.orderId, request, async (order) => {
      await this.#admitPhone(order, input, request)
      return { type: 'readChallenge' }
    })
    const challenge = storedChallengeOf(order)
    return {
      action: challenge.action,
      ...pick(order, ['challengeId', 'nonce', 'origin', 'issuedAt', 'expiresAt', 'kind', 'status']),
      message: prover.textFor(challenge, wallet, request.origin),
      ...pick(order, contentFields),
      ...withRecipe(order, (recipe, order) => recipe.shown?.(order)),
      ...comparedCode(order),
      canRememberComputer: computers.canRemember(order),
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
    const { orderId, challengeToken, proof, rememberComputer = false } = input
    const call = this.#call(request)
    const { admission, records, computers } = call.parts
    let proven: Proven | undefined
    const { after } = await this.#change(orderId, request, (order) => {
      admission.ofPhone(order, input, request)
      admission.requireNearby(order, request)
      const work = async () => {
        // Once, also after a lost race: nothing that it depends on changes.
        if (proven === undefined) {
          const checks = contractChecks(records, orderId)
          proven = await this.#prove(order, proof, { pageOrigin: request.origin, remote: checks })
          if (checks.counted) return undefined
        }
        const { identity, text } = proven
        await this.#requireApprover(order, identity, call)
        // Here, so that the refusal for a wallet that cannot approve comes first.
        await this.#requireHolder(order, challengeToken, call)
        const approval = await computers.decide(order, identity, rememberComputer)
        const message = rulesOf(order).keepsSignedText && text !== order.message ? { message: text } : {}
        const signatureHex = proof.signatureHex.toLowerCase()
        return { type: 'approve', proof: { ...identity, signatureHex, ...message }, approval } as const
      }
      return { type: 'approve', proof, work }
    })
    await this.#leave(after, call)
    const { finishBy } = deadlinesOf(after)
    return { orderId, status: after.status, ...this.#shownReturnCode(after), ...given({ finishBy }) }
  }

  /** Admits the holder of the order's challenge token. */
  async #admitPhone(order: OrderRecord, input: PhoneOrder, request: RequestContext): Promise<void> {
    this.#parts.admission.ofPhone(order, input, request)
    await this.#requireHolder(order, input.challengeToken, this.#call(request))
  }

  /** Refuses a wallet that is blocked, or cannot approve the order by its recipe. */
  async #requireApprover(order: OrderRecord, identity: ProvenIdentity, call: OrderCall): Promise<undefined> {
    await this.#parts.claims?.requireNotBlocked(identity)
    await withRecipe(order, (recipe, order) => recipe.requireApprover?.(order, identity, call))
  }

  /** Refuses a phone's token that does not count any more, by the order's recipe. */
  async #requireHolder(order: OrderRecord, challengeToken: string, call: OrderCall): Promise<void> {
    await withRecipe(order, (recipe, order) => recipe.requireHolder?.(order, hashToken(challengeToken), call))
  }

  /** To be called once the order is approved or over. */
  async #leave(order: OrderRecord, call: OrderCall): Promise<void> {
    await withRecipe(order, (recipe, order) => recipe.leave?.(order, call))
  }

  /** Ends the order, for the phone, or takes a finalized login or link order back: see {@link #takeBack}. */
  async reject(input: PhoneOrder, request: RequestContext): Promise<Plain<RejectedOrder>> {
    const { challengeToken, orderId } = input
    const call = this.#call(request)
    const { after } = await this.#change(orderId, request, async (order) => {
      call.parts.admission.fromPage(order, request, { token: challengeToken, hashes: phoneHashes(order) })
      await this.#requireHolder(order, challengeToken, call)
      return { type: 'reject' }
    })
    await this.#leave(after, call)
    const { status, takenBack } = after
    if (takenBack === undefined) return { orderId, status }
    return { orderId, status, ...(isUnsettled(after) ? await this.#takeBack(after, call) : takenBack) }
  }

  /** Ends the order, for the desktop. */
  async cancel(input: DesktopOrder, request: RequestContext): Promise<Plain<OrderState>> {
    const { orderId } = input
    const { after } = await this.#change(orderId, request, (order) => {
      this.#parts.admission.ofDesktop(order, input, request)
      return { type: 'cancel' }
    })
    await this.#leave(after, this.#call(request))
    return { orderId, status: after.status }
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
    const { orderId, desktopToken, computerProof, finalizeKey } = input
    const call = { ...this.#call(request), desktopToken }
    const returnCode = input.returnCode === undefined ? undefined : readReturnCode(input.returnCode)
    const finalizeKeyHash = finalizeKey === undefined ? undefined : hashToken(finalizeKey)
    const { after, changed, step } = await this.#change(orderId, request, async (order) => {
      call.parts.admission.ofDesktop(order, input, request, () => {
        requireComputerProof(order, computerProof, desktopToken)
      })
      requireFinalizeKey(order, finalizeKey)
      const finish = await withRecipe(order, (recipe, order) => recipe.finalize(order, call))
      const intent = {
        type: 'finalize',
        returnCode: this.#checkReturnCode(order, returnCode),
        finalizeKeyHash,
      } as const
      const work = async () => {
        const identity = identityOf(order)
        const resolved = withRecipe(order, (recipe, order) => recipe.resolve?.(order, identity, call))
        return { ...intent, ...given({ login: await (resolved ?? this.#requireApprover(order, identity, call)) }) }
      }
      return { ...intent, finish, work }
    })
    const { status, returnTo: redirectTo } = after
    const finalized = { order: after, proof: proofOf(after), identity: identityOf(after), repeated: !changed }
    return { orderId, status, redirectTo, ...(await step.finish(finalized)) }
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
    const admit = (order: OrderRecord): void => this.#parts.admission.ofDesktop(order, input, request)
    return this.#watches.watch({ orderId, admit, afterSequence, signal })
  }

  #call(request: RequestContext): OrderCall & { readonly parts: Parts } {
    return { request, parts: this.#parts }
  }

  /** {@link changeOrder} by a request, recorded in the audit trail. */
  async #change<const Step extends OrderStep>(
    orderId: string,
    request: RequestContext,
    stepOn: (order: OrderRecord) => Step | Promise<Step>,
  ): Promise<OrderChange<Step>> {
    const { records, audit } = this.#parts
    return await changeOrder(records, orderId, stepOn, (before, after) => {
      for (const facts of orderFacts(before, after)) audit.record(facts, request)
    })
  }

  /**
   * Carries out a take-back that is stored: what the order has made, or is about to make, is undone. A crash in between
   * leaves it to the phone's retry; the desktop cannot finalize in the meantime.
   */
  async #takeBack(order: OrderRecord, call: OrderCall): Promise<TakeBackOutcome> {
    const { orderId } = order
    const outcome = await withRecipe(order, (recipe, order) => recipe.takeBack?.(order, identityOf(order), call))
    try {
      const { after } = await changeOrder(this.#parts.records, orderId, () => ({ type: 'settleTakeBack', ...outcome }))
      return after.takenBack ?? {}
    } catch (error) {
      // The order's ten minutes ended in between. What had to be done is done.
      if (error instanceof CountersignError && error.reason === 'ORDER_NOT_FOUND') return outcome ?? {}
      throw error
    }
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
    const [newest, ...older] = this.#parts.keyring.derive('return code', parts)
    return [sixDigits(newest), ...older.map(sixDigits)]
  }

  #shownRequester(order: OrderRecord, request: RequestContext): OrderRequester {
    const { network, startedWithKey = false, ...requester } = order.requester
    const compares = this.#parts.settings.proximity !== 'off' && rulesOf(order).scanned
    const near = compares ? sameNetwork(network, networkOfRequest(request)) : undefined
    return { origin: order.origin, ...requester, ...given({ sameNetwork: near }), startedWithKey }
  }

  /**
   * The challenge token that the holder of a claim token, a ticket or a session gets; then those that it would have got
   * under the server's other secrets.
   */
  #challengeTokens(orderId: string, grant: string, claimKey: string | undefined): [string, ...string[]] {
    if (claimKey === undefined) return [newToken('challenge')]
    const [newest, ...older] = this.#parts.keyring.derive('challenge token', [orderId, grant, claimKey])
    return [tokenFromBytes('challenge', newest), ...older.map((bytes) => tokenFromBytes('challenge', bytes))]
  }

  async #prove(order: OrderRecord, proof: Proof, options: ProveOptions): Promise<Proven> {
    if (order.adapterId !== undefined && (proof.adapterId ?? order.adapterId) !== order.adapterId) {
      const message = `proof.adapter_id must be ${order.adapterId}, as the order asks`
      throw invalidField('adapter_id', message, { expected: order.adapterId })
    }
    const { prover } = this.#parts
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
  return { ...order, action: rulesOf(order).action }
}

/** A ticket ends with the identifier of its order, so that it can be redeemed without naming one. */
const ticketForm = /^csh_[A-Za-z0-9_-]{43}([A-Za-z0-9_-]{1,64})$/

/**
 * Six decimal digits of 32 random bytes. With 48 bits of them, one code is more likely than another by less than one in
 * 10^8.
 */
function sixDigits(bytes: Uint8Array): string {
  return String(Buffer.from(bytes).readUIntBE(0, 6) % 1_000_000).padStart(6, '0')
}

/** The hashes of tokens that a claim may get. */
function hashesOf([newest, ...older]: readonly [string, ...string[]]): readonly [string, ...string[]] {
  return [hashToken(newest), ...older.map(hashToken)]
}

/** The answer to a claim that may have got one of these tokens. */
function claimedOrder(order: OrderRecord, tokens: readonly string[]): Plain<ClaimedOrder> {
  const challengeToken = tokens.find((token) => matchesAny(token, phoneHashes(order)))
  if (challengeToken === undefined) throw internalError(new Error('an order was claimed without a token'))
  return { orderId: order.orderId, status: order.status, challengeToken }
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
  return rulesOf(order).scanned ? end : Math.ceil(end / countedStepMs) * countedStepMs
}

/** Refuses a finalize without a key of an order whose recipe takes one, and with a key of any other. */
function requireFinalizeKey(order: OrderRecord, finalizeKey: string | undefined): void {
  const { takesFinalizeKey } = rulesOf(order)
  if ((takesFinalizeKey === true) === (finalizeKey !== undefined)) return
  const message = takesFinalizeKey
    ? 'finalize_key is required for an order with inbox_user_id'
    : 'finalize_key is for orders with inbox_user_id only'
  throw invalidField('finalize_key', message)
}
