import type { AuthContext, GenericEndpointContext } from '@better-auth/core'
import type { JsonObject } from '@bufbuild/protobuf'
import { HIDE_METADATA, type StandardSchemaV1 } from 'better-auth'
import { createAuthEndpoint } from 'better-auth/api'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { noAudit } from '../base/audit.ts'
import { silentLogger } from '../base/log.ts'
import type { OrderApi } from '../browser/client/api.ts'
import { KnownComputers } from '../core/order/known-computers.ts'
import { Orders } from '../core/order/orders.ts'
import { type OrderRecords, storedOrders } from '../core/order/records.ts'
import { OrderWatches } from '../core/order/watch.ts'
import type { Session } from '../core/users/host.ts'
import type { Proof } from '../core/wallet/wallet.ts'
import { continuePath } from '../http/page-files.ts'
import { readPageTexts } from '../http/page-texts.ts'
import { optionsHeaders, spokenLanguages } from '../http/public-documents.ts'
import { type OrderTokenField, orderInput } from '../http/rest/json.ts'
import { methodOf, type ServiceHandlers, type UnaryMethod } from '../rpc/methods.ts'
import { orderHandlers } from '../rpc/order-service.ts'
import { sessionHandlers } from '../rpc/session-service.ts'
import { confirmationCodeAt, confirmationCodeLine } from '../service/address.ts'
import type { CountersignOptions, PageOptions } from '../service/config.ts'
import { guardedStore, requireUsable } from '../service/copy-mark.ts'
import { CountersignError } from '../shared/errors.ts'
import type { DesktopOrder, PhoneOrder, StartOrderOptions } from '../shared/orders.ts'
import { isLoopbackHost } from '../shared/origin.ts'
import { defaultClaimUrlTemplate } from '../shared/page-names.ts'
import {
  computerPaths,
  desktopOrderPaths,
  phoneOrderPaths,
  type ServiceOptions,
  serviceOptionsPath,
} from '../shared/rest-paths.ts'
import type { KnownComputer } from '../shared/session.ts'
import { withKeyPrefix } from '../store/map-store.ts'
import type { Store } from '../store/store.ts'
import { answer, bodyOf, eventsResponse } from './call.ts'
import { EndpointHost } from './endpoint-host.ts'
import { apiError, errorCodes } from './failures.ts'
import { DatabaseOrders } from './order-records.ts'
import {
  ApprovalPage,
  approvalPath,
  assetPath,
  continuePagePath,
  ownClaimUrlTemplate,
  ownHandOverUrl,
  type PageLook,
} from './pages.ts'
import { limitBodies, originsOf, ownOrigin, requestOf, tellsNetworks } from './request.ts'
import { orderSchema, walletSchema } from './schema.ts'
import { revocationHooks, takenBackHooks, unlinkHook } from './session-hooks.ts'
import {
  appNameOf,
  checkAtStart,
  keyringOf,
  rateLimit,
  unlimited,
  type WalletOptions,
  type WalletSettings,
  walletSettings,
} from './settings.ts'
import { walletsOfUser } from './users.ts'

/** Refuses a name that no database takes as it is for a model. */
function requireModelName(name: string): void {
  if (/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name)) return
  throw new TypeError(`orderModelName must be a name of letters, digits and underscores, not ${JSON.stringify(name)}`)
}

/** Options of {@link crossDevice}. */
export interface CrossDeviceOptions
  extends WalletOptions,
    Pick<
      CountersignOptions,
      | 'trustedOrigins'
      | 'orderTtlSeconds'
      | 'confirmationCode'
      | 'knownComputers'
      | 'proximity'
      | 'orderStartKeys'
      | 'keyPrefix'
    > {
  /** Name of the model in which Better Auth's database keeps orders. Default crossDeviceOrder. */
  orderModelName?: string
  /**
   * Template of the claim URL that the QR code shows, if an approval page of your own is there; as the service's
   * option. Default: the page that the plugin serves under Better Auth's base path or, if `pages` is false,
   * `{origin}/c/{orderId}#token={claimToken}`.
   */
  claimUrlTemplate?: string
  /**
   * Whether the plugin serves its approval page, at `/cross-device/claim/{orderId}` under Better Auth's base path; or
   * the options of that page. Default true.
   */
  pages?: boolean | Pick<PageOptions, 'logoUrl' | 'logoHasName' | 'accentColor' | 'textsFile'>
  /**
   * Opened store of Countersign (see `openStore`) that keeps the orders and the known computers. With it, changes reach
   * watchers on other instances at once. Its keys begin with `keyPrefix`, unless that is countersign. The plugin does
   * not close it. Default: the orders are in Better Auth's database, and no computer is known.
   */
  store?: Store
}

