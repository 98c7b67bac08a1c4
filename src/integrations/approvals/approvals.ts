import { base64urlnopad } from '@scure/base'
import { walletAdapters } from '../../core/wallet/adapters.ts'
import type { WalletAdapter } from '../../core/wallet/wallet.ts'
import { adapterIds } from '../../shared/adapters.ts'
import { given } from '../../shared/defined-fields.ts'
import { parseOrigin } from '../../shared/origin.ts'
import type { Fetcher } from '../backend/introspection.ts'
import { type ProofArtifact, ProofError } from '../proof/artifact.ts'
import { verifyProofArtifact } from '../proof/verify.ts'
import { ApprovalError } from './error.ts'
import { Handles, type OpenOrder } from './handle.ts'
import { OrderCalls, type OrderStep } from './service.ts'
import { actionOf, payloadOf } from './signed-payload.ts'
import { type ApprovalWallet, includesWallet, takeWallets } from './wallets.ts'

/** Where approvals are asked for, and what their proofs have to say. */
export interface ApprovalsOptions {
  /**
   * Address of the service, such as `https://sign.example`. The paths of REST are under `/api/auth`, or under the
   * address's own path if it has one.
   */
  readonly url: string
  /** A start key of the service, without its name, 32 characters or more. Never give it to an agent. */
  readonly startKey: string
  /** The service's `appName`, which the signed text has to name. */
  readonly appName: string
  /** Origin for which approvals are asked, which the service has to trust and the signed text to name. */
  readonly origin: string
  /** Wallet adapters: ids of built-in ones, and objects of your own. Default: all built-in ones. */
  readonly adapters?: readonly (string | WalletAdapter)[]
  /**
   * Addresses of JSON-RPC servers by EIP-155 chain id, for contract wallets of ethereum. Default: proofs of contract
   * wallets are refused.
   */
  readonly evmRpc?: Readonly<Record<string, string>>
  /** A function that makes HTTP requests in place of `fetch`. It must not follow redirects. */
  readonly fetch?: Fetcher
  /**
   * Whether an approval is given out for the first time: an atomic step of your own store, which all processes share,
   * such as an `INSERT` of the id as a primary key. It is called last, once the proof holds, with the id of the order,
   * at most 64 characters of `[A-Za-z0-9_-]`, and the time until which the id has to be kept, in epoch milliseconds.
   * All but `true` is ALREADY_USED; `decision()` rejects with what it rejects with. Default: the service's word that it
   * gave the answer to one process only.
   */
  readonly remember?: (orderId: string, until: number) => Promise<boolean>
}

/** An action for a user to approve. */
export interface ApprovalRequest<Action = unknown> {
  /** Id of the user in whose inbox it shows, at the service. */
  readonly userId: string
  /**
   * The wallets that may approve, 1 to 5 of the user's. Take them from your own configuration or records, never from
   * what an agent sends.
   */
  readonly wallets: readonly ApprovalWallet[]
  /** What the user is asked, at most 120 characters. The user sees the whole action in addition. */
  readonly title: string
  /** A further sentence, at most 500 characters. */
  readonly summary?: string | undefined
  /**
   * What runs if the user approves: the name of the action with all its arguments, as JSON. With what is around it,
   * at most 8 KiB, and 7 levels of arrays and objects. It is taken over once, before anything is asked.
   */
  readonly action: Action
  /** How long the user has, in seconds, 30 to 86,400. Default: 3600. */
  readonly ttlSeconds?: number | undefined
}

/** An approval that a user was asked for. */
export interface Approval<Action = unknown> {
  /** Id of the order. */
  readonly id: string
  /** Address of the page on which the user approves, to be sent to the user. It grants nothing. */
  readonly url: string
  /** Epoch milliseconds, by the service's clock. */
  readonly expiresAt: number
  /**
   * Goes on with this approval in another process, by {@link Approvals.resume}: up to 16 KB of text, sealed with a key
   * that follows from the start key.
   */
  readonly handle: string
  /**
   * Waits until the user has decided or the time is over. Act on what it resolves with, and on nothing else.
   *
   * An approval is given out once: to one process, there to one call. That rests on the service, or on your own store
   * with {@link ApprovalsOptions.remember}. A process that ends between that and the action
   * has to ask again. A call that rejects has given out nothing; if the service was away, call again.
   *
   * @throws ApprovalError with a `reason`, and the signal's own reason once it is aborted.
   */
  decision(options?: DecisionOptions): Promise<Decision<Action>>
}

