import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectRouter } from '@connectrpc/connect'
import { AuditTrail } from '../base/audit.ts'
import { createLogger, type Logger } from '../base/log.ts'
import { observers } from '../base/observer.ts'
import type { RequestContext } from '../base/request.ts'
import { oneAtATime } from '../base/timing/slots.ts'
import { Keyring } from '../base/token.ts'
import type { Tracing } from '../base/tracing.ts'
import { AccessTokens, deriveSigningKeys, LiveSigningKeys } from '../core/access-tokens.ts'
import { KnownComputers } from '../core/order/known-computers.ts'
import { Orders } from '../core/order/orders.ts'
import { storedOrders } from '../core/order/records.ts'
import { OriginPolicy, type OriginRules } from '../core/origin-policy.ts'
import { Nonces, withKeysBeginning } from '../core/sign-in/nonce.ts'
import { SignIn } from '../core/sign-in/sign-in.ts'
import { UserWallets } from '../core/sign-in/user-wallets.ts'
import { blockingHost, guardedHost, tracedLogin } from '../core/users/application.ts'
import type { CredentialForm, Host, Session } from '../core/users/host.ts'
import { Sessions } from '../core/users/sessions.ts'
import { StandaloneHost, type WalletUser } from '../core/users/standalone.ts'
import { checkAdapters, sharedKeysWarning, walletAdapters } from '../core/wallet/adapters.ts'
import { chooseVerifier } from '../core/wallet/native.ts'
import { Prover } from '../core/wallet/prover.ts'
import type { WalletIdentity } from '../core/wallet/wallet.ts'
import { createApp } from '../http/app.ts'
import type { RequestHandler } from '../http/exchange.ts'
import type { FetchHandler } from '../http/fetch.ts'
import { MetricsServer } from '../http/metrics-server.ts'
import { continuePath } from '../http/page-files.ts'
import { OnePortServer } from '../http/port/port.ts'
import { KeyFiles } from '../http/port/tls.ts'
import { Concurrency, ceilingsFor, LiveCount, OpenOrders } from '../limits/concurrency.ts'
import { defaultLimits } from '../limits/limits.ts'
import { RateLimiter } from '../limits/rate.ts'
import { hookSink, logSink } from '../observe/audit/sinks.ts'
import { Webhook, type WebhookTarget } from '../observe/audit/webhook.ts'
import { callLog, refusedCalls } from '../observe/call-log.ts'
import type { Metrics } from '../observe/metrics/metrics.ts'
import type { MetricValues } from '../observe/metrics/summed-metrics.ts'
import { loadTracing } from '../observe/tracing/load-tracing.ts'
import { withAdmission } from '../rpc/admission.ts'
import { createApi } from '../rpc/api.ts'
import { registerMethods } from '../rpc/connect.ts'
import { healthMethods } from '../rpc/health.ts'
import { Invoker } from '../rpc/invoke.ts'
import { isBidi, isUnary, type Method } from '../rpc/methods.ts'
import { reflectionMethods } from '../rpc/reflection.ts'
import { isLoopbackHost } from '../shared/origin.ts'
import { keyBeginning, observedStore, tracedStore } from '../store/map-store.ts'
import type { Store } from '../store/store.ts'
import { ungrouped } from './config/options.ts'
import { type CountersignOptions, collectsMetrics, type FlatOptions, resolveSettings, type Settings } from './config.ts'
import { issuerFor, type LiveIssuer } from './live-issuer.ts'
import { LiveSecrets, type ReplaceableOptions } from './live-secrets.ts'
import { openServiceStore } from './service-store.ts'

/** Time in ms that a stop waits for audit events to be stored. */
const webhookGraceMs = 5_000

/** What a reload replaced. */
export type ReloadedOption = keyof ReplaceableOptions | 'tls'

