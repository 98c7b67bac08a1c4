import { createHash, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto'
import { afterAll, onTestFinished, vi } from 'vitest'
import { type AuditTrail, noAudit } from '../../../src/base/audit.ts'
import type { RequestContext } from '../../../src/base/request.ts'
import { Keyring } from '../../../src/base/token.ts'
import { Inboxes } from '../../../src/core/order/inboxes.ts'
import { KnownComputers } from '../../../src/core/order/known-computers.ts'
import { type OrderResult, Orders } from '../../../src/core/order/orders.ts'
import { type OrderRecords, storedOrders } from '../../../src/core/order/records.ts'
import type { OrderSettings } from '../../../src/core/order/start.ts'
import { OrderWatches } from '../../../src/core/order/watch.ts'
import { OriginPolicy } from '../../../src/core/origin-policy.ts'
import { Nonces } from '../../../src/core/sign-in/nonce.ts'
import { SignIn } from '../../../src/core/sign-in/sign-in.ts'
import { UserWallets } from '../../../src/core/sign-in/user-wallets.ts'
import type { IssuedSession } from '../../../src/core/users/host.ts'
import { WalletClaims } from '../../../src/core/users/user-records.ts'
import { walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { chooseVerifier } from '../../../src/core/wallet/native.ts'
import { Prover } from '../../../src/core/wallet/prover.ts'
import type { WalletAdapter } from '../../../src/core/wallet/wallet.ts'
import type { LiveCount } from '../../../src/limits/concurrency.ts'
import type { StartedOrder, StartOrderOptions } from '../../../src/shared/orders.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { TestHost, type TestHostOptions } from '../../support/standalone.ts'
import type { StoreKind } from '../../support/stores.ts'

/** The application's origin, and that of the service itself. */
export const appOrigin = 'https://app.example'
export const ownOrigin = 'https://sign.example'

/** A request from an origin. */
export function from(origin: string | undefined, details: Partial<RequestContext> = {}): RequestContext {
  return {
    origin,
    originSource: 'Origin header',
    ip: '192.0.2.1',
    behindUnknownProxy: false,
    userAgent: 'Test/1.0',
    headers: new Headers(),
    ...details,
  }
}

export const desktop = from(appOrigin)
export const phone = from(ownOrigin)

/** What an instance of the service is made with. */
export interface InstanceOptions {
  readonly settings?: Partial<OrderSettings>
  readonly secrets?: readonly string[]
  readonly records?: OrderRecords
  readonly host?: Pick<TestHostOptions, 'resolveLogin'>
  /** Wraps the host. */
  readonly wrapHost?: (host: TestHost) => TestHost
  /** In place of those on the store. */
  readonly computers?: KnownComputers
  readonly enforceOrigin?: boolean
  /** In place of those that trust {@link appOrigin} and {@link ownOrigin}. */
  readonly origins?: OriginPolicy
  /** Whether operators can block wallets, as in the service, and what asks. Default: no. */
  readonly blocks?: boolean | Pick<WalletClaims, 'requireNotBlocked'>
  /** Beside the adapters for Nimiq and for plain Ed25519. */
  readonly adapter?: WalletAdapter
  readonly audit?: AuditTrail
  readonly live?: LiveCount
}

/** An instance of the service's domain, as one process would run it. */
export interface Instance {
  readonly orders: Orders
  readonly host: TestHost
  readonly signIn: SignIn
  readonly wallets: UserWallets
  readonly stop: AbortController
}

/** Makes an instance on a store. Several on one store are what several processes are. */
export function makeInstance(store: Store, options: InstanceOptions = {}): Instance {
  const keyring = new Keyring(options.secrets ?? ['first secret'])
  const origins =
    options.origins ??
    new OriginPolicy({ enforce: options.enforceOrigin ?? true, own: ownOrigin, trusted: [appOrigin, ownOrigin] })
  const standalone = new TestHost(store, { ...options.host, keyring, origins, absoluteTtlSeconds: 86_400 })
  const host = options.wrapHost?.(standalone) ?? standalone
  const { users } = host
  const claims = options.blocks === true ? new WalletClaims(store) : options.blocks || undefined
  const stop = new AbortController()
  const prover = new Prover(
    walletAdapters(['nimiq', 'ed25519', ...(options.adapter === undefined ? [] : [options.adapter])]),
    chooseVerifier('native'),
  )
  const nonces = new Nonces({ appName: 'Example', ttlSeconds: 300, store })
  const wallets = new UserWallets({ nonces, prover, origins, host, users, audit: options.audit })
  const keepsUsers = options.host?.resolveLogin === undefined
  const keptUsers = {
    host,
    users,
    links: wallets.links,
    inboxes: new Inboxes(store),
    approvalUrl: (orderId: string) => `${ownOrigin}/inbox?order=${orderId}`,
  }
  const records = options.records ?? storedOrders(store)
  const orders = new Orders({
    settings: {
      appName: 'Example',
      orderTtlSeconds: 120,
      confirmationCode: 'compare',
      claimUrlTemplate: '{origin}/cross-device/claim/{orderId}#token={claimToken}',
      publicOrigin: () => ownOrigin,
      handOverUrl: (ticket) => `${ownOrigin}/cross-device/continue/${ticket}`,
      knownComputers: true,
      proximity: 'show',
      orderStartKeys: undefined,
      ...options.settings,
    },
    records,
    keyring,
    prover,
    origins,
    host,
    computers: options.computers ?? new KnownComputers(store),
    keptUsers: keepsUsers ? keptUsers : undefined,
    audit: options.audit ?? noAudit,
    live: options.live,
    claims,
    watches: new OrderWatches(records, stop.signal),
  })
  return { orders, host, signIn: new SignIn({ nonces, prover, origins, host }), wallets, stop }
}

/** A key that signs messages as they are: the `ed25519` adapter's framing. */
export class Signer {
  readonly publicKeyHex: string
  readonly #key: KeyObject

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    this.#key = privateKey
    this.publicKeyHex = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
  }

  prove(message: string): { publicKeyHex: string; signatureHex: string } {
    return this.#signed(Buffer.from(message))
  }

  /** As {@link prove}, but in the framing of Nimiq's wallets: the `nimiq` adapter's. */
  proveAsNimiq(message: string): { publicKeyHex: string; signatureHex: string } {
    const body = Buffer.from(message)
    const framed = Buffer.concat([Buffer.from(`\x16Nimiq Signed Message:\n${body.length}`), body])
    return this.#signed(createHash('sha256').update(framed).digest())
  }

  #signed(bytes: Buffer): { publicKeyHex: string; signatureHex: string } {
    return { publicKeyHex: this.publicKeyHex, signatureHex: sign(null, bytes, this.#key).toString('hex') }
  }
}

/** A computer with a key of its own, as browsers make it. */
export class Computer {
  readonly computerKey: string
  readonly #key: KeyObject

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#key = privateKey
    this.computerKey = publicKey.export({ format: 'der', type: 'spki' }).toString('base64url')
  }

  /** The proof of possession for finalizing an order. */
  prove({ orderId, desktopToken }: Pick<StartedOrder, 'orderId' | 'desktopToken'>): string {
    const text = `countersign.v1 finalize\n${orderId}\n${hash('sha256', desktopToken, 'base64url')}`
    return sign('sha256', Buffer.from(text), { key: this.#key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  }
}

/** A code as a number of its own: its digits can be within a time or a key by chance. */
export function isolated(code: string): RegExp {
  return new RegExp(`(?<!\\d)${code}(?!\\d)`)
}

/** Six digits that are not these. */
export function otherCode(code: string): string {
  return String((Number(code) + 1) % 1_000_000).padStart(6, '0')
}

/** The reason of a call's failure; or `undefined` when it did not fail. Any other failure than a reason is thrown. */
export async function reasonOf(call: Promise<unknown>): Promise<string | undefined> {
  return (await outcomeOf(call)).reason
}

/** The reason and message of a call's failure; neither when it did not fail. */
export async function outcomeOf(call: Promise<unknown>): Promise<{ reason?: string; message?: string }> {
  try {
    await call
    return {}
  } catch (error) {
    if (!(error instanceof Error && 'reason' in error)) throw error
    return { reason: String(error.reason), message: error.message }
  }
}

/** Signs a wallet in on its own device. */
export async function signedIn({ signIn }: Instance, signer: Signer = new Signer()): Promise<IssuedSession> {
  const { nonceId, message } = await signIn.issueNonce(undefined, {}, desktop)
  return await signIn.verify(nonceId, signer.prove(message), desktop)
}

/** A request of the desktop with a session. */
export function withSession({ token }: Pick<IssuedSession, 'token'>): RequestContext {
  return from(appOrigin, { headers: new Headers({ authorization: `Bearer ${token}` }) })
}

/** An order on its way, with all that desktop and phone know of it. */
export interface Going extends StartedOrder {
  readonly challengeToken: string
  readonly message: string
  readonly proof: { publicKeyHex: string; signatureHex: string }
}

/** Starts, claims and reads an order: it waits for its user. */
export async function untilWaiting(
  { orders }: Instance,
  input: StartOrderOptions = { kind: 'login' },
  signer: Signer = new Signer(),
  starter: RequestContext = desktop,
): Promise<Going> {
  const started = await orders.start(input, starter)
  const { orderId, claimToken } = started
  const { challengeToken } = await orders.claim({ orderId, claimToken }, phone)
  const { message } = await orders.readChallenge({ orderId, challengeToken }, phone)
  return { ...started, challengeToken, message, proof: signer.prove(message) }
}

/** As {@link untilWaiting}, and approves it. */
export async function untilApproved(
  instance: Instance,
  input?: StartOrderOptions,
  signer?: Signer,
  approval: { readonly rememberComputer?: boolean } = {},
): Promise<Going & { readonly returnCode?: string }> {
  const order = await untilWaiting(instance, input, signer)
  const { returnCode } = await instance.orders.approve({ ...order, ...approval }, phone)
  return { ...order, ...(returnCode === undefined ? {} : { returnCode }) }
}

/** An order that waits for its return code, and that code. */
export async function untilCode(
  instance: Instance,
  ...rest: Tail<Parameters<typeof untilApproved>>
): Promise<Going & { readonly returnCode: string }> {
  const { returnCode, ...order } = await untilApproved(instance, ...rest)
  if (returnCode === undefined) throw new Error('the order takes no return code')
  return { ...order, returnCode }
}

type Tail<T extends readonly unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never

/** The session of a finalized login order. */
export function issuedBy(finalized: OrderResult): Extract<OrderResult, { kind: 'login' }>['issued'] {
  if (finalized.kind !== 'login') throw new Error('not a login order')
  return finalized.issued
}

/**
 * Opens a store for tests that set the clock on. A shared store counts lives on a clock of its own, which no test can
 * set; this handle of it tells the time by the clock of this process.
 */
export async function openOnOurClock(url: string): Promise<Store> {
  return Object.assign(await openStore(url), { now: () => Date.now() })
}

/** A store for all tests of a suite, by the clock of this process. To be awaited in the suite's function. */
export async function suiteStore(open: StoreKind['open']): Promise<Store> {
  const store = await openOnOurClock(String((await open()).store))
  afterAll(() => store.close())
  return store
}

/** Sets this process's clock on until the test ends; all timers, and the lives of what a shared store has, go on as they are. */
export function passTime(ms: number): void {
  const now = Date.now() + ms
  if (!vi.isFakeTimers()) {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
  }
  vi.setSystemTime(now)
}
