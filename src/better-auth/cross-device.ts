import type { GenericEndpointContext } from '@better-auth/core'
import type { DescMethodUnary } from '@bufbuild/protobuf'
import { createAuthEndpoint } from 'better-auth/api'
import { OrderService } from '../../gen/countersign/v1/order_service_pb.ts'
import type {
  ClaimedOrder,
  DesktopOrder,
  FinalizedOrder,
  OrderChallenge,
  OrderState,
  PhoneOrder,
  StartedOrder,
  StartOrderOptions,
} from '../client/types.ts'
import type { CountersignOptions } from '../config.ts'
import { storedOrders } from '../order-records.ts'
import { Orders } from '../orders.ts'
import type { RequestContext } from '../request.ts'
import { type OrderHandlers, orderHandlers } from '../rpc/order-service.ts'
import type { Proof } from '../sign-in.ts'
import type { Store } from '../store/store.ts'
import { Watchers } from '../store/watchers.ts'
import { answer, answering, bodyOf } from './call.ts'
import { EndpointHost } from './endpoint-host.ts'
import { eventsResponse } from './events.ts'
import { errorCodes } from './failures.ts'
import { DatabaseOrders } from './orders.ts'
import { rateLimit } from './rate-limit.ts'
import { originsOf, ownOrigin, requestOf } from './request.ts'
import { orderSchema, walletSchema } from './schema.ts'
import { appNameOf, keyringOf, type WalletOptions, walletSettings } from './settings.ts'

/** Options of {@link crossDevice}. */
export interface CrossDeviceOptions
  extends WalletOptions,
    Pick<
      CountersignOptions,
      'trustedOrigins' | 'orderModelName' | 'orderTtlSeconds' | 'confirmationCode' | 'claimUrlTemplate'
    > {
  /**
   * Keeps the orders in a store of Countersign (see `openStore`) instead of Better Auth's database: changes then reach
   * watchers on other instances at once. It stays the caller's to close.
   */
  store?: Store
}

type ClaimBody = { readonly orderId: string; readonly claimToken: string; readonly claimKey?: string }
type ApproveBody = PhoneOrder & { readonly proof: Proof; readonly confirmationCode?: string }
type OrderQuery = Readonly<Record<string, string | undefined>> | undefined

/**
 * Better Auth's plugin for cross-device orders: a phone approves with its wallet what a desktop started. The endpoints are
 * those of the REST interface, under `/cross-device`; a finalized login order is a session of Better Auth.
 *
 * Orders may be started from Better Auth's trusted origins and from `trustedOrigins` here. Orders are kept in the model
 * `orderModelName` of Better Auth's database. Throws a `TypeError` when an option does not fit.
 */