/** A running service, with or without a port of its own. */
export interface Countersign {
  /** Starts to listen, also on metrics.port if that is set. Resolves with the service's own port. */
  listen(): Promise<number>
  /**
   * The address that people reach the service by: the option publicUrl, or `http://localhost:` (with tls.cert
   * `https://localhost:`) and the listening port.
   */
  readonly publicUrl: string
  /** What is in use, as text for people: the store, the adapters and the Ed25519 verifier. Contains no secret. */
  readonly description: { readonly store: string; readonly adapters: readonly string[]; readonly verifier: string }
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
   * `cookie` for the value of the session's cookie, which counts as that only.
   */
  introspect(token: string, form?: 'token' | 'cookie'): Promise<Session | undefined>
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
   * Prepares a stop without failing anyone, for `drainSeconds`: readiness is off and watchers are told to reconnect,
   * while every call is still served. HTTP/1.1 answers carry `connection: close`; HTTP/2 clients get their GOAWAY from
   * `close`. Resolves when the time is over, or `close` is called; the service serves until then. The command calls it
   * on SIGTERM. `close` alone does not wait for it.
   */
  drain(): Promise<void>
  /**
   * Reads tls.cert and tls.key again, and goes by other secrets or start keys from now on if they are given: all of it,
   * or nothing. Sessions whose secret is no longer among the secrets end, so a new one is added to the list first.
   * Resolves with the options that changed. Rejects with a `TypeError` of one line if something does not fit; then all
   * stays as it was. The command calls it on SIGHUP.
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
  return await create(ungrouped(options), undefined)
}

/**
 * As {@link createCountersign}, for the command, with options without groups. With `lan`, for `--lan`: if publicUrl is
 * not set, it is `http://{host}:` (with tls.cert `https://{host}:`) and the listening port; and the loopback names on
 * that port are trusted beside it, unless trustedOrigins is set. `lan.host` is one of this machine's as URLs spell it;
 * `undefined` only if publicUrl is set.
 */
export async function createAlone(options: FlatOptions, lan: Lan | undefined): Promise<Countersign> {
  return await create(options, lan)
}

/** A service in one of several processes that serve a port together. */
export interface WorkerService extends Countersign {
  /**
   * Lets another process take its place, for `drainSeconds`: as `drain`, but it takes no further connections, and
   * readiness stays on, because the service goes on. Resolves when the time is over, or `close` is called.
   */
  handOver(): Promise<void>
  /** The metrics, for a sum over all workers; `undefined` if none are collected. */
  metricValues(): Promise<MetricValues | undefined>
}

/** As {@link createAlone}, for one worker of the command. */
export async function createWorker(
  { workers: _, ...options }: FlatOptions,
  lan: Lan | undefined,
): Promise<WorkerService> {
  return await create(options, lan)
}

/** How the service is reached in the local network, with `--lan`. */
interface Lan {
  readonly host: string | undefined
}

async function create(options: FlatOptions, lan: Lan | undefined): Promise<WorkerService> {
  const settings = resolveSettings(options)
  if (settings.workers !== 1) {
    throw new TypeError(
      `workers (COUNTERSIGN_WORKERS) must be 1 in code, not ${settings.workers}: only the command starts workers, because it knows what each has to run; start several processes of your own, with Redis`,
    )
  }
  const log = settings.logger ?? createLogger(process.stderr, 'warn', settings.logFormat)
  const webhook = webhookTarget(settings)
  const tracing = await loadTracing(settings.tracing, (text) => log.warn(text))
  const adapters = walletAdapters(settings.adapters, settings, tracing)
  await checkAdapters(adapters, settings, (text, fields) => log.warn(text, fields))
  const verifier = chooseVerifier(settings.verifier)
  const keyFiles = await openKeyFiles(settings, log)
  const { store, close: closeStore } = await openServiceStore(settings, log)
  try {
    const keyring = new Keyring(settings.secret ?? (await keptSecrets(store)))
    if (!settings.enforceOrigin) {
      log.warn(
        'enforceOrigin is off: any web page can act for its visitors on this service; use this in local tests only',
      )
    }
    warnOfOwnOrigin(settings, log)
    warnOfNonceStore(settings, store, log)
    const warning = sharedKeysWarning(adapters.map(({ id }) => id))
    if (warning !== undefined) log.warn(warning)
    const signingKeys = settings.accessTokenAudiences && new LiveSigningKeys(await deriveSigningKeys(keyring))
    const metrics = collectsMetrics(settings) ? await newMetrics() : undefined
    const service = new Service({
      settings,
      lan,
      log,
      store,
      closeStore,
      keyFiles,
      keyring,
      signingKeys,
      webhook,
      adapters,
      verifier,
      metrics,
      tracing,
    })
    await service.openIssuer()
    return service
  } catch (error) {
    await closeStore()
    throw error
  }
}

/** Loaded on demand, because most services collect no metrics. */
async function newMetrics(): Promise<Metrics> {
  const { Metrics } = await import('../observe/metrics/metrics.ts')
  return new Metrics()
}

/** What a {@link Service} is made of. */
interface ServiceParts {
  readonly settings: Settings
  readonly lan: Lan | undefined
  readonly log: Logger
  readonly store: Store
  readonly closeStore: () => Promise<void>
  /** Absent if the port takes no TLS. */
  readonly keyFiles: KeyFiles | undefined
  readonly keyring: Keyring
  /** Absent if no access tokens are issued. */
  readonly signingKeys: LiveSigningKeys | undefined
  /** Absent if no audit events are delivered. */
  readonly webhook: WebhookTarget | undefined
  readonly adapters: ReturnType<typeof walletAdapters>
  readonly verifier: ReturnType<typeof chooseVerifier>
  /** Absent if none are collected. */
  readonly metrics: Metrics | undefined
  /** Absent if no traces are made. */
  readonly tracing: Tracing | undefined
}

class Service implements WorkerService {
  readonly description: Countersign['description']
  readonly handler: RequestHandler
  readonly fetch: FetchHandler
  readonly routes: (router: ConnectRouter) => void
  readonly #settings: Settings
  readonly #lan: Lan | undefined
  readonly #closeStore: () => Promise<void>
  readonly #keyFiles: KeyFiles | undefined
  readonly #secrets: LiveSecrets
  readonly #issuer: LiveIssuer | undefined
  readonly #host: Host
  /** The built-in host, which is in use unless `sessionHost` is set. */
  readonly #standalone: StandaloneHost
  readonly #origins: OriginPolicy
  readonly #server: OnePortServer
  readonly #log: Logger
  readonly #metrics: Metrics | undefined
  readonly #metricsServer: MetricsServer
  /** Absent if there is no address for audit events. */
  readonly #webhook: Webhook | undefined
  /** Aborts when the service begins to stop: it drains, or closes without that. */
  readonly #shutdown = new AbortController()
  /** Aborts when this process asks watchers to go elsewhere: it begins to stop, or hands over. */
  readonly #leaving = new AbortController()
  readonly #closing = new AbortController()
  #port: number

