import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  type ApproveOrderRequest,
  type ApproveOrderResponseSchema,
  type CancelOrderRequest,
  type CancelOrderResponseSchema,
  type ClaimOrderRequest,
  type ClaimOrderResponseSchema,
  type FinalizeOrderRequest,
  type FinalizeOrderResponseSchema,
  type GetOrderChallengeRequest,
  type GetOrderChallengeResponseSchema,
  OrderKind,
  OrderStatus,
  type RejectOrderRequest,
  type RejectOrderResponseSchema,
  type StartOrderRequest,
  type StartOrderResponseSchema,
  type WatchOrderRequest,
  type WatchOrderResponseSchema,
} from '../../gen/countersign/v1/order_service_pb.ts'
import { CountersignError } from '../errors.ts'
import type * as domain from '../order.ts'
import type { OrderEvent } from '../order-watch.ts'
import type { Orders } from '../orders.ts'
import { type Call, setSession } from './call.ts'
import type { Reply } from './methods.ts'
import { sessionMessage } from './session-service.ts'

/** The RPCs of OrderService as plain functions: message and call in, message or messages out. */
export interface OrderHandlers {
  startOrder(message: StartOrderRequest, call: Call): Reply<typeof StartOrderResponseSchema>
  claimOrder(message: ClaimOrderRequest, call: Call): Reply<typeof ClaimOrderResponseSchema>
  getOrderChallenge(message: GetOrderChallengeRequest, call: Call): Reply<typeof GetOrderChallengeResponseSchema>
  approveOrder(message: ApproveOrderRequest, call: Call): Reply<typeof ApproveOrderResponseSchema>
  rejectOrder(message: RejectOrderRequest, call: Call): Reply<typeof RejectOrderResponseSchema>
  cancelOrder(message: CancelOrderRequest, call: Call): Reply<typeof CancelOrderResponseSchema>
  finalizeOrder(message: FinalizeOrderRequest, call: Call): Reply<typeof FinalizeOrderResponseSchema>
  watchOrder(
    message: WatchOrderRequest,
    call: Call,
  ): AsyncGenerator<MessageInitShape<typeof WatchOrderResponseSchema>, void, undefined>
}

const kinds: Record<domain.OrderKind, OrderKind> = { login: OrderKind.LOGIN, sign: OrderKind.SIGN }

const statuses: Record<domain.OrderStatus, OrderStatus> = {
  created: OrderStatus.CREATED,
  claimed: OrderStatus.CLAIMED,
  waiting_user: OrderStatus.WAITING_USER,
  approved: OrderStatus.APPROVED,
  finalized: OrderStatus.FINALIZED,
  rejected: OrderStatus.REJECTED,
  cancelled: OrderStatus.CANCELLED,
  expired: OrderStatus.EXPIRED,
}

/** OrderService over the domain. */
export function orderHandlers(orders: Orders): OrderHandlers {
  return {
    async startOrder({ kind, ...input }, call) {
      const started = await orders.start({ ...input, kind: kindOf(kind) }, call.request)
      return { ...statusOf(started), kind, expiresAt: BigInt(started.expiresAt) }
    },
    async claimOrder(message, call) {
      const claimed = await orders.claim(message, call.request)
      return { ok: true, ...statusOf(claimed) }
    },
    async getOrderChallenge(message, call) {
      const { kind, issuedAt, expiresAt, ...challenge } = await orders.challenge(message, call.request)
      return {
        ...statusOf(challenge),
        kind: kinds[kind],
        issuedAt: BigInt(issuedAt),
        expiresAt: BigInt(expiresAt),
      }
    },
    async approveOrder({ proof, ...message }, call) {
      if (proof === undefined) throw new CountersignError('INVALID_REQUEST', 'proof: value is required')
      return { ok: true, ...statusOf(await orders.approve({ ...message, proof }, call.request)) }
    },
    async rejectOrder(message, call) {
      return { ok: true, ...statusOf(await orders.reject(message, call.request)) }
    },
    async cancelOrder(message, call) {
      return { ok: true, ...statusOf(await orders.cancel(message, call.request)) }
    },
    async finalizeOrder(message, call) {
      const finalized = await orders.finalize(message, call.request)
      const { orderId, kind, status, redirectTo } = finalized
      const common = { ok: true, orderId, status: statuses[status], kind: kinds[kind], redirectTo }
      if (finalized.kind === 'sign') return { ...common, proofArtifact: finalized.proofArtifact }
      const { issued } = finalized
      setSession(call, issued)
      return { ...common, token: issued.token, session: sessionMessage(issued.session, true) }
    },
    async *watchOrder(message, call) {
      for await (const event of orders.watch(message, call.request, call.signal)) yield eventMessage(event)
    },
  }
}

/** An event as the API shows it. */
function eventMessage(event: OrderEvent): MessageInitShape<typeof WatchOrderResponseSchema> {
  return { ...event, status: statuses[event.status], kind: kinds[event.kind], at: BigInt(event.at) }
}

function statusOf<State extends { readonly status: domain.OrderStatus }>(
  state: State,
): Omit<State, 'status'> & { readonly status: OrderStatus } {
  return { ...state, status: statuses[state.status] }
}

function kindOf(kind: OrderKind): domain.OrderKind {
  if (kind === OrderKind.LOGIN) return 'login'
  if (kind === OrderKind.SIGN) return 'sign'
  throw new CountersignError('INVALID_REQUEST', 'kind: must be login or sign')
}