export function crossDevice({ store, ...options }: CrossDeviceOptions = {}) {
  const settings = walletSettings(options)
  const watchers = new Watchers()
  const sweeping = { at: 0 }
  const stored = store === undefined ? undefined : storedOrders(store)

  const handlersOf = (ctx: GenericEndpointContext, request: RequestContext): OrderHandlers => {
    const { context } = ctx
    const { orderTtlSeconds, confirmationCode, claimUrlTemplate, adapters, verifier } = settings
    return orderHandlers(
      new Orders({
        settings: {
          appName: appNameOf(settings, context),
          orderTtlSeconds,
          confirmationCode,
          claimUrlTemplate,
          publicOrigin: () => ownOrigin(context),
        },
        records: stored ?? new DatabaseOrders(context, watchers, sweeping),
        keyring: keyringOf(context),
        adapters,
        verifier,
        origins: originsOf(context, request, settings),
        host: new EndpointHost(ctx, settings),
        // Better Auth does not tell its plugins when its server stops.
        shutdown: new AbortController().signal,
      }),
    )
  }

  /** Answers an endpoint by the RPC of this name. */
  const served = async <Answer>(
    ctx: GenericEndpointContext,
    name: Exclude<keyof OrderHandlers, 'watchOrder'>,
    input: unknown,
  ): Promise<Answer> => {
    const request = requestOf(ctx)
    const handlers = handlersOf(ctx, request)
    // The name pairs an RPC with its handler; TypeScript cannot see it.
    return await answer(ctx, request, OrderService.method[name] as DescMethodUnary, handlers[name] as never, input)
  }

  return {
    id: 'cross-device' as const,
    schema: { ...walletSchema(settings), ...orderSchema(settings.orderModelName) },
    $ERROR_CODES: errorCodes,
    options: { store, ...options },
    rateLimit: [
      rateLimit('start order', (path) => path === '/cross-device/start'),
      rateLimit('order', (path) => path.startsWith('/cross-device/')),
    ],
    endpoints: {
      startOrder: createAuthEndpoint(
        '/cross-device/start',
        { method: 'POST', body: bodyOf<StartOrderOptions>(), metadata: { noStore: true } },
        async (ctx): Promise<StartedOrder> => await served(ctx, 'startOrder', ctx.body),
      ),
      claimOrder: createAuthEndpoint(
        '/cross-device/claim',
        { method: 'POST', body: bodyOf<ClaimBody>(), metadata: { noStore: true } },
        async (ctx): Promise<ClaimedOrder> => await served(ctx, 'claimOrder', ctx.body),
      ),
      getOrderChallenge: createAuthEndpoint(
        '/cross-device/challenge',
        { method: 'GET', query: bodyOf<OrderQuery>(), metadata: { noStore: true } },
        async (ctx): Promise<OrderChallenge> =>
          await served(ctx, 'getOrderChallenge', orderQuery(ctx, 'challengeToken')),
      ),
      approveOrder: createAuthEndpoint(
        '/cross-device/approve',
        { method: 'POST', body: bodyOf<ApproveBody>(), metadata: { noStore: true } },
        async (ctx): Promise<OrderState> => await served(ctx, 'approveOrder', ctx.body),
      ),
      rejectOrder: createAuthEndpoint(
        '/cross-device/reject',
        { method: 'POST', body: bodyOf<PhoneOrder>(), metadata: { noStore: true } },
        async (ctx): Promise<OrderState> => await served(ctx, 'rejectOrder', ctx.body),
      ),
      cancelOrder: createAuthEndpoint(
        '/cross-device/cancel',
        { method: 'POST', body: bodyOf<DesktopOrder>(), metadata: { noStore: true } },
        async (ctx): Promise<OrderState> => await served(ctx, 'cancelOrder', ctx.body),
      ),
      finalizeOrder: createAuthEndpoint(
        '/cross-device/finalize',
        { method: 'POST', body: bodyOf<DesktopOrder>(), metadata: { noStore: true } },
        async (ctx): Promise<FinalizedOrder> => await served(ctx, 'finalizeOrder', ctx.body),
      ),
      watchOrder: createAuthEndpoint(
        '/cross-device/events',
        { method: 'GET', query: bodyOf<OrderQuery>() },
        async (ctx): Promise<Response> =>
          await answering(ctx, async () => {
            const request = requestOf(ctx)
            const { watchOrder } = handlersOf(ctx, request)
            return await eventsResponse(ctx, request, watchOrder, orderQuery(ctx, 'desktopToken'))
          }),
      ),
    },
  }
}

/** Names an order for a GET: its id from the query; the token as the bearer or, where a client cannot set headers, from there. */
function orderQuery(ctx: GenericEndpointContext, tokenField: string): Record<string, unknown> {
  const query: Record<string, unknown> = ctx.query ?? {}
  const authorization = (ctx.request?.headers ?? ctx.headers)?.get('authorization') ?? ''
  const bearer = /^Bearer +(\S+)\s*$/i.exec(authorization)?.[1]
  // The desktop's token makes sessions, and never stands in an address.
  const inQuery = tokenField === 'challengeToken' ? query[tokenField] : undefined
  return { orderId: query.orderId ?? '', [tokenField]: bearer ?? inQuery ?? '' }
}
