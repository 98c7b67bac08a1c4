import type { ConnectRouter } from '@connectrpc/connect'
import { observers } from '../base/observer.ts'
import type { KeyPair } from '../base/pem.ts'
import { oneAtATime } from '../base/timing/slots.ts'
import type { People } from '../core/users/people.ts'
import { type App, createApp, type PartRoutes } from '../http/app.ts'
import type { PageFiles } from '../http/page-files.ts'
import { OnePortServer } from '../http/port/port.ts'
import { callLog, refusedCalls } from '../observe/call-log.ts'
import type { Metrics } from '../observe/metrics/metrics.ts'
import { createApi } from '../rpc/api.ts'
import { registerMethods } from '../rpc/connect.ts'
import { healthMethods } from '../rpc/health.ts'
import { Invoker, type PartLabel, withAdmission } from '../rpc/invoke.ts'
import { isUnary } from '../rpc/methods.ts'
import type { SessionApps } from '../rpc/session-service.ts'
import type { Store } from '../store/store.ts'
import { keepsUsers, offersDemoWallet, type Settings } from './config.ts'
import type { DomainParts, ServiceDomain } from './domain.ts'

/** The OpenID Connect issuer of a service: all that the service has of it. */
export interface IssuerPart extends PartRoutes, SessionApps {
  /** Labels of its routes in reports. */
  readonly labels: readonly PartLabel[]
  /** Public keys for the service's key set. */
  readonly keys: readonly object[]
  /** Number of clients. */
  readonly clientCount: number
  /** Number of clients that anyone who signs in may use. */
  readonly openClientCount: number
  /**
   * Reads the clients file and keys again. Resolves with what puts them in force, together with a people file, and
   * returns whether the clients have changed.
   */
  prepare(people: People): Promise<() => boolean>
  /** Stops sending logouts, and waits for those on their way, for at most `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** What the server needs in addition to domain and settings. */
export interface ServerParts extends Pick<DomainParts, 'tracing' | 'shutdown' | 'log'> {
  readonly store: Store
  /** Ids of the wallet adapters. */
  readonly adapterIds: readonly string[]
  /** Certificate and key of the port; absent if it takes no TLS. */
  readonly tls: KeyPair | undefined
  /** Public keys of access tokens; absent if none are issued. */
  readonly signingKeys: { readonly keySet: { readonly keys: readonly object[] } } | undefined
  /** Absent without OpenID Connect. */
  readonly issuer: IssuerPart | undefined
  /** The built pages; `undefined` if they have not been built. */
  readonly pageFiles: PageFiles | undefined
  /** Whether the demo is at `/`. */
  readonly hasDemo: boolean
  /** Absent if none are collected. */
  readonly metrics: Metrics | undefined
}

/** The entries of a service: its port, and what an application mounts. */
export interface Served extends Pick<App, 'handler' | 'fetch'> {
  readonly server: OnePortServer
  readonly routes: (router: ConnectRouter) => void
}

/** Makes the server of a domain. It does not listen yet. */
export function serve(domain: ServiceDomain, settings: Settings, parts: ServerParts): Served {
  const { store, adapterIds, signingKeys, issuer, metrics, tracing, shutdown, log } = parts
  const { audit, ceilings, limiter, limits, live, orders, origins, standalone } = domain
  const api = createApi({
    ...domain,
    apps: issuer,
    requireOwnOrigin: (request) => origins.requireOwn(request),
  })
  const admitted = withAdmission(api, { ceilings, limits, log })
  const observe = observers(callLog(log), refusedCalls(audit), metrics?.observeCall)
  const invoker = new Invoker(limiter, observe, tracing)
  // However many ask, the store is asked once at a time.
  const ready = oneAtATime(() => store.ping())
  const services = [...new Set(api.map(({ desc }) => desc.parent.typeName))]
  const served = [...admitted.methods, ...healthMethods({ services, ready, shutdown })]
  const keyHolder = {
    get keySet() {
      return { keys: [...(signingKeys?.keySet.keys ?? []), ...(issuer?.keys ?? [])] }
    },
  }
  const app = createApp({
    settings: {
      ...settings,
      adapterIds,
      demoWallet: offersDemoWallet(settings),
      keepsUsers: keepsUsers(settings),
      startsOrders: settings.orderStartKeys === undefined,
      hasDemo: parts.hasDemo,
      accessTokensIssued: signingKeys !== undefined,
      hasIssuer: issuer !== undefined,
    },
    methods: served,
    invoker,
    observe,
    origins,
    peekSession:
      settings.sessionHost === undefined
        ? async (request, reads) => {
            const session = await standalone.peekSession(request, reads)
            return { ...session, groups: domain.groupsOf(session), extend: () => standalone.extendSession(session) }
          }
        : undefined,
    signingKeys: signingKeys === undefined && issuer === undefined ? undefined : keyHolder,
    part: issuer,
    pageFiles: parts.pageFiles,
    ready,
    shutdownSignal: shutdown,
    log,
  })
  const server = new OnePortServer(app.port, {
    tls: parts.tls,
    ceilings,
    trustedProxies: settings.trustProxy,
    log,
  })
  metrics?.attach({
    methods: served.map((method) => ({ name: method.name, answersOnce: isUnary(method) })),
    partLabels: issuer?.labels ?? [],
    adapters: adapterIds,
    ceilingUses: () => [
      ...server.ceilingUses(),
      ...admitted.ceilingUses(),
      live.nonces.use(store.now()),
      live.orders.use(store.now()),
    ],
    watchers: () => orders.watchers,
    async isReady() {
      if (shutdown.aborted) return false
      await ready()
      return true
    },
  })
  const routes = (router: ConnectRouter): void => {
    if (limiter !== undefined) {
      log.warn(
        'countersign.routes does not know the address of its clients, so no rate limit counts; mount ' +
          'countersign.handler in its place, or limit requests in front',
      )
    }
    registerMethods(router, admitted.methods, invoker)
  }
  return { server, handler: app.handler, fetch: app.fetch, routes }
}
