import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  OrderKind,
  type OrderService,
  OrderStatus,
  type WatchOrderResponseSchema,
} from '../../gen/server/countersign/v1/order_service_pb.ts'
import type { Orders } from '../core/order/orders.ts'
import type { WatchEvent } from '../core/order/watch.ts'
import type { Proof } from '../core/wallet/wallet.ts'
import { enumWords } from '../shared/enum-words.ts'
import { CountersignError } from '../shared/errors.ts'
import type * as shared from '../shared/orders.ts'
import { type ServiceHandlers, sessionFields, setSession } from './methods.ts'

const kinds = enumWords(OrderKind)
const statuses = enumWords(OrderStatus)

/** OrderService on the shared. */
export function orderHandlers(orders: Orders): ServiceHandlers<typeof OrderService> {
  return {
    startOrder: {
      // A backend starts the orders of all its users from one address.
      limit: orders.startTakesKey ? 'unlimited' : 'start-order',
      async handle({ kind, ...input }, call) {
        const started = await orders.start({ ...input, kind: kindOf(kind) }, call.request)
        return { ...statusOf(started), kind, expiresAt: BigInt(started.expiresAt) }
      },
    },
    previewOrder: {
      limit: 'order',
      async handle(input, call) {
        const { kind, expiresAt, ...preview } = await orders.preview(input, call.request)
        return { ...preview, kind: kinds.numberOf(kind), expiresAt: BigInt(expiresAt) }
      },
    },
    claimOrder: {
      limit: 'order',
      handle: async (input, call) => ({ ok: true, ...statusOf(await orders.claim(input, call.request)) }),
    },
    getOrderChallenge: {
      limit: 'order',
      async handle(input, call) {
        const { kind, issuedAt, expiresAt, finishBy, ...challenge } = await orders.readChallenge(input, call.request)
        return {
          ...statusOf(challenge),
          kind: kinds.numberOf(kind),
          issuedAt: BigInt(issuedAt),
          expiresAt: BigInt(expiresAt),
          ...finishByField(finishBy),
        }
      },
    },
    approveOrder: {
      limit: 'order',
      async handle({ proof, ...input }, call) {
        // Required by the schema.
        const approval = { ...input, proof: proof as Proof }
        const { finishBy, ...approved } = await orders.approve(approval, call.request)
        return { ok: true, ...statusOf(approved), ...finishByField(finishBy) }
      },
    },
    rejectOrder: {
      limit: 'order',
      handle: async (input, call) => ({ ok: true, ...statusOf(await orders.reject(input, call.request)) }),
    },
    handOverOrder: {
      limit: 'order',
      async handle(input, call) {
        const { expiresAt, ...handOver } = await orders.handOver(input, call.request)
        return { ...handOver, expiresAt: BigInt(expiresAt) }
      },
    },
    redeemHandOver: {
      limit: 'order',
      handle: async (input, call) => statusOf(await orders.redeem(input, call.request)),
    },
    cancelOrder: {
      limit: 'order',
      handle: async (input, call) => ({ ok: true, ...statusOf(await orders.cancel(input, call.request)) }),
    },
    finalizeOrder: {
      limit: 'order',
      async handle(input, call) {
        const finalized = await orders.finalize(input, call.request)
        const { orderId, kind, status, redirectTo } = finalized
        const common = { ok: true, orderId, status: statuses.numberOf(status), kind: kinds.numberOf(kind), redirectTo }
        switch (finalized.kind) {
          case 'sign':
            return { ...common, proofArtifact: finalized.proofArtifact }
          case 'login': {
            const { issued } = finalized
            setSession(call, issued)
            return { ...common, token: issued.token, session: sessionFields(issued.session, true) }
          }
        }
      },
    },
    watchOrder: {
      limit: 'order',
      async *handle(input, call) {
        for await (const event of orders.watch(input, call.request, call.signal)) yield eventFields(event)
      },
    },
  }
}

/** An event as the API shows it. */
function eventFields({ finishBy, ...event }: WatchEvent): MessageInitShape<typeof WatchOrderResponseSchema> {
  const { status, kind, at } = event
  const fields = { ...event, status: statuses.numberOf(status), kind: kinds.numberOf(kind), at: BigInt(at) }
  return { ...fields, ...finishByField(finishBy) }
}

function finishByField(finishBy: number | undefined): { readonly finishBy?: bigint } {
  return finishBy === undefined ? {} : { finishBy: BigInt(finishBy) }
}

function statusOf<State extends { readonly status: shared.OrderStatus }>(
  state: State,
): Omit<State, 'status'> & { readonly status: OrderStatus } {
  return { ...state, status: statuses.numberOf(state.status) }
}

function kindOf(value: OrderKind): shared.OrderKind {
  const kind = kinds.wordOf(value)
  if (kind === undefined) throw new CountersignError('INVALID_REQUEST', `kind: must be ${kinds.words.join(' or ')}`)
  return kind
}
