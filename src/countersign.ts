import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectRouter } from '@connectrpc/connect'
import { AccessTokens } from './access-token/access-tokens.ts'
import { deriveSigningKeys, type SigningKeys } from './access-token/signing-keys.ts'
import { Ceiling, ceilingsFor } from './ceiling.ts'
import { type CountersignOptions, resolveSettings, type Settings } from './config.ts'
import { guardedHost } from './host/guarded-host.ts'
import type { Host, Session } from './host/host.ts'
import { Sessions } from './host/sessions.ts'
import { StandaloneHost, type WalletUser } from './host/standalone.ts'
import { createApp } from './http/app.ts'
import type { FetchHandler } from './http/fetch-exchange.ts'
import type { RequestHandler } from './http/node-request.ts'
import { continuePath } from './http/page-headers.ts'
import { OnePortServer } from './http/port/port.ts'
import { LiveRecords } from './live-records.ts'
import { createLogger, type Logger } from './log.ts'
import { KnownComputers } from './order/known-computers.ts'
import { Orders } from './order/orders.ts'
import { storedOrders } from './order/records.ts'
import { isLoopbackHost } from './origin.ts'
import { OriginPolicy, type OriginRules } from './origin-policy.ts'
import { RateLimiter } from './rate-limit.ts'
import { withAdmission } from './rpc/admission.ts'
import { createApi } from './rpc/api.ts'
import { callLog } from './rpc/call-log.ts'
import { registerMethods } from './rpc/connect.ts'
import { healthMethods } from './rpc/health.ts'
import { Invoker } from './rpc/invoke.ts'
import { isBidi, type Method } from './rpc/methods.ts'
import { reflectionMethods } from './rpc/reflection.ts'
import { Nonces, withKeysBeginning } from './sign-in/nonce.ts'
import { SignIn } from './sign-in/sign-in.ts'
import { UserWallets } from './sign-in/user-wallets.ts'
import { keyBeginning, withKeyPrefix } from './store/key-prefix.ts'
import { openStore } from './store/open.ts'
import type { RedisTls } from './store/redis/tls.ts'
import type { Store } from './store/store.ts'
import { oneAtATime } from './timing/one-at-a-time.ts'
import { Keyring } from './token.ts'
import { checkAdapters, sharedKeysWarning, walletAdapters } from './wallet/adapters.ts'
import { chooseVerifier } from './wallet/native.ts'
import type { WalletIdentity } from './wallet/proof.ts'
import { Prover } from './wallet/prover.ts'

/** A running service, with or without a port of its own. */
export interface Countersign {
  /** Starts to listen. Resolves with the port. */
  listen(): Promise<number>
  /**
   * The address that people reach the service by: the option publicUrl, or `http://localhost:` and the listening port.
   */
  readonly publicUrl: string
  /** What is in use, as text for people: the store, the adapters and the Ed25519 verifier. Contains no secret. */
  readonly description: { readonly store: string; readonly adapters: readonly string[]; readonly verifier: string }
  /**
   * Serves a request of a node:http or node:http2 server of your own, before or behind body parsers. It is middleware of Express and
   * of what is built like it: `next` is called for what is not the service's own. Its own are the RPCs, `basePath` and below, the
   * pages except for the demo at `/`, and the health checks, at these paths and not below a mount path. Set publicUrl if you use it.
   */
  readonly handler: RequestHandler
  /**
   * Serves a `Request` of the Fetch standard, streams included. The same paths are its own; for any other it answers 404. Pass the
   * client's address as `remoteAddress`: without it, or a proxy that `trustProxy` counts, no rate limit counts. Set publicUrl if you
   * use it.
   */
  readonly fetch: FetchHandler
  /** Registers the services with a Connect router of your own. */
  readonly routes: (router: ConnectRouter) => void
  /** The live session of a token that a user's client presented, or `undefined`. Does not extend the session. */
  introspect(token: string): Promise<Session | undefined>
  /**
   * The user that the service keeps under this id; `undefined` if there is none, or if `resolveLogin` or `sessionHost`
   * is set.
   */
  findUser(userId: string): Promise<WalletUser | undefined>
  /**
   * Prepares a stop without failing anyone, for `drainSeconds`: readiness is off and watchers are told to reconnect, while
   * every call is still served. Connections are let go: HTTP/1.1 answers carry `connection: close`, HTTP/2 clients get a
   * GOAWAY. Resolves when the time is over, or `close` is called; the service serves until then. The command calls it on
   * SIGTERM. `close` alone does not wait for it.
   */
  drain(): Promise<void>
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
  return await create(options, undefined)
}

