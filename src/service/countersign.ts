import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectRouter } from '@connectrpc/connect'
import { createLogger, type Logger } from '../base/log.ts'
import { Keyring } from '../base/token.ts'
import { liveSigningKeys } from '../core/access-tokens.ts'
import type { CredentialForm, Session } from '../core/users/host.ts'
import { Membership, type People } from '../core/users/people.ts'
import type { WalletUser } from '../core/users/user-records.ts'
import { checkAdapters, readWalletName, walletAdapters } from '../core/wallet/adapters.ts'
import { chooseVerifier } from '../core/wallet/native.ts'
import { chooseRecovery } from '../core/wallet/webassembly.ts'
import type { RequestHandler } from '../http/exchange.ts'
import type { FetchHandler } from '../http/fetch.ts'
import { MetricsServer } from '../http/metrics-server.ts'
import { loadPageFiles } from '../http/page-files.ts'
import type { KeyFiles } from '../http/port/tls.ts'
import { Webhook } from '../observe/audit/webhook.ts'
import { hookSink, logSink } from '../observe/call-log.ts'
import type { Metrics } from '../observe/metrics/metrics.ts'
import { createIssuer, sessionEnds } from '../oidc/lazy-issuer.ts'
import { observedStore, tracedStore } from '../store/map-store.ts'
import { type Lan, ServiceAddress } from './address.ts'
import { type CountersignOptions, collectsMetrics, resolveSettings, type Settings } from './config.ts'
import { requireSecretOfCopy } from './copy-mark.ts'
import { makeDomain, type ServiceDomain } from './domain.ts'
import { LiveSecrets, type ReplaceableOptions } from './live-secrets.ts'
import { type IssuerPart, type Served, serve } from './serve.ts'
import { openServiceStore } from './service-store.ts'
import {
  keptSecrets,
  loadTracing,
  openKeyFiles,
  openToAnyone,
  peopleOf,
  requireIssuer,
  requirePeople,
  warnOfSettings,
  webhookTarget,
} from './start-checks.ts'

/** Time in ms that a stop waits for audit events to be stored, and for logouts that are on their way. */
const deliveryGraceMs = 5_000

/** What a reload replaced. */
export type ReloadedOption = keyof ReplaceableOptions | 'tls' | 'people' | 'oidc.clients'

/** A running service, with or without a port of its own. */
export interface Countersign {
  /** Starts to listen, also on metrics.port if that is set. Resolves with the service's own port. */
  listen(): Promise<number>
  /**
   * The address that people reach the service by: the option publicUrl, or `http://localhost:` (with tls.cert
   * `https://localhost:`) and the listening port.
   */
  readonly publicUrl: string
  /**
   * What is in use, as text for people: the store, the adapters, the Ed25519 verifier and, with the adapter ethereum,
   * what recovers secp256k1 keys; the number of clients of the OpenID Connect issuer, if that is on; and what is open
   * to anyone. Contains no secret.
   */
  readonly description: {
    readonly store: string
    readonly adapters: readonly string[]
    readonly verifier: string
    readonly recovery?: string | undefined
    readonly clients?: number | undefined
    /** What anyone with a wallet gets into; absent if that is nothing. */
    readonly open?: string | undefined
  }
  /**
   * Serves a request of a node:http or node:http2 server of your own, before or behind body parsers. It is middleware
   * of Express and of what is built like it: `next` is called for what is not the service's own. Its own are the RPCs,
   * `basePath` and below, the pages except for the demo at `/`, and the health checks, at these paths and not below a
   * mount path. Set publicUrl if you use it.
   */
  readonly handler: RequestHandler
  /**
   * Serves a `Request` of the Fetch standard, streams included. The same paths are its own; for any other it answers
   * 404. Pass the client's address as `remoteAddress`: without it, or a proxy that `trustProxy` counts, no rate limit
   * counts. Set publicUrl if you use it.
   */
  readonly fetch: FetchHandler
  /** Registers the services with a Connect router of your own. */
  readonly routes: (router: ConnectRouter) => void
  /**
   * The live session of a token that a user's client presented, or `undefined`. Does not extend the session. `form` is
   * `cookie` for the value of the session's cookie, which counts as that only. With the user's groups, by the people
   * file.
   */
  introspect(
    token: string,
    form?: 'token' | 'cookie',
  ): Promise<(Session & { readonly groups: readonly string[] }) | undefined>
  /**
   * The user that the service keeps under this id; `undefined` if there is none, or if `resolveLogin` or `sessionHost`
   * is set.
   */
  findUser(userId: string): Promise<WalletUser | undefined>
  /**
   * The metrics in Prometheus' text format, version 0.0.4, for an application that serves them itself. Rejects if the
   * option `metrics` is not set. They show how much the service is used, and by what kinds of wallets.
   */
  metrics(): Promise<string>
  /**
   * Prepares a stop without failing anyone, for `drainSeconds`: readiness is off and watchers are asked to reconnect,
   * while every call is still served. HTTP/1.1 answers carry `connection: close`; HTTP/2 clients get their GOAWAY from
   * `close`. Resolves when the time is over, or `close` is called; the service serves until then. The command calls it
   * on SIGTERM. `close` alone does not wait for it.
   */
  drain(): Promise<void>
  /**
   * Reads tls.cert, tls.key, people and oidc.clients again, and uses other secrets or start keys from now on if they
   * are given: all of it, or nothing. Sessions whose secret is no longer among the secrets end, so a new one is added
   * to the list first. Resolves with the options that changed. Rejects with a `TypeError` of one line if something does
   * not fit; then all stays as it was. The command calls it on SIGHUP.
   */
  reload(options?: ReplaceableOptions): Promise<readonly ReloadedOption[]>
  /**
   * Stops listening, waits at most `graceMs` milliseconds (default 10,000) for requests in progress, and closes the
   * store unless it was passed in opened.
   */
  close(graceMs?: number): Promise<void>
}

