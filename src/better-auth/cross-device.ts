import type { GenericEndpointContext } from '@better-auth/core'
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf'
import { HIDE_METADATA } from 'better-auth'
import { createAuthEndpoint } from 'better-auth/api'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
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
import { CountersignError } from '../errors.ts'
import { orderInput } from '../http/rest/input.ts'
import { Orders } from '../order/orders.ts'
import { storedOrders } from '../order/records.ts'
import { bearerToken } from '../request.ts'
import { orderPaths } from '../rest-paths.ts'
import type { ServiceHandlers } from '../rpc/methods.ts'
import { orderHandlers } from '../rpc/order-service.ts'
import { withKeyPrefix } from '../store/key-prefix.ts'
import type { Store } from '../store/store.ts'
import { Watchers } from '../store/watchers.ts'
import type { Proof } from '../wallet/proof.ts'
import { answer, bodyOf } from './call.ts'
import { EndpointHost } from './endpoint-host.ts'
import { eventsResponse } from './events.ts'
import { apiError, errorCodes } from './failures.ts'
import { DatabaseOrders } from './order-records.ts'
import { ApprovalPage, approvalPath, assetPath, ownClaimUrlTemplate } from './pages.ts'
import { rateLimit } from './rate-limit.ts'
import { originsOf, ownOrigin, requestOf } from './request.ts'
import { orderSchema, walletSchema } from './schema.ts'
import { appNameOf, keyringOf, type WalletOptions, walletSettings } from './settings.ts'

/** Options of {@link crossDevice}. */
export interface CrossDeviceOptions
  extends WalletOptions,
    Pick<
      CountersignOptions,
      'trustedOrigins' | 'orderModelName' | 'orderTtlSeconds' | 'confirmationCode' | 'keyPrefix'
    > {
  /**
   * Template of the claim URL that the QR code shows, if an approval page of your own is there; as the service's option.
   * Default: the page that the plugin serves under Better Auth's base path or, if `pages` is false,
   * `{origin}/cross-device/claim/{orderId}#token={claimToken}`.
   */
  claimUrlTemplate?: string
  /**
   * Whether the plugin serves its approval page, at `/cross-device/claim/{orderId}` under Better Auth's base path. Default
   * true.
   */
  pages?: boolean
  /**
   * Opened store of Countersign (see `openStore`) that keeps the orders. With it, changes reach watchers on other
   * instances at once. Its keys begin with `keyPrefix`, unless that is countersign. The plugin does not close it. Default:
   * Better Auth's database.
   */
  store?: Store
}

type ClaimBody = { readonly orderId: string; readonly claimToken: string; readonly claimKey?: string }
type ApproveBody = PhoneOrder & { readonly proof: Proof; readonly confirmationCode?: string }
type OrderHandlers = ServiceHandlers<typeof OrderService>
type OrderQuery = Readonly<Record<string, string | undefined>> | undefined

/**
 * Better Auth's plugin for cross-device orders: a phone approves with its wallet what a desktop started. The endpoints
 * are those of the REST interface, under `/cross-device`. Finalizing a login order makes a session of Better Auth.
 *
 * The claim URL leads to an approval page, which the plugin serves too, unless the option `pages` is false.
 *
 * Orders can be started from Better Auth's trusted origins and from `trustedOrigins`. They are kept in the model
 * `orderModelName` of Better Auth's database. Throws a `TypeError` if an option does not fit.
 */
