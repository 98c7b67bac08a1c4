import type { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import { OrderKind, type OrderService, OrderStatus } from '../../gen/server/countersign/v1/order_service_pb.ts'
import type { Orders } from '../core/order/orders.ts'
import type { Proof } from '../core/wallet/wallet.ts'
import { enumWords } from '../shared/enum-words.ts'
import { CountersignError } from '../shared/errors.ts'
import type * as shared from '../shared/orders.ts'
import { limited, type ServiceHandlers, sessionFields, setCookies, setSession, withTimes } from './methods.ts'
import { walletFields } from './wallet-service.ts'

const kinds = enumWords(OrderKind)
const statuses = enumWords(OrderStatus)

/** OrderService on the domain. */
export function orderHandlers(orders: Orders): ServiceHandlers<typeof OrderService> {
  return {
    startOrder: limited(
      ({ kind }) => orders.startLimitOf(kinds.wordOf(kind)),
      async ({ kind, ...input }, call) => {
        const { cookies = [], ...started } = await orders.start({ ...input, kind: kindOf(kind) }, call.request)
        setCookies(call, cookies)
        return { ...statusOf(withTimes(started, 'expiresAt')), kind }
      },
    ),
    previewOrder: limited('order', async (input, call) => {
      const preview = await orders.preview(input, call.request)
      return { ...withTimes(preview, 'expiresAt'), kind: kinds.numberOf(preview.kind) }
    }),
    claimOrder: limited('order', async (input, call) => done(await orders.claim(input, call.request))),
    getOrderChallenge: limited('order', async (input, call) => {
      const challenge = await orders.readChallenge(input, call.request)
      const shown = withTimes(challenge, 'issuedAt', 'expiresAt', 'finishBy')
      return { ...statusOf(shown), kind: kinds.numberOf(challenge.kind) }
    }),
    approveOrder: limited('order', async ({ proof, ...input }, call) => {
      // Required by the schema.
      const approved = await orders.approve({ ...input, proof: proof as Proof }, call.request)
      return done(withTimes(approved, 'finishBy'))
    }),
    rejectOrder: limited('order', async (input, call) => done(await orders.reject(input, call.request))),
    handOverOrder: limited('order', async (input, call) =>
      withTimes(await orders.handOver(input, call.request), 'expiresAt'),
    ),
    redeemHandOver: limited('order', async (input, call) => statusOf(await orders.redeem(input, call.request))),
    cancelOrder: limited('order', async (input, call) => done(await orders.cancel(input, call.request))),
    finalizeOrder: limited('order', async (input, call) => {
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
        case 'link':
          setCookies(call, finalized.cookies)
          return { ...common, wallet: walletFields(finalized.wallet) }
      }
    }),
    watchOrder: limited('order', async function* (input, call) {
      for await (const event of orders.watch(input, call.request, call.signal)) {
        yield { ...statusOf(withTimes(event, 'at', 'finishBy')), kind: kinds.numberOf(event.kind) }
      }
    }),
  }
}

/** InboxService on the domain. */
export function inboxHandlers(orders: Orders): ServiceHandlers<typeof InboxService> {
  return {
    // A page looks every few seconds. Without a live session, a look counts on the limit of sessions.
    listInbox: limited('unlimited', async (_input, call) => ({
      orders: (await orders.listInbox(call.request)).map((order) => withTimes(order, 'createdAt', 'expiresAt')),
    })),
    claimFromInbox: limited('order', async (input, call) => {
      const { cookies, ...claimed } = await orders.claimFromInbox(input, call.request)
      setCookies(call, cookies)
      return done(claimed)
    }),
  }
}

/** A state with its status as the protos have it. */
function statusOf<State extends { readonly status: shared.OrderStatus }>(
  state: State,
): Omit<State, 'status'> & { readonly status: OrderStatus } {
  return { ...state, status: statuses.numberOf(state.status) }
}

/** The state that a call has brought about, as the protos have it. */
function done<State extends { readonly status: shared.OrderStatus }>(state: State) {
  return { ok: true, ...statusOf(state) }
}

function kindOf(value: OrderKind): shared.OrderKind {
  const kind = kinds.wordOf(value)
  if (kind === undefined) throw new CountersignError('INVALID_REQUEST', `kind: must be ${kinds.words.join(' or ')}`)
  return kind
}