/** Orders, and the watches of them. */
interface WatchedOrders {
  readonly records: OrderRecords
  readonly watches: OrderWatches
}

function watched(records: OrderRecords): WatchedOrders {
  // Better Auth's plugins get no notice when its server stops.
  return { records, watches: new OrderWatches(records, new AbortController().signal) }
}

type ClaimBody = { readonly orderId: string; readonly claimToken: string; readonly claimKey?: string }
type ApproveBody = PhoneOrder & { readonly proof: Proof; readonly rememberComputer?: boolean }
type FinalizeBody = DesktopOrder & { readonly returnCode?: string; readonly computerProof?: string }
type RedeemBody = { readonly ticket: string; readonly claimKey?: string }
type OrderHandlers = ServiceHandlers<typeof OrderService>
type OrderCallName = Exclude<keyof OrderApi, 'watchOrder'>
type OrderAnswer<Name extends OrderCallName> = Awaited<ReturnType<OrderApi[Name]>>
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
export function crossDevice({ store, orderModelName = 'crossDeviceOrder', ...options }: CrossDeviceOptions = {}) {
  const settings = walletSettings(options)
  requireModelName(orderModelName)
  const given = store && withKeyPrefix(store, settings.keyPrefix)
  // Better Auth's own log has the calls that fail.
  const ownStore = given && guardedStore(given, silentLogger)
  const stored = ownStore && watched(storedOrders(ownStore))
  /** Orders in databases of Better Auth. Made once for each, because all requests share the watches. */
  const inDatabases = new WeakMap<AuthContext['adapter'], WatchedOrders>()
  const computers = ownStore === undefined ? undefined : new KnownComputers(ownStore)
  const pages = settings.pages.served ? new ApprovalPage(pageLookOf(settings)) : undefined
  // Until Better Auth has started. After that, as its configured address says: a request's could be a forged one.
  let confirmationCode = settings.confirmationCode ?? 'return'

  const ordersIn = ({ adapter }: AuthContext): WatchedOrders => {
    if (stored !== undefined) return stored
    const orders = inDatabases.get(adapter) ?? watched(new DatabaseOrders(adapter))
    inDatabases.set(adapter, orders)
    return orders
  }

  const handlersOf = (ctx: GenericEndpointContext): OrderHandlers => {
    const { context } = ctx
    const ownPage = pages !== undefined && options.claimUrlTemplate === undefined
    return orderHandlers(
      new Orders({
        settings: {
          ...settings,
          confirmationCode,
          appName: appNameOf(settings, context),
          claimUrlTemplate: ownPage ? ownClaimUrlTemplate(ctx) : (options.claimUrlTemplate ?? defaultClaimUrlTemplate),
          publicOrigin: () => ownOrigin(context),
          handOverUrl: (ticket) =>
            pages === undefined ? `${ownOrigin(context)}${continuePath}/${ticket}` : ownHandOverUrl(ctx, ticket),
        },
        ...ordersIn(context),
        keyring: keyringOf(context),
        prover: settings.prover,
        origins: originsOf(context, settings),
        host: new EndpointHost(ctx, settings),
        computers,
        audit: noAudit,
      }),
    )
  }

  /** Answers an endpoint by the RPC of this name. */
  const served = async <Name extends OrderCallName>(
    ctx: GenericEndpointContext,
    name: Name,
    input: unknown,
  ): Promise<OrderAnswer<Name>> => {
    // TypeScript does not see that each of the names is that of an RPC that answers once.
    return await answer<OrderAnswer<Name>>(ctx, methodOf(OrderService, handlersOf(ctx), name) as UnaryMethod, input)
  }

  const post = <Path extends string, Name extends OrderCallName, Body extends StandardSchemaV1>(
    path: Path,
    name: Name,
    body: Body,
  ) =>
    createAuthEndpoint(path, { method: 'POST', body, metadata: { noStore: true } }, (ctx) =>
      served(ctx, name, ctx.body),
    )

  /** An order is named in the query, its token in the header or the query. */
  const get = <Path extends string, Name extends OrderCallName>(path: Path, name: Name, token: OrderTokenField) =>
    createAuthEndpoint(path, { method: 'GET', query: bodyOf<OrderQuery>(), metadata: { noStore: true } }, (ctx) =>
      served(ctx, name, orderQuery(ctx, token)),
    )

  const page = <Path extends string>(path: Path) =>
    createAuthEndpoint(
      path,
      { method: ['GET', 'HEAD'], metadata: HIDE_METADATA },
      async (ctx): Promise<Response> => servedPages(pages).page(ctx, appNameOf(settings, ctx.context)),
    )

  /** What the element asks for. */
  const offered: Omit<ServiceOptions, 'appName'> = {
    adapters: [...settings.adapterIds],
    demoWallet: false,
    languages: spokenLanguages(settings.pages),
    parts: [
      ...(settings.pages.served ? (['pages'] as const) : []),
      ...(settings.orderStartKeys === undefined ? (['open-orders'] as const) : []),
    ],
  }

  /** Answers an endpoint for known computers by the RPC of this name. */
  const servedComputers = async <Answer>(
    ctx: GenericEndpointContext,
    name: 'listKnownComputers' | 'forgetKnownComputer',
    input: unknown,
  ): Promise<Answer> => {
    const walletsOf = (session: Session) => walletsOfUser(ctx.context, settings, session)
    const handlers = sessionHandlers(new EndpointHost(ctx, settings), { computers, walletsOf })
    return await answer(ctx, methodOf(SessionService, handlers, name), input)
  }

  return {
    id: 'cross-device' as const,
    /**
     * Called by Better Auth when it starts. Rejects with a `TypeError` if an option does not fit Better Auth's own, or
     * if a check of the adapters says so, and with a `StoreOpenError` if `admin copy` has marked the store.
     */
    init: async (context: AuthContext) => {
      requireNetworks(settings, context)
      if (given !== undefined) {
        // To reject is final: a store that does not answer is left to the calls, which look for the mark themselves.
        await requireUsable(given).catch((error) => {
          if (!(error instanceof CountersignError)) throw error
        })
      }
      const publicUrl = ownOrigin(context)
      const place = { publicUrl, isLocal: isLoopbackHost(URL.parse(publicUrl)?.hostname ?? '') }
      confirmationCode = confirmationCodeAt(settings.confirmationCode, place)
      const codes = confirmationCodeLine(settings.confirmationCode, place)
      if (codes !== undefined) context.logger.warn(codes)
      await checkAtStart(settings, context)
      return {
        context: { rateLimit: withoutTickets(context.rateLimit) },
        ...(computers === undefined
          ? {}
          : { options: { databaseHooks: { account: { delete: { before: unlinkHook(computers, settings) } } } } }),
      }
    },
    hooks: { before: computers === undefined ? [] : revocationHooks(computers, settings), after: takenBackHooks },
    schema: { ...walletSchema(settings), ...orderSchema(orderModelName) },
    $ERROR_CODES: errorCodes,
    options: { store, orderModelName, ...options },
    onRequest: limitBodies(Object.values({ ...desktopOrderPaths, ...phoneOrderPaths, ...computerPaths })),
    rateLimit: [
      // A backend starts the orders of all its users from one address.
      settings.orderStartKeys === undefined
        ? rateLimit('start-order', (path) => path === desktopOrderPaths.start)
        : unlimited((path) => path === desktopOrderPaths.start),
      rateLimit('order', (path) => path.startsWith('/cross-device/')),
      rateLimit('session', (path) => [computerPaths.list, computerPaths.forget, serviceOptionsPath].includes(path)),
    ],
    endpoints: {
      startOrder: post(desktopOrderPaths.start, 'startOrder', bodyOf<StartOrderOptions>()),
      previewOrder: get(phoneOrderPaths.preview, 'previewOrder', 'claimToken'),
      claimOrder: post(phoneOrderPaths.claim, 'claimOrder', bodyOf<ClaimBody>()),
      getOrderChallenge: get(phoneOrderPaths.challenge, 'getOrderChallenge', 'challengeToken'),
      approveOrder: post(phoneOrderPaths.approve, 'approveOrder', bodyOf<ApproveBody>()),
      rejectOrder: post(phoneOrderPaths.reject, 'rejectOrder', bodyOf<PhoneOrder>()),
      cancelOrder: post(desktopOrderPaths.cancel, 'cancelOrder', bodyOf<DesktopOrder>()),
      finalizeOrder: post(desktopOrderPaths.finalize, 'finalizeOrder', bodyOf<FinalizeBody>()),
      handOverOrder: post(phoneOrderPaths.handOver, 'handOverOrder', bodyOf<PhoneOrder>()),
      redeemHandOver: post(phoneOrderPaths.redeem, 'redeemHandOver', bodyOf<RedeemBody>()),
      listKnownComputers: createAuthEndpoint(
        computerPaths.list,
        { method: 'GET', metadata: { noStore: true } },
        async (ctx): Promise<{ computers: KnownComputer[] }> => await servedComputers(ctx, 'listKnownComputers', {}),
      ),
      forgetKnownComputer: createAuthEndpoint(
        computerPaths.forget,
        { method: 'POST', body: bodyOf<{ readonly id: string }>(), metadata: { noStore: true } },
        async (ctx): Promise<{ ok: true }> => await servedComputers(ctx, 'forgetKnownComputer', ctx.body),
      ),
      serviceOptions: createAuthEndpoint(
        serviceOptionsPath,
        { method: 'GET', metadata: HIDE_METADATA },
        async (ctx): Promise<Response> => {
          const options: ServiceOptions = { appName: appNameOf(settings, ctx.context), ...offered }
          return Response.json(options, { headers: optionsHeaders })
        },
      ),
      approvalPage: page(approvalPath),
      continuePage: page(continuePagePath),
      approvalPageAsset: createAuthEndpoint(
        assetPath,
        { method: ['GET', 'HEAD'], metadata: HIDE_METADATA },
        async (ctx): Promise<Response> => servedPages(pages).asset(ctx, ctx.params.file),
      ),
      watchOrder: createAuthEndpoint(
        desktopOrderPaths.events,
        { method: 'GET', query: bodyOf<OrderQuery>() },
        async (ctx): Promise<Response> => {
          const watchOrder = methodOf(OrderService, handlersOf(ctx), 'watchOrder')
          const order = (): JsonObject => orderQuery(ctx, 'desktopToken')
          return await eventsResponse(ctx, { watchOrder, order, queried: queryOf(ctx) })
        },
      ),
    },
  }
}