export function crossDevice({ store, ...options }: CrossDeviceOptions = {}) {
  const settings = walletSettings(options)
  const watchers = new Watchers()
  const sweeping = { at: 0 }
  const stored = store === undefined ? undefined : storedOrders(withKeyPrefix(store, settings.keyPrefix))
  const pages = settings.pages ? new ApprovalPage() : undefined

  const handlersOf = (ctx: GenericEndpointContext): OrderHandlers => {
    const { context } = ctx
    const { orderTtlSeconds, confirmationCode, prover } = settings
    const ownPage = pages !== undefined && options.claimUrlTemplate === undefined
    return orderHandlers(
      new Orders({
        settings: {
          appName: appNameOf(settings, context),
          orderTtlSeconds,
          confirmationCode,
          claimUrlTemplate: ownPage ? ownClaimUrlTemplate(ctx) : settings.claimUrlTemplate,
          publicOrigin: () => ownOrigin(context),
        },
        records: stored ?? new DatabaseOrders(context, watchers, sweeping),
        keyring: keyringOf(context),
        prover,
        origins: originsOf(context, settings),
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
    const handlers = handlersOf(ctx)
    // The name pairs an RPC with its handler; TypeScript cannot see it.
    return await answer(ctx, request, OrderService.method[name] as DescMethodUnary, handlers[name] as never, input)
  }

  return {
    id: 'cross-device' as const,
    schema: { ...walletSchema(settings), ...orderSchema(settings.orderModelName) },
    $ERROR_CODES: errorCodes,
    options: { store, ...options },
    rateLimit: [
      rateLimit('start order', (path) => path === orderPaths.start),
      rateLimit('order', (path) => path.startsWith('/cross-device/')),
    ],
    endpoints: {
      startOrder: createAuthEndpoint(
        orderPaths.start,
        { method: 'POST', body: bodyOf<StartOrderOptions>(), metadata: { noStore: true } },
        async (ctx): Promise<StartedOrder> => await served(ctx, 'startOrder', ctx.body),
      ),
      claimOrder: createAuthEndpoint(
        orderPaths.claim,
        { method: 'POST', body: bodyOf<ClaimBody>(), metadata: { noStore: true } },
        async (ctx): Promise<ClaimedOrder> => await served(ctx, 'claimOrder', ctx.body),
      ),
      getOrderChallenge: createAuthEndpoint(
        orderPaths.challenge,
        { method: 'GET', query: bodyOf<OrderQuery>(), metadata: { noStore: true } },
        async (ctx): Promise<OrderChallenge> =>
          await served(ctx, 'getOrderChallenge', orderQuery(ctx, 'challengeToken')),
      ),
      approveOrder: createAuthEndpoint(
        orderPaths.approve,
        { method: 'POST', body: bodyOf<ApproveBody>(), metadata: { noStore: true } },
        async (ctx): Promise<OrderState> => await served(ctx, 'approveOrder', ctx.body),
      ),
      rejectOrder: createAuthEndpoint(
        orderPaths.reject,
        { method: 'POST', body: bodyOf<PhoneOrder>(), metadata: { noStore: true } },
        async (ctx): Promise<OrderState> => await served(ctx, 'rejectOrder', ctx.body),
      ),
      cancelOrder: createAuthEndpoint(
        orderPaths.cancel,
        { method: 'POST', body: bodyOf<DesktopOrder>(), metadata: { noStore: true } },
        async (ctx): Promise<OrderState> => await served(ctx, 'cancelOrder', ctx.body),
      ),
      finalizeOrder: createAuthEndpoint(
        orderPaths.finalize,
        { method: 'POST', body: bodyOf<DesktopOrder>(), metadata: { noStore: true } },
        async (ctx): Promise<FinalizedOrder> => await served(ctx, 'finalizeOrder', ctx.body),
      ),
      approvalPage: createAuthEndpoint(
        approvalPath,
        { method: ['GET', 'HEAD'], metadata: HIDE_METADATA },
        async (ctx): Promise<Response> => servedPages(pages).page(ctx, appNameOf(settings, ctx.context)),
      ),
      approvalPageAsset: createAuthEndpoint(
        assetPath,
        { method: ['GET', 'HEAD'], metadata: HIDE_METADATA },
        async (ctx): Promise<Response> => servedPages(pages).asset(ctx, ctx.params.file),
      ),
      watchOrder: createAuthEndpoint(
        orderPaths.events,
        { method: 'GET', query: bodyOf<OrderQuery>() },
        async (ctx): Promise<Response> => {
          const request = requestOf(ctx)
          const { watchOrder } = handlersOf(ctx)
          return await eventsResponse(ctx, request, watchOrder, orderQuery(ctx, 'desktopToken'))
        },
      ),
    },
  }
}

/** The page, unless it is off. */
function servedPages(pages: ApprovalPage | undefined): ApprovalPage {
  if (pages !== undefined) return pages
  throw apiError(new CountersignError('ROUTE_NOT_FOUND', 'This server does not serve the approval page'))
}

/** Names an order for a GET, as REST does. */
function orderQuery(ctx: GenericEndpointContext, tokenField: 'challengeToken' | 'desktopToken'): JsonObject {
  const query: Readonly<Record<string, unknown>> = ctx.query ?? {}
  const queried = (name: string): string | undefined => (typeof query[name] === 'string' ? query[name] : undefined)
  return orderInput(tokenField, bearerToken(requestOf(ctx)), queried)
}
