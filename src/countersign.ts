import { randomBytes } from 'node:crypto'
import type { ConnectRouter } from '@connectrpc/connect'
import { type CountersignOptions, resolveSettings, type Settings } from './config.ts'
import type { Host, Session } from './host/host.ts'
import { StandaloneHost, type WalletUser } from './host/standalone.ts'
import { createRequestHandler, type RequestHandler } from './http/app.ts'
import { OnePortServer } from './http/one-port.ts'
import { createLogger, type Logger } from './log.ts'
import { Nonces } from './nonce.ts'
import { storedOrders } from './order-records.ts'
import { Orders } from './orders.ts'
import { OriginPolicy } from './origin.ts'
import { RateLimiter } from './rate-limit.ts'
import { createApi, registerApi } from './rpc/api.ts'
import { Sessions } from './session.ts'
import { type Prover, SignIn } from './sign-in.ts'
import { openStore } from './store/open.ts'
import type { Store } from './store/store.ts'
import { Keyring } from './token.ts'
import { proveIdentity, walletAdapters } from './wallet/adapters.ts'
import { chooseVerifier } from './wallet/native.ts'

/** A running service, with or without a port of its own. */
export interface Countersign {
  /** Starts to listen; resolves with the port. */
  listen(): Promise<number>
  /** The address that people reach the service by: the option publicUrl, or `http://localhost:` and the listening port. */
  readonly publicUrl: string
  /** What the start has to say for people: where state is kept, which adapters and verifier. No secrets. */
  readonly description: { readonly store: string; readonly adapters: readonly string[]; readonly verifier: string }
  /** Serves a request of a node:http or node:http2 server of your own; then set publicUrl. */
  readonly handler: RequestHandler
  /** Registers the services with a Connect router of your own. */
  readonly routes: (router: ConnectRouter) => void
  /** The live session of a token that a user's client presented, or `undefined`. Extends nothing. */
  introspect(token: string): Promise<Session | undefined>
  /** The user that the service keeps under this id; `undefined` when there is none, or `resolveLogin` or `sessionHost` decides. */
  findUser(userId: string): Promise<WalletUser | undefined>
  /** Stops listening, lets requests in flight finish for `graceMs` (default 10 s), and closes the store. */
  close(graceMs?: number): Promise<void>
}

/**
 * Makes a service. Rejects with a `TypeError` when an option does not fit, and with an error that says what to change when
 * the store cannot be opened.
 */
export async function createCountersign(options: CountersignOptions = {}): Promise<Countersign> {
  const settings = resolveSettings(options)
  const log = settings.logger ?? createLogger(process.stderr, 'warn')
  const adapters = walletAdapters(settings.adapters)
  const verifier = chooseVerifier(settings.verifier)
  const store = await openStore(settings.store)
  try {
    const keyring = new Keyring(settings.secrets ?? (await keptSecrets(settings, store)))
    return new Service(settings, log, store, keyring, adapters, verifier)
  } catch (error) {
    await store.close()
    throw error
  }
}

type Adapters = ReturnType<typeof walletAdapters>
type Verifier = ReturnType<typeof chooseVerifier>

class Service implements Countersign {
  readonly description: Countersign['description']
  readonly handler: RequestHandler
  readonly routes: (router: ConnectRouter) => void
  readonly #settings: Settings
  readonly #log: Logger
  readonly #store: Store
  readonly #host: Host
  /** Where the service keeps its users itself. */
  readonly #standalone: StandaloneHost
  readonly #server: OnePortServer
  readonly #shutdown = new AbortController()
  #port: number

  constructor(settings: Settings, log: Logger, store: Store, keyring: Keyring, adapters: Adapters, verifier: Verifier) {
    this.#settings = settings
    this.#log = log
    this.#store = store
    this.#port = settings.port
    this.description = {
      store: store.description,
      adapters: adapters.map(({ id }) => id),
      verifier: verifier.kind,
    }
    const origins = new OriginPolicy(() => ({
      enforce: settings.enforceOrigin,
      own: this.publicUrl,
      trusted: settings.trustedOrigins ?? [this.publicUrl, ...loopbackOrigins(this.#port)],
    }))
    const sessions = new Sessions(
      { ttlSeconds: settings.sessionTtlSeconds, absoluteTtlSeconds: settings.sessionAbsoluteTtlSeconds },
      store,
      keyring,
    )
    const secureCookie = (): boolean => this.publicUrl.startsWith('https:')
    this.#standalone = new StandaloneHost({ ...settings, secureCookie }, store, sessions, origins)
    this.#host = settings.sessionHost ?? this.#standalone
    const nonces = new Nonces(
      { appName: settings.appName, ttlSeconds: settings.nonceTtlSeconds },
      store,
      settings.nonceStore,
    )
    const prove: Prover = (message, proof) => {
      const { adapterId, publicKeyHex, address } = proveIdentity({ adapters, verifier, message, ...proof })
      return { adapterId, publicKeyHex, address }
    }
    const signIn = new SignIn(settings.appName, nonces, prove, origins, this.#host)
    const orders = new Orders({
      settings: { ...settings, publicOrigin: () => this.publicUrl },
      records: storedOrders(store),
      keyring,
      adapters,
      verifier,
      origins,
      host: this.#host,
      shutdown: this.#shutdown.signal,
    })
    const limiter = settings.rateLimit ? new RateLimiter() : undefined
    const api = createApi({ signIn, orders, host: this.#host }, limiter)
    this.routes = (router) => registerApi(router, api)
    this.handler = createRequestHandler({
      settings,
      api,
      routes: this.routes,
      origins,
      ready: () => store.ping(),
      shutdownSignal: this.#shutdown.signal,
      log,
    })
    this.#server = new OnePortServer(this.handler)
  }

  get publicUrl(): string {
    return this.#settings.publicUrl ?? `http://localhost:${this.#port}`
  }

  async listen(): Promise<number> {
    if (!this.#settings.enforceOrigin) {
      this.#log.warn(
        'enforceOrigin is off: any web page can use this service in its visitors\u2019 names. For local tests only',
      )
    }
    const { port } = await this.#server.listen(this.#settings.port, this.#settings.host)
    this.#port = port
    return port
  }

  async introspect(token: string): Promise<Session | undefined> {
    return await this.#host.introspect(token)
  }

  async findUser(userId: string): Promise<WalletUser | undefined> {
    return await this.#standalone.findUser(userId)
  }

  async close(graceMs = 10_000): Promise<void> {
    this.#shutdown.abort()
    await this.#server.close(graceMs)
    await this.#store.close()
  }
}

/** The embedded store keeps a secret of its own; a shared one would hand it to whoever reads the database. */
async function keptSecrets(settings: Settings, store: Store): Promise<string[]> {
  if (!/^sqlite:/.test(settings.store)) {
    throw new TypeError(
      'secret (COUNTERSIGN_SECRET) must be set when the store is Redis; every instance needs the same one, such as the output of: openssl rand -base64 32',
    )
  }
  const key = 'secret'
  await store.create(key, randomBytes(32).toString('base64url'), 'forever')
  const kept = await store.get(key)
  if (kept === undefined) throw new Error('the store lost the secret it was just given')
  return [kept.value]
}

function loopbackOrigins(port: number): string[] {
  const suffix = port === 80 ? '' : `:${port}`
  return ['localhost', '127.0.0.1', '[::1]'].map((name) => `http://${name}${suffix}`)
}