/** Refuses to compare networks if Better Auth cannot know them. */
function requireNetworks({ proximity }: WalletSettings, { options }: AuthContext): void {
  if (proximity !== 'enforce' || tellsNetworks(options)) return
  throw new TypeError(
    "proximity enforce needs to know the clients' addresses: set advanced.ipAddress.ipAddressHeaders or " +
      'trustedProxies of Better Auth (and ipv6Subnet, if at all, to 56 or more)',
  )
}

/** Better Auth's limiter keeps the paths of requests. Those with tickets are left out. */
function withoutTickets(rateLimit: AuthContext['rateLimit']): AuthContext['rateLimit'] {
  return { ...rateLimit, customRules: { [`${continuePath}/*`]: false, ...rateLimit.customRules } }
}

function pageLookOf({ adapterIds, pages: { logoUrl, logoHasName, accentColor, textsFile } }: WalletSettings): PageLook {
  return { adapterIds: [...adapterIds], logoUrl, logoHasName, accentColor, texts: readPageTexts(textsFile) }
}

/** The page, unless it is off. */
function servedPages(pages: ApprovalPage | undefined): ApprovalPage {
  if (pages !== undefined) return pages
  throw apiError(new CountersignError('ROUTE_NOT_FOUND', 'This server does not serve the approval page'))
}

/** Names an order for a GET, as REST does. */
function orderQuery(ctx: GenericEndpointContext, tokenField: OrderTokenField): JsonObject {
  return orderInput(tokenField, requestOf(ctx), queryOf(ctx))
}

/** The parameters in a request's query, by their names. */
function queryOf(ctx: GenericEndpointContext): (name: string) => string | undefined {
  const query: Readonly<Record<string, unknown>> = ctx.query ?? {}
  return (name) => (typeof query[name] === 'string' ? query[name] : undefined)
}
