import { given } from '../../shared/defined-fields.ts'
import type {
  ApprovedOrder,
  ClaimedOrder,
  HandOver,
  OrderChallenge,
  OrderPreview,
  PhoneOrder,
  RejectedOrder,
} from '../../shared/orders.ts'
import type { SigningAccount } from '../../shared/session.ts'
import type { Claim, PhoneOrderApi } from './api.ts'
import type { CallOptions } from './call.ts'
import { base64url } from './computer-key.ts'
import { CountersignClientError } from './errors.ts'
import { retriesOf } from './retry.ts'
import { type ProofOptions, proveWithWallet } from './wallet.ts'

/** Options of {@link PhoneCalls.claimOrder}. */
export interface ClaimOrderOptions extends CallOptions {
  /**
   * Secret of this phone (see `newClaimKey`). With the same one, a claim whose answer was lost can be repeated, even
   * after the page was reloaded. Default: a new one.
   */
  readonly claimKey?: string | undefined
}

/** Options of {@link PhoneCalls.getOrderChallenge}. */
export interface GetOrderChallengeOptions extends CallOptions {
  /** Account that is going to sign, for wallets with `getAccount`: the message is then the text for that account. */
  readonly account?: SigningAccount | undefined
}

/** Options of {@link PhoneCalls.approveOrder}. */
export interface ApproveOrderOptions extends ProofOptions {
  /**
   * The answer of `getOrderChallenge`; the wallet signs its `message`. A wallet with `getAccount` is asked for its
   * account, and signs the text that is then read for it.
   */
  readonly challenge: OrderChallenge
  /**
   * Account that {@link challenge} was read for. With it, the wallet is not asked for its account, and signs that
   * challenge's text.
   */
  readonly account?: SigningAccount | undefined
  /**
   * Whether the computer is to be remembered, so that its next orders need no return code. Without effect unless
   * `canRememberComputer` of the challenge is true. Default false.
   */
  readonly rememberComputer?: boolean | undefined
}

/** The phone's calls for cross-device orders. Those that are retried get the same answer again. */
export interface PhoneCalls {
  /**
   * Phone: reads who asks, before the order is claimed. Changes nothing, so a page can call it as it opens. Retried if
   * no answer arrives.
   */
  previewOrder(claim: string | URL | Claim, options?: CallOptions): Promise<OrderPreview>
  /** Phone: claims an order by its claim URL. Retried with the same claim key if no answer arrives. */
  claimOrder(claim: string | URL | Claim, options?: ClaimOrderOptions): Promise<ClaimedOrder>
  /** Phone: reads the text to sign and the details to show to the user. Retried if no answer arrives. */
  getOrderChallenge(order: PhoneOrder, options?: GetOrderChallengeOptions): Promise<OrderChallenge>
  /**
   * Phone: asks the wallet to sign the challenge, then approves the order. Call it in a user gesture. Retried if no
   * answer arrives.
   */
  approveOrder(order: PhoneOrder, options: ApproveOrderOptions): Promise<ApprovedOrder>
  /**
   * Phone: rejects an order, also an approved one. Takes a finalized login order back: its session ends. Retried if no
   * answer arrives.
   */
  rejectOrder(order: PhoneOrder, options?: CallOptions): Promise<RejectedOrder>
  /**
   * Phone: makes a ticket that continues the order in another browser. A retry makes another one, which voids the
   * first.
   */
  handOverOrder(order: PhoneOrder, options?: CallOptions): Promise<HandOver>
  /**
   * Phone: continues an order here by the ticket of another browser. Call it in a user gesture, never when a page is
   * merely opened. Retried with the same claim key if no answer arrives.
   */
  redeemHandOver(ticket: string, options?: ClaimOrderOptions): Promise<Omit<ClaimedOrder, 'ok'>>
}

/** Options of {@link phoneCalls}. */
export interface PhoneCallsOptions {
  readonly service: PhoneOrderApi
  readonly proofDefaults: ProofOptions
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
}

/** The phone's calls, over any protocol. */
export function phoneCalls({ service, proofDefaults, timeoutMs }: PhoneCallsOptions): PhoneCalls {
  const again = retriesOf(timeoutMs)
  const readChallenge = (
    order: PhoneOrder,
    account: SigningAccount | undefined,
    signal: AbortSignal | undefined,
  ): Promise<OrderChallenge> => again((call) => service.getOrderChallenge({ ...order, ...account }, call), signal)
  return {
    async previewOrder(claim, { signal } = {}) {
      const { orderId, claimToken } = claimOf(claim)
      return await again((call) => service.previewOrder({ orderId, claimToken }, call), signal)
    },
    async claimOrder(claim, { signal, claimKey = newClaimKey() } = {}) {
      const { orderId, claimToken } = claimOf(claim)
      return await again((call) => service.claimOrder({ orderId, claimToken, claimKey }, call), signal)
    },
    getOrderChallenge: ({ orderId, challengeToken }, { signal, account } = {}) =>
      readChallenge({ orderId, challengeToken }, account, signal),
    async approveOrder({ orderId, challengeToken }, approval) {
      const { challenge, account, rememberComputer, ...proofOptions } = approval
      const proving = { ...proofDefaults, ...given(proofOptions) }
      const textFor = async (signer: SigningAccount): Promise<string> =>
        (await readChallenge({ orderId, challengeToken }, signer, proving.signal)).message
      const proof = await proveWithWallet(
        (signer) => (signer === undefined || signer === account ? challenge.message : textFor(signer)),
        proving,
        account,
      )
      const request = { orderId, challengeToken, proof, ...given({ rememberComputer }) }
      return await again((call) => service.approveOrder(request, call), proving.signal)
    },
    rejectOrder: ({ orderId, challengeToken }, { signal } = {}) =>
      again((call) => service.rejectOrder({ orderId, challengeToken }, call), signal),
    handOverOrder: ({ orderId, challengeToken }, { signal } = {}) =>
      again((call) => service.handOverOrder({ orderId, challengeToken }, call), signal),
    redeemHandOver: (ticket, { signal, claimKey = newClaimKey() } = {}) =>
      again((call) => service.redeemHandOver({ ticket, claimKey }, call), signal),
  }
}

function claimOf(claim: string | URL | Claim): Claim {
  return typeof claim === 'string' || claim instanceof URL ? parseClaimUrl(claim) : claim
}

/** A new secret for `claimKey`: 256 random bits in base64url. */
export function newClaimKey(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)))
}

/**
 * Reads a claim URL. The order's identifier is the last segment of its path, the claim token is `token` in its
 * fragment. Throws CLAIM_URL_INVALID for any other text. A service with another `claimUrlTemplate` needs its own
 * reader.
 */
export function parseClaimUrl(url: string | URL): Claim {
  const text = String(url)
  // No base: a claim URL is read from a QR code, where a relative one means nothing.
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  const orderId = /\/([A-Za-z0-9_-]{1,64})\/?$/.exec(parsed?.pathname ?? '')?.[1]
  const claimToken = new URLSearchParams(parsed?.hash.slice(1)).get('token')
  if (orderId === undefined || claimToken === null || !/^[A-Za-z0-9_.~-]{1,512}$/.test(claimToken)) {
    // The message leaves the text out, because it may hold a token.
    throw new CountersignClientError('CLAIM_URL_INVALID', 'This is not the claim URL of an order')
  }
  return { orderId, claimToken }
}