/**
 * Makes a service. Rejects with a `TypeError` if an option does not fit, and with a `StoreOpenError` that says
 * what to change if the store cannot be opened.
 */
export async function createCountersign(options: CountersignOptions = {}): Promise<Countersign> {
  return await createService(options, undefined)
}

/**
 * As {@link createCountersign}, for the command. With `lan`, for `--lan`: if publicUrl is not set, it is
 * `http://{host}:` (with tls.cert `https://{host}:`) and the listening port; and the loopback names on that port are
 * trusted too, unless trustedOrigins is set. `lan.host` is one of this machine's as URLs spell it; `undefined`
 * only if publicUrl is set.
 */
export async function createService(options: CountersignOptions, lan: Lan | undefined): Promise<Countersign> {
  const settings = resolveSettings(options)
  requirePeople(settings)
  requireIssuer(settings)
  const log = settings.logger ?? createLogger(process.stderr, 'warn', settings.logFormat)
  const target = webhookTarget(settings)
  const tracing = await loadTracing(settings, log)
  const recovery = chooseRecovery(settings.adapters)
  const adapters = walletAdapters(settings.adapters, { ...settings, recovery }, tracing)
  await checkAdapters(adapters, settings, (text, fields) => log.warn(text, fields))
  const verifier = chooseVerifier(settings.verifier)
  const keyFiles = await openKeyFiles(settings, log)
  const pageFiles = await loadPageFiles()
  const { store: opened, close: closeStore } = await openServiceStore(settings, log)
  try {
    const membership = new Membership(await peopleOf(settings, adapters), settings.admit === 'people')
    const keyring = new Keyring(settings.secret ?? (await keptSecrets(opened)))
    await requireSecretOfCopy(opened, keyring)
    const adapterIds = adapters.map(({ id }) => id)
    const address = new ServiceAddress(settings, lan)
    warnOfSettings(settings, { address, store: opened, adapters, log })
    const signingKeys =
      settings.accessTokens.audiences && (await liveSigningKeys(keyring, settings.accessTokens.algorithm))
    const secrets = new LiveSecrets(settings, keyring)
    // Loaded on demand, because most services collect no metrics.
    const metrics = collectsMetrics(settings)
      ? new (await import('../observe/metrics/metrics.ts')).Metrics()
      : undefined
    const measured = metrics === undefined ? opened : observedStore(opened, metrics.observeStore)
    const store = tracing === undefined ? measured : tracedStore(measured, tracing)
    const webhook = target && new Webhook(target, { store: measured, log, tracing })
    const hook = settings.onAuditEvent
    const sinks = [logSink(log), hook && hookSink(hook, log), webhook?.sink, metrics?.observeAudit]
    const ends = { shutdown: new AbortController(), closing: new AbortController() }
    const domain = makeDomain(settings, store, {
      address,
      keyring,
      signingKeys,
      orderStartKeys: () => secrets.orderStartKeys,
      adapters,
      verifier,
      membership,
      sessionEnds: sessionEnds(store),
      auditSinks: sinks.filter((sink) => sink !== undefined),
      observeOrder: metrics?.observeOrder,
      tracing,
      shutdown: ends.shutdown.signal,
      log,
    })
    const issuerParts = {
      settings,
      publicUrl: () => address.publicUrl,
      store,
      keyring,
      host: domain.standalone,
      users: domain.users,
      audit: domain.audit,
      pageFiles,
      limiter: domain.limiter,
      live: domain.live.nonces,
      people: membership.people,
      readWallet: (text: string) => readWalletName(text, adapterIds),
      log,
    }
    const issuer: IssuerPart | undefined =
      settings.oidc.clients === undefined ? undefined : await createIssuer(issuerParts)
    const served = serve(domain, settings, {
      store,
      adapterIds,
      tls: keyFiles?.pair,
      signingKeys,
      issuer,
      pageFiles,
      hasDemo: address.isForTrying,
      metrics,
      tracing,
      shutdown: ends.shutdown.signal,
      log,
    })
    const clients = issuer?.clientCount
    const open = openToAnyone(settings, issuer?.openClientCount)
    const description = {
      store: store.description,
      adapters: adapterIds,
      verifier: verifier.kind,
      recovery: recovery?.kind,
      clients,
      open,
    }
    return new Service({
      settings,
      description,
      address,
      domain,
      membership,
      readPeople: () => peopleOf(settings, adapters),
      served,
      secrets,
      issuer,
      keyFiles,
      webhook,
      metrics,
      ends,
      closeStore,
      log,
    })
  } catch (error) {
    await closeStore()
    throw error
  }
}