/** Options of {@link Approval.decision}. */
export interface DecisionOptions {
  /** Ends the wait, and not the approval. */
  readonly signal?: AbortSignal | undefined
}

/** What the user decided. */
export type Decision<Action = unknown> = ApprovedAction<Action> | RefusedAction

/** The user has signed the action, with one of the wallets that may approve it. */
export interface ApprovedAction<Action = unknown> {
  readonly approved: true
  /** The action as it was signed. Run this one. */
  readonly action: Action
  /** The wallet that signed. */
  readonly wallet: ApprovalWallet
  /** What can be checked later and elsewhere, with `countersign/proof`. */
  readonly artifact: ProofArtifact
}

/** The action must not run. */
export interface RefusedAction {
  readonly approved: false
  /** `declined`: by the user, or cancelled. `expired`: there was no decision in time, or the order is forgotten. */
  readonly why: 'declined' | 'expired'
}

/** Options of {@link Approvals.resume}. */
export interface ResumeOptions {
  /**
   * The wallets that may approve, from your own records again: needed if the handle was out of your hands. Default:
   * those in the handle, which can be chosen by anyone who has the start key.
   */
  readonly wallets?: readonly ApprovalWallet[] | undefined
}

/** Asks users to approve actions. */
export interface Approvals {
  /**
   * Puts an action into a user's inbox.
   *
   * @throws ApprovalError with a `reason`: APP_NAME_MISMATCH if the service has another name; SERVICE_REFUSED with the
   *   code RATE_LIMITED if the user has too many open.
   * @throws TypeError for wallets that are wrong.
   */
  ask<Action>(request: ApprovalRequest<Action>): Promise<Approval<Action>>
  /**
   * Goes on with an approval that was asked for earlier, or by another process with the same start key.
   *
   * @throws ApprovalError of HANDLE_INVALID for everything else, and a day after the order is over.
   */
  resume(handle: string, options?: ResumeOptions): Promise<Approval>
}

/** Least characters of a start key. */
const minKeyLength = 32

/** Lifetime of an order, in seconds, unless the request says another. */
const defaultTtlSeconds = 3600

/**
 * Time behind an order's end in which its approval may still be given out, in milliseconds: the ten minutes in which
 * the service lets it be finalized, and a day for a backend that was away and for clocks that differ.
 */
const afterEndMs = 600_000 + 24 * 3_600_000

/**
 * Longest time in which an approval may be given out, in milliseconds: an order lives a day at most.
 */
const givenOutMs = 24 * 3_600_000 + afterEndMs

/**
 * Makes what asks users to approve actions, for backends. Make one and keep it: two of them count as two processes.
 *
 * @throws TypeError for options that are wrong.
 */
export function createApprovals(options: ApprovalsOptions): Approvals {
  return new InboxApprovals(options)
}

class InboxApprovals implements Approvals {
  readonly #startKey: string
  readonly #appName: string
  readonly #origin: string
  readonly #evmRpc: Readonly<Record<string, string>>
  readonly #adapters: readonly WalletAdapter[]
  readonly #calls: OrderCalls
  readonly #handles: Handles
  readonly #remember: ApprovalsOptions['remember']
  /** A secret of this process, so that no other one gets the same answers. */
  readonly #finalizeKey = base64urlnopad.encode(crypto.getRandomValues(new Uint8Array(32)))
  /** Ids of the orders that were given out, oldest first, with the time by `performance.now()`. */
  readonly #givenOut = new Map<string, number>()