/**
 * As {@link createCountersign}, for `--lan`: if publicUrl is not set, it is `http://{host}:` and the listening port; and the
 * loopback names on that port are trusted beside it, whatever it is, unless trustedOrigins is set. `host` is one of this
 * machine's as URLs spell it; `undefined` only if publicUrl is set.
 */
export async function createOnLan(options: CountersignOptions, host: string | undefined): Promise<Countersign> {
  return await create(options, { host })
}

/** How the service is reached in the local network, with `--lan`. */
interface Lan {
  readonly host: string | undefined
}

async function create(options: CountersignOptions, lan: Lan | undefined): Promise<Countersign> {
  const settings = resolveSettings(options)
  const log = settings.logger ?? createLogger(process.stderr, 'warn')
  const adapters = walletAdapters(settings.adapters, settings)
  await checkAdapters(adapters, settings, (text, fields) => log.warn(text, fields))
  const verifier = chooseVerifier(settings.verifier)
  const given = settings.store
  const { keyPrefix } = settings
  const store =
    typeof given === 'string'
      ? await openStore(given, { log, keyPrefix, redisTls: redisTlsOf(settings) })
      : withKeyPrefix(given, keyPrefix)
  const closeStore = async (): Promise<void> => {
    if (typeof given === 'string') await store.close()
  }
  try {
    const keyring = new Keyring(settings.secret ?? (await keptSecrets(store)))
    if (!settings.enforceOrigin) {
      log.warn(
        'enforceOrigin is off: any web page can act for its visitors on this service; use this in local tests only',
      )
    }
    warnOfNonceStore(settings, store, log)
    const warning = sharedKeysWarning(adapters.map(({ id }) => id))
    if (warning !== undefined) log.warn(warning)
    const signingKeys = settings.accessTokenAudiences && (await deriveSigningKeys(keyring))
    return new Service({ settings, lan, log, store, closeStore, keyring, signingKeys, adapters, verifier })
  } catch (error) {
    await closeStore()
    throw error
  }
}

function redisTlsOf({ redisTlsCa, redisTlsCert, redisTlsKey, redisTlsServerName }: Settings): RedisTls {
  return { ca: redisTlsCa, cert: redisTlsCert, key: redisTlsKey, serverName: redisTlsServerName }
}

/** What a {@link Service} is made of. */
interface ServiceParts {
  readonly settings: Settings
  readonly lan: Lan | undefined
  readonly log: Logger
  readonly store: Store
  readonly closeStore: () => Promise<void>
  readonly keyring: Keyring
  /** Absent if no access tokens are issued. */
  readonly signingKeys: SigningKeys | undefined
  readonly adapters: ReturnType<typeof walletAdapters>
  readonly verifier: ReturnType<typeof chooseVerifier>
}

class Service implements Countersign {
  readonly description: Countersign['description']
  readonly handler: RequestHandler
  readonly fetch: FetchHandler
  readonly routes: (router: ConnectRouter) => void
  readonly #settings: Settings
  readonly #lan: Lan | undefined
  readonly #closeStore: () => Promise<void>
  readonly #host: Host
  /** The built-in host, which is in use unless `sessionHost` is set. */
  readonly #standalone: StandaloneHost
  readonly #origins: OriginPolicy
  readonly #server: OnePortServer
  /** Aborts when the service begins to stop: it drains, or closes without that. */
  readonly #shutdown = new AbortController()
  readonly #closing = new AbortController()
  #port: number