  constructor(parts: ServiceParts) {
    const { settings, lan, log, closeStore, keyFiles, keyring, signingKeys, webhook, adapters, verifier } = parts
    const { metrics, tracing } = parts
    const measured = metrics === undefined ? parts.store : observedStore(parts.store, metrics.observeStore)
    const store = tracing === undefined ? measured : tracedStore(measured, tracing)
    this.#settings = settings
    this.#log = log
    this.#metrics = metrics
    this.#metricsServer = new MetricsServer(() => this.metrics())
    this.#keyFiles = keyFiles
    this.#secrets = new LiveSecrets(settings, keyring, signingKeys)
    const secrets = this.#secrets
    this.#lan = lan
    this.#closeStore = closeStore
    this.#port = settings.port
    this.description = {
      store: store.description,
      adapters: adapters.map(({ id }) => id),
      verifier: verifier.kind,
    }
    const origins = new OriginPolicy(this.#originRules())
    this.#origins = origins
    const sessions = new Sessions(
      {
        ttlSeconds: settings.sessionTtlSeconds,
        absoluteTtlSeconds: settings.sessionAbsoluteTtlSeconds,
        addressTtlSeconds: settings.addressTtlSeconds,
      },
      store,
      keyring,
    )
    const hook = settings.onAuditEvent
    this.#webhook = webhook && new Webhook(webhook, measured, log, tracing)
    const sinks = [logSink(log), hook && hookSink(hook, log), this.#webhook?.sink, metrics?.observeAudit]
    const audit = new AuditTrail(
      () => store.now(),
      sinks.filter((sink) => sink !== undefined),
    )
    const secureCookie = (): boolean => this.publicUrl.startsWith('https:')
    const computers = new KnownComputers(store, { addressTtlSeconds: settings.addressTtlSeconds })
    const forgetComputers = (wallet: WalletIdentity): Promise<void> => computers.forgetOthers(wallet, undefined)
    const resolveLogin =
      tracing && settings.resolveLogin ? tracedLogin(settings.resolveLogin, tracing) : settings.resolveLogin
    this.#standalone = new StandaloneHost({
      syncAddressToUser: settings.syncAddressToUser,
      syncPublicKeyToUser: settings.syncPublicKeyToUser,
      resolveLogin,
      secureCookie,
      store,
      sessions,
      origins,
      forgetComputers,
      audit,
    })
    const requireNotBlocked = (wallet: WalletIdentity): Promise<void> => this.#standalone.requireNotBlocked(wallet)
    this.#host =
      settings.sessionHost === undefined
        ? this.#standalone
        : blockingHost(guardedHost(settings.sessionHost, tracing), requireNotBlocked)
    const ceilings = ceilingsFor(settings)
    const { rateLimits = defaultLimits } = settings
    const limits = settings.rateLimit ? rateLimits : undefined
    const isForeign = (request: RequestContext): boolean => origins.isForeign(request)
    const limiter = limits && new RateLimiter(limits, { store, isForeign })
    const liveNonces = new LiveCount(new Concurrency('maxNonces', ceilings, log))
    const liveOrders = new LiveCount(new Concurrency('maxOrders', ceilings, log))
    const nonces = new Nonces({
      appName: settings.appName,
      ttlSeconds: settings.nonceTtlSeconds,
      store,
      custom: settings.nonceStore && withKeysBeginning(keyBeginning(settings.keyPrefix), settings.nonceStore),
      live: liveNonces,
    })
    const prover = new Prover(adapters, verifier, tracing)
    const signIn = new SignIn({ nonces, prover, origins, host: this.#host, audit, limiter })
    const keepsUsers = settings.resolveLogin === undefined && settings.sessionHost === undefined
    const wallets = keepsUsers ? new UserWallets({ nonces, prover, origins, host: this.#standalone, audit }) : undefined
    const orders = new Orders({
      settings: {
        ...settings,
        get orderStartKeys() {
          return secrets.orderStartKeys
        },
        publicOrigin: () => this.publicUrl,
        handOverUrl: (ticket) => `${this.publicUrl}${continuePath}/${ticket}`,
      },
      records: storedOrders(store, { observe: metrics?.observeOrder, open: limits && new OpenOrders(limits, store) }),
      keyring,
      prover,
      origins,
      host: this.#host,
      computers,
      requireNotBlocked,
      live: liveOrders,
      limiter,
      audit,
      shutdown: this.#leaving.signal,
    })
    const accessTokens =
      signingKeys &&
      new AccessTokens({
        audiences: settings.accessTokenAudiences ?? [],
        ttlSeconds: settings.accessTokenTtlSeconds,
        issuer: () => this.publicUrl,
        keys: signingKeys,
        store,
      })
    const api = createApi({ signIn, orders, host: this.#host, computers, wallets, accessTokens, audit })
    const reflection = settings.reflection ? reflectionMethods(api.map(({ desc }) => desc.parent)) : []
    const admitted = withAdmission([...api, ...reflection], ceilings, log, limits)
    const methods = admitted.methods.filter((method): method is Method => !isBidi(method))
    const observe = observers(callLog(log), refusedCalls(audit), metrics?.observeCall)
    const invoker = new Invoker(limiter, observe, tracing)
    // However many ask, the store is asked once at a time.
    const ready = oneAtATime(() => store.ping())
    const health = { services: servicesOf(methods), ready, shutdown: this.#shutdown.signal }
    this.routes = (router) => {
      if (settings.rateLimit) {
        log.warn(
          'countersign.routes does not know the address of its clients, so no rate limit counts; mount countersign.handler in its place, or limit requests in front',
        )
      }
      registerMethods(router, methods, invoker)
    }
    const served = [...admitted.methods, ...healthMethods(health)]
    const issuer = issuerFor(settings, {
      publicUrl: () => this.publicUrl,
      store,
      keyring,
      host: this.#standalone,
      async spend(request, lifeMs) {
        await limiter?.spend('sign-in', request)
        // An interaction takes as much of the store as a nonce.
        liveNonces.add(store.now() + lifeMs, store.now(), request.ip)
      },
      countWrong: (request) => limiter?.countWrongToken(request),
      log,
    })
    this.#issuer = issuer
    const keyHolder = {
      get keySet() {
        return { keys: [...(signingKeys?.keySet.keys ?? []), ...(issuer?.keys ?? [])] }
      },
    }
    const app = createApp({
      settings,
      methods: served,
      invoker,
      observe,
      origins,
      peekSession:
        settings.sessionHost === undefined
          ? (request, reads) => this.#standalone.peekSession(request, reads)
          : undefined,
      signingKeys: signingKeys === undefined && issuer === undefined ? undefined : keyHolder,
      issuer,
      ready,
      shutdownSignal: this.#shutdown.signal,
      log,
    })
    this.handler = app.handler
    this.fetch = app.fetch
    this.#server = new OnePortServer(app.port, {
      tls: keyFiles?.pair,
      ceilings,
      trustedProxies: settings.trustProxy,
      log,
    })
    metrics?.attach({
      methods: served.map((method) => ({ name: method.name, answersOnce: isUnary(method) })),
      adapters: this.description.adapters,
      ceilingUses: () => [
        ...this.#server.ceilingUses(),
        ...admitted.ceilingUses(),
        liveNonces.use(store.now()),
        liveOrders.use(store.now()),
      ],
      watchers: () => orders.watchers,
      isReady: () => this.#isReady(ready),
    })
  }

  /** Loads the OpenID Connect issuer, if there is one. */
  async openIssuer(): Promise<void> {
    await this.#issuer?.open()
  }

  get publicUrl(): string {
    // Without the port if it is the scheme's own, as browsers write it.
    const { publicUrl } = this.#settings
    return publicUrl ?? new URL(`${this.#scheme}://${this.#lan?.host ?? 'localhost'}:${this.#port}`).origin
  }

  /** What the port itself speaks. A proxy in front may speak another. */
  get #scheme(): 'http' | 'https' {
    return this.#keyFiles === undefined ? 'http' : 'https'
  }

  async listen(): Promise<number> {
    const { metricsPort, metricsHost } = this.#settings
    if (metricsPort !== undefined) {
      const taken = await this.#metricsServer.listen(metricsPort, metricsHost)
      this.#log.info('metrics are served', { host: metricsHost, port: taken, path: '/metrics' })
    }
    const port = await this.#listenForCallers()
    this.#port = port
    this.#origins.replaceRules(this.#originRules())
    this.#keyFiles?.watch((pair) => this.#server.replaceTls(pair))
    return port
  }

  async #listenForCallers(): Promise<number> {
    try {
      const { port } = await this.#server.listen(this.#settings.port, this.#settings.host)
      return port
    } catch (error) {
      await this.#metricsServer.close()
      throw error
    }
  }

  async #isReady(ready: () => Promise<void>): Promise<boolean> {
    if (this.#shutdown.signal.aborted) return false
    return await ready().then(
      () => true,
      () => false,
    )
  }

  #originRules(): OriginRules {
    const { enforceOrigin, trustedOrigins } = this.#settings
    const trustsLoopback = this.#lan !== undefined || isLoopback(this.publicUrl)
    return {
      enforce: enforceOrigin,
      own: this.publicUrl,
      trusted: trustedOrigins ?? [this.publicUrl, ...(trustsLoopback ? loopbackOrigins(this.#scheme, this.#port) : [])],
    }
  }

  async introspect(token: string, form: CredentialForm = 'token'): Promise<Session | undefined> {
    return await this.#host.introspect(token, form)
  }

  async findUser(userId: string): Promise<WalletUser | undefined> {
    return await this.#standalone.findUser(userId)
  }

  async metrics(): Promise<string> {
    if (this.#metrics === undefined) throw new Error('no metrics are collected; set the option metrics to true')
    return await this.#metrics.text()
  }

  async metricValues(): Promise<MetricValues | undefined> {
    return await this.#metrics?.values()
  }

  async drain(): Promise<void> {
    this.#shutdown.abort()
    await this.#leave()
  }

  async handOver(): Promise<void> {
    this.#server.stopListening()
    await this.#leave()
  }

  /** Asks everyone to leave, and serves for the time of a drain. */
  async #leave(): Promise<void> {
    this.#leaving.abort()
    this.#server.drain()
    await sleep(this.#settings.drainSeconds * 1000, undefined, { signal: this.#closing.signal }).catch(() => {})
  }

  async reload(options: ReplaceableOptions = {}): Promise<readonly ReloadedOption[]> {
    const replace = await this.#secrets.prepare(options)
    const hasNewPair = await this.#keyFiles?.reload()
    const replaceClients = await this.#issuer?.prepare()
    const changed = replace()
    replaceClients?.()
    // The keys of ES256 follow from the secrets.
    if (changed.includes('secret')) (await this.#issuer?.prepare())?.()
    return [...(hasNewPair === true ? (['tls'] as const) : []), ...changed]
  }

  async close(graceMs = 10_000): Promise<void> {
    this.#shutdown.abort()
    this.#leaving.abort()
    this.#closing.abort()
    this.#keyFiles?.stop()
    await this.#server.close(graceMs)
    await this.#webhook?.close(webhookGraceMs)
    // Last, so that requests in progress are still counted in a scrape.
    await this.#metricsServer.close()
    await this.#closeStore()
  }
}

/** Where audit events are delivered to, if they are. */
function webhookTarget({ webhookUrl, webhookSecret }: Settings): WebhookTarget | undefined {
  if (webhookUrl !== undefined && webhookSecret !== undefined) return { url: webhookUrl, secrets: webhookSecret }
  if (webhookUrl === undefined && webhookSecret === undefined) return undefined
  throw new TypeError(
    'webhook.url (COUNTERSIGN_WEBHOOK_URL) and webhook.secret (COUNTERSIGN_WEBHOOK_SECRET) need each other: set both, or neither',
  )
}

/** Without the service's own origin among them, its own pages can sign in no user, and approve no order's sign-in. */
function warnOfOwnOrigin({ enforceOrigin, publicUrl, trustedOrigins, pages }: Settings, log: Logger): void {
  if (!enforceOrigin || !pages || publicUrl === undefined || trustedOrigins === undefined) return
  if (typeof trustedOrigins !== 'function' && !trustedOrigins.includes(publicUrl)) {
    log.warn(
      "trustedOrigins (COUNTERSIGN_TRUSTED_ORIGINS) leaves out the service's own origin, so its pages cannot sign users in; add it, or turn off pages",
      { origin: publicUrl },
    )
  }
}

/** Warns if nonces are single-use in one instance only, which the contract of a nonce store allows. */
function warnOfNonceStore({ nonceStore }: Settings, store: Store, log: Logger): void {
  if (nonceStore === undefined || nonceStore.take !== undefined || store.shared === true) return
  log.warn(
    `nonceStore has no take, and the store (${store.description}) is not shared: with more than one instance, each of them accepts a nonce once; run a single instance, give nonceStore an atomic take, or use a shared store such as Redis (COUNTERSIGN_STORE)`,
  )
}

/**
 * The secret that the store keeps, made at the first start. A shared store keeps none: its readers could sign tokens.
 */
async function keptSecrets(store: Store): Promise<string[]> {
  // Not `if (store.shared)`: a store written in JavaScript may lack the property.
  if (store.shared !== false) {
    throw new TypeError(
      'secret (COUNTERSIGN_SECRET) must be set if the store is shared, as Redis is; every instance needs the same one, such as the output of: openssl rand -base64 32',
    )
  }
  const key = 'secret'
  await store.create(key, randomBytes(32).toString('base64url'), 'forever')
  const kept = await store.get(key)
  if (kept === undefined) throw new Error('the store does not return the secret that was just stored in it')
  return [kept.value]
}

function servicesOf(methods: readonly Method[]): string[] {
  return [...new Set(methods.map(({ desc }) => desc.parent.typeName))]
}

/** Whether an origin is one that only the machine itself can reach. */
function isLoopback(origin: string): boolean {
  return isLoopbackHost(new URL(origin).hostname)
}

function loopbackOrigins(scheme: 'http' | 'https', port: number): string[] {
  return ['localhost', '127.0.0.1', '[::1]'].map((name) => new URL(`${scheme}://${name}:${port}`).origin)
}

/** The files of the port's certificate and key, read; `undefined` if it takes no TLS. */
async function openKeyFiles({ tlsCert, tlsKey }: Settings, log: Logger): Promise<KeyFiles | undefined> {
  const cert = 'tls.cert (COUNTERSIGN_TLS_CERT)'
  const key = 'tls.key (COUNTERSIGN_TLS_KEY)'
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined) throw new TypeError(`${cert} and ${key} must be set together`)
  return await KeyFiles.open({ cert: { setting: cert, file: tlsCert }, key: { setting: key, file: tlsKey }, log })
}