  constructor(options: ApprovalsOptions) {
    const { url, startKey, appName, origin, adapters = adapterIds, evmRpc = {}, fetch, remember } = options
    if (remember !== undefined && typeof remember !== 'function') throw new TypeError('remember must be a function')
    this.#startKey = startKeyOf(startKey)
    this.#appName = textOf('appName', appName)
    this.#origin = originOf(origin)
    this.#evmRpc = evmRpc
    this.#adapters = walletAdapters(adapters, { evmRpc })
    this.#calls = new OrderCalls(rootOf(url), fetch ?? ((address, init) => globalThis.fetch(address, init)))
    this.#handles = new Handles(this.#startKey)
    this.#remember = remember
  }

  async ask<Action>(request: ApprovalRequest<Action>): Promise<Approval<Action>> {
    // All of it before the first wait: the caller's objects may change meanwhile.
    const { userId, title, summary, ttlSeconds = defaultTtlSeconds } = request
    const payload = payloadOf(request.action)
    const wallets = takeWallets(request.wallets, this.#adapters)
    const [only, ...others] = wallets
    const wallet = only === undefined || others.length > 0 ? undefined : only
    const order = given({
      kind: 'sign',
      inboxUserId: textOf('userId', userId),
      displayTitle: textOf('title', title),
      displaySummary: summary,
      payload,
      adapterId: wallet?.adapterId,
      expectedAddress: wallet?.address,
      ttlSeconds,
      requester: { origin: this.#origin },
    })
    await this.#requireAppName()
    const started = await this.#calls.start(order, this.#startKey)
    // By the clock here: the service may be wrong about the end of its order.
    const until = Date.now() + ttlSeconds * 1000 + afterEndMs
    return await this.#approval({ ...started, until, payload, wallets })
  }

  /** Refuses a service whose texts name another application: the user would sign what proves nothing here. */
  async #requireAppName(): Promise<void> {
    const name = await this.#calls.appName()
    // Of an older service, only the proof says it.
    if (name === undefined || name === this.#appName) return
    const theirs = JSON.stringify(name).slice(0, 100)
    const names = `the service has ${theirs}, the option is ${JSON.stringify(this.#appName)}`
    throw new ApprovalError('APP_NAME_MISMATCH', `Two values of appName: ${names}`)
  }

  async resume(handle: string, options: ResumeOptions = {}): Promise<Approval> {
    const { wallets } = options
    const allowed = wallets === undefined ? undefined : takeWallets(wallets, this.#adapters)
    const order = await this.#handles.open(handle)
    // Nothing has to remember it for longer.
    if (!isInTime(order)) throw new ApprovalError('HANDLE_INVALID', 'The order of this handle is long over')
    return await this.#approval({ ...order, wallets: allowed ?? order.wallets })
  }

  async #approval<Action>(order: OpenOrder): Promise<Approval<Action>> {
    const { id, url, expiresAt } = order
    const handle = await this.#handles.seal(order)
    return {
      id,
      url,
      expiresAt,
      handle,
      decision: ({ signal = new AbortController().signal } = {}) => this.#decide<Action>(order, signal),
    }
  }

  async #decide<Action>(order: OpenOrder, signal: AbortSignal): Promise<Decision<Action>> {
    signal.throwIfAborted()
    let artifact: ProofArtifact
    try {
      const refusal = await this.#settled(order, signal)
      if (refusal !== undefined) return { approved: false, why: refusal }
      artifact = (await this.#calls.finalize(order, this.#finalizeKey, signal)) as ProofArtifact
    } catch (error) {
      const code = error instanceof ApprovalError && error.reason === 'SERVICE_REFUSED' ? error.code : undefined
      if (code === 'ORDER_FINALIZED') throw alreadyUsed(error)
      const why = refusals.get(code)
      if (why === undefined) throw error
      return { approved: false, why }
    }
    const wallet = await this.#verify(artifact, order)
    signal.throwIfAborted()
    if (!isInTime(order)) return { approved: false, why: 'expired' }
    if (this.#remember !== undefined && (await this.#remember(order.id, order.until)) !== true) throw alreadyUsed()
    // Nothing waits from here on: of several calls at once, one passes.
    this.#giveOut(order.id)
    return { approved: true, action: actionOf(order.payload) as Action, wallet, artifact }
  }

  /** Waits until the order can be finalized, or is over without that. */
  async #settled(order: OpenOrder, signal: AbortSignal): Promise<RefusedAction['why'] | undefined> {
    for (let last: OrderStep | undefined; ; ) {
      last = await this.#calls.nextStep(order, last, signal)
      switch (last.status) {
        case 'approved':
        case 'finalized':
          return undefined
        case 'rejected':
        case 'cancelled':
          return 'declined'
        case 'expired':
          return 'expired'
      }
    }
  }

  /** The wallet that signed the order's payload, of those that may, whatever the service let through. */
  async #verify(artifact: ProofArtifact, { id, wallets, payload }: OpenOrder): Promise<ApprovalWallet> {
    try {
      const proof = await verifyProofArtifact(artifact, {
        appName: this.#appName,
        origin: this.#origin,
        payload,
        adapters: this.#adapters,
        evmRpc: this.#evmRpc,
      })
      // With another order's id, a text could be given out once more.
      if (proof.orderId !== id) throw new ProofError('MESSAGE_MALFORMED', 'The signed text is that of another order')
      const wallet = { adapterId: proof.adapterId, address: proof.address }
      if (!includesWallet(wallets, wallet, this.#adapters)) {
        throw new ProofError('WRONG_WALLET', 'Another wallet signed than those that may approve')
      }
      return wallet
    } catch (cause) {
      if (!(cause instanceof ProofError)) throw cause
      // The proof was not judged.
      if (cause.reason === 'EVM_RPC_UNAVAILABLE')
        throw new ApprovalError('SERVICE_UNAVAILABLE', cause.message, { cause })
      throw new ApprovalError('PROOF_INVALID', `The approval is not proven: ${cause.message}`, { cause })
    }
  }

  /** Throws ALREADY_USED if an order was given out before. */
  #giveOut(id: string): void {
    const now = performance.now()
    if (this.#givenOut.has(id)) throw alreadyUsed()
    for (const [old, at] of this.#givenOut) {
      if (now - at < givenOutMs) break
      this.#givenOut.delete(old)
    }
    this.#givenOut.set(id, now)
  }
}

/** Reasons with which the service refuses to finalize an order that is over without an approval. */
const refusals: ReadonlyMap<string | undefined, RefusedAction['why']> = new Map([
  ['ORDER_REJECTED', 'declined'],
  ['ORDER_CANCELLED', 'declined'],
  ['ORDER_EXPIRED', 'expired'],
  ['ORDER_NOT_FOUND', 'expired'],
])

function isInTime({ until }: OpenOrder): boolean {
  return Date.now() <= until
}

function alreadyUsed(cause?: unknown): ApprovalError {
  const message = 'The approval was given out before, here or in another process; ask again'
  return new ApprovalError('ALREADY_USED', message, { cause })
}

/** Address under which the paths of REST are. */
function rootOf(url: string): string {
  if (typeof url !== 'string' || !/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new TypeError('url must be an address such as https://sign.example')
  }
  const { origin, pathname } = new URL(url)
  const path = pathname.replace(/\/+$/, '')
  return origin + (path === '' ? '/api/auth' : path)
}

function startKeyOf(startKey: string): string {
  // Not repeated: it is a secret.
  if (typeof startKey === 'string' && startKey.length >= minKeyLength && /^[!-~]+$/.test(startKey)) return startKey
  throw new TypeError(`startKey must be one of the service's start keys, ${minKeyLength} characters or more`)
}

function originOf(origin: string): string {
  const parsed = typeof origin === 'string' ? parseOrigin(origin) : undefined
  if (parsed === undefined) throw new TypeError('origin must be one such as https://app.example')
  return parsed
}

function textOf(name: string, value: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new TypeError(`${name} must be a text`)
}