/** What a {@link Service} is made of. */
interface ServiceParts {
  readonly settings: Settings
  readonly description: Countersign['description']
  readonly address: ServiceAddress
  readonly domain: ServiceDomain
  readonly membership: Membership
  /** Reads the people file again. */
  readonly readPeople: () => Promise<People>
  readonly served: Served
  readonly secrets: LiveSecrets
  /** Absent without OpenID Connect. */
  readonly issuer: IssuerPart | undefined
  /** Absent if the port takes no TLS. */
  readonly keyFiles: KeyFiles | undefined
  /** Absent if there is no address for audit events. */
  readonly webhook: Webhook | undefined
  /** Absent if none are collected. */
  readonly metrics: Metrics | undefined
  /** Of a stop: `shutdown` aborts when it begins, with or without a drain; `closing` when the service closes. */
  readonly ends: Readonly<Record<'shutdown' | 'closing', AbortController>>
  readonly closeStore: () => Promise<void>
  readonly log: Logger
}

/** The life of a service: listening, reload, stop. */
class Service implements Countersign {
  readonly description: Countersign['description']
  readonly handler: RequestHandler
  readonly fetch: FetchHandler
  readonly routes: Countersign['routes']
  readonly #parts: ServiceParts
  readonly #metricsServer = new MetricsServer(() => this.metrics())

  constructor(parts: ServiceParts) {
    this.#parts = parts
    this.description = parts.description
    this.handler = parts.served.handler
    this.fetch = parts.served.fetch
    this.routes = parts.served.routes
  }

  get publicUrl(): string {
    return this.#parts.address.publicUrl
  }

  async listen(): Promise<number> {
    const { settings, address, domain, served, keyFiles, log } = this.#parts
    const { port: metricsPort, host: metricsHost } = settings.metrics
    if (metricsPort !== undefined) {
      const taken = await this.#metricsServer.listen(metricsPort, metricsHost)
      log.info('metrics are served', { host: metricsHost, port: taken, path: '/metrics' })
    }
    try {
      address.port = (await served.server.listen(settings.port, settings.host)).port
    } catch (error) {
      await this.#metricsServer.close()
      throw error
    }
    domain.origins.replaceRules(address.originRules)
    keyFiles?.watch((pair) => served.server.replaceTls(pair))
    return address.port
  }

  async introspect(token: string, form: CredentialForm = 'token') {
    const session = await this.#parts.domain.host.introspect(token, form)
    return session && { ...session, groups: this.#parts.membership.groupsOf(session) }
  }

  async findUser(userId: string): Promise<WalletUser | undefined> {
    return await this.#parts.domain.storedUsers.find(userId)
  }

  async metrics(): Promise<string> {
    const { metrics } = this.#parts
    if (metrics === undefined) throw new Error('no metrics are collected; set the option metrics to true')
    return await metrics.text()
  }

  async drain(): Promise<void> {
    const { settings, served, ends } = this.#parts
    ends.shutdown.abort()
    served.server.drain()
    await sleep(settings.drainSeconds * 1000, undefined, { signal: ends.closing.signal }).catch(() => {})
  }

  async reload(options: ReplaceableOptions = {}): Promise<readonly ReloadedOption[]> {
    const { secrets, keyFiles, issuer, membership, readPeople } = this.#parts
    const people = await readPeople()
    const replaceClients = await issuer?.prepare(people)
    const hasNewPair = await keyFiles?.reload()
    // After all that can fail for another reason: it seals the issuer's RSA key with the new secret.
    const replaceSecrets = await secrets.prepare(options)
    const hasNewPeople = people.textHash !== membership.people.textHash
    membership.replace(people)
    const hasNewClients = replaceClients?.()
    // Last: what was read of the files has keys of the secrets before.
    const changed = replaceSecrets()
    return [
      ...(hasNewPair === true ? (['tls'] as const) : []),
      ...changed,
      ...(hasNewPeople ? (['people'] as const) : []),
      ...(hasNewClients === true ? (['oidc.clients'] as const) : []),
    ]
  }

  async close(graceMs = 10_000): Promise<void> {
    const { ends, keyFiles, served, webhook, issuer, closeStore } = this.#parts
    ends.shutdown.abort()
    ends.closing.abort()
    keyFiles?.stop()
    await served.server.close(graceMs)
    await Promise.all([webhook?.close(deliveryGraceMs), issuer?.close(deliveryGraceMs)])
    // Last, so that requests in progress are still counted in a scrape.
    await this.#metricsServer.close()
    await closeStore()
  }
}