  constructor({ settings, lan, log, store, closeStore, keyring, signingKeys, adapters, verifier }: ServiceParts) {
    this.#settings = settings
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
      { ttlSeconds: settings.sessionTtlSeconds, absoluteTtlSeconds: settings.sessionAbsoluteTtlSeconds },
      store,
      keyring,
    )
    const secureCookie = (): boolean => this.publicUrl.startsWith('https:')
    const computers = new KnownComputers(store)
    const forgetComputers = (wallet: WalletIdentity): Promise<void> => computers.forgetOthers(wallet, undefined)
    this.#standalone = new StandaloneHost({ ...settings, secureCookie }, store, sessions, origins, forgetComputers)
    this.#host = settings.sessionHost === undefined ? this.#standalone : guardedHost(settings.sessionHost)
    const ceilings = ceilingsFor(settings)
    const nonces = new Nonces(
      { appName: settings.appName, ttlSeconds: settings.nonceTtlSeconds },
      store,
      settings.nonceStore && withKeysBeginning(keyBeginning(settings.keyPrefix), settings.nonceStore),
      new LiveRecords(new Ceiling('maxNonces', ceilings, log)),
    )
    const prover = new Prover(adapters, verifier)
    const signIn = new SignIn(settings.appName, nonces, prover, origins, this.#host)
    const keepsUsers = settings.resolveLogin === undefined && settings.sessionHost === undefined
    const { appName } = settings
    const wallets = keepsUsers
      ? new UserWallets({ appName, nonces, prover, origins, host: this.#standalone })
      : undefined
    const orders = new Orders({
      settings: {
        ...settings,
        publicOrigin: () => this.publicUrl,
        handOverUrl: (ticket) => `${this.publicUrl}${continuePath}/${ticket}`,
      },
      records: storedOrders(store),
      keyring,
      prover,
      origins,
      host: this.#host,
      computers,
      live: new LiveRecords(new Ceiling('maxOrders', ceilings, log)),
      shutdown: this.#shutdown.signal,
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
    const api = createApi({ signIn, orders, host: this.#host, computers, wallets, accessTokens })
    const reflection = settings.reflection ? reflectionMethods(api.map(({ desc }) => desc.parent)) : []
    const admitted = withAdmission([...api, ...reflection], ceilings, log)
    const methods = admitted.filter((method): method is Method => !isBidi(method))
    const observe = callLog(log)
    const invoker = new Invoker(settings.rateLimit ? new RateLimiter() : undefined, observe)
    // However many ask, the store is asked once at a time.
    const ready = oneAtATime(() => store.ping())
    const health = { services: servicesOf(methods), ready, shutdown: this.#shutdown.signal }
    this.routes = (router) => registerMethods(router, methods, invoker)
    const app = createApp({
      settings,
      methods: [...admitted, ...healthMethods(health)],
      invoker,
      observe,
      origins,
      peekSession:
        settings.sessionHost === undefined
          ? (request, reads) => this.#standalone.peekSession(request, reads)
          : undefined,
      keySet: signingKeys?.keySet,
      ready,
      shutdownSignal: this.#shutdown.signal,
      log,
    })
    this.handler = app.handler
    this.fetch = app.fetch
    this.#server = new OnePortServer(app.serve, {
      takeStream: app.takeStream,
      ceilings,
      trustedProxies: settings.trustProxy,
      log,
    })
  }

  get publicUrl(): string {
    // Without the port if it is 80, as browsers write it.
    return this.#settings.publicUrl ?? new URL(`http://${this.#lan?.host ?? 'localhost'}:${this.#port}`).origin
  }

  async listen(): Promise<number> {
    const { port } = await this.#server.listen(this.#settings.port, this.#settings.host)
    this.#port = port
    this.#origins.replaceRules(this.#originRules())
    return port
  }

  #originRules(): OriginRules {
    const { enforceOrigin, trustedOrigins } = this.#settings
    const trustsLoopback = this.#lan !== undefined || isLoopback(this.publicUrl)
    return {
      enforce: enforceOrigin,
      own: this.publicUrl,
      trusted: trustedOrigins ?? [this.publicUrl, ...(trustsLoopback ? loopbackOrigins(this.#port) : [])],
    }
  }

  async introspect(token: string): Promise<Session | undefined> {
    return await this.#host.introspect(token)
  }

  async findUser(userId: string): Promise<WalletUser | undefined> {
    return await this.#standalone.findUser(userId)
  }

  async drain(): Promise<void> {
    this.#shutdown.abort()
    this.#server.drain()
    await sleep(this.#settings.drainSeconds * 1000, undefined, { signal: this.#closing.signal }).catch(() => {})
  }

  async close(graceMs = 10_000): Promise<void> {
    this.#shutdown.abort()
    this.#closing.abort()
    await this.#server.close(graceMs)
    await this.#closeStore()
  }
}

/** Says loudly if nonces are single-use in one instance only. The contract of a nonce store allows that. */
function warnOfNonceStore({ nonceStore }: Settings, store: Store, log: Logger): void {
  if (nonceStore === undefined || nonceStore.take !== undefined || store.shared === true) return
  log.warn(
    `nonceStore has no take, and the store (${store.description}) is not shared: with more than one instance, each of them accepts a nonce once; run a single instance, give nonceStore an atomic take, or use a shared store such as Redis (COUNTERSIGN_STORE)`,
  )
}

/**
 * The secret that the store keeps, made at the first start. A shared store keeps none: whoever can read it could sign
 * tokens.
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

function loopbackOrigins(port: number): string[] {
  const suffix = port === 80 ? '' : `:${port}`
  return ['localhost', '127.0.0.1', '[::1]'].map((name) => `http://${name}${suffix}`)
}
