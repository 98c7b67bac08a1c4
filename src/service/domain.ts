import { type AuditSink, AuditTrail } from '../base/audit.ts'
import type { Logger } from '../base/log.ts'
import type { Observer } from '../base/observer.ts'
import type { Keyring } from '../base/token.ts'
import type { Tracing } from '../base/tracing.ts'
import { AccessTokens, type SigningKeys } from '../core/access-tokens.ts'
import { Inboxes } from '../core/order/inboxes.ts'
import { KnownComputers } from '../core/order/known-computers.ts'
import type { OrderRecord } from '../core/order/order.ts'
import { Orders } from '../core/order/orders.ts'
import { storedOrders } from '../core/order/records.ts'
import { OrderWatches } from '../core/order/watch.ts'
import { OriginPolicy } from '../core/origin-policy.ts'
import { Nonces, withKeysBeginning } from '../core/sign-in/nonce.ts'
import { SignIn } from '../core/sign-in/sign-in.ts'
import { UserWallets } from '../core/sign-in/user-wallets.ts'
import { ApplicationUsers, blockingHost, guardedHost, tracedLogin } from '../core/users/application.ts'
import type { Session } from '../core/users/host.ts'
import type { Membership } from '../core/users/people.ts'
import { type SessionEnds, Sessions } from '../core/users/sessions.ts'
import { type SignInUsers, StandaloneHost } from '../core/users/standalone.ts'
import { WalletClaims } from '../core/users/user-records.ts'
import { Users } from '../core/users/users.ts'
import { Prover } from '../core/wallet/prover.ts'
import type { SignatureVerifier, WalletAdapter, WalletIdentity } from '../core/wallet/wallet.ts'
import { continuePath } from '../http/page-files.ts'
import { type CeilingLimits, Concurrency, ceilingsFor, LiveCount, OpenOrders } from '../limits/concurrency.ts'
import { defaultLimits, type Limits } from '../limits/limits.ts'
import { RateLimiter } from '../limits/rate.ts'
import type { Domain } from '../rpc/api.ts'
import { keyBeginning } from '../store/map-store.ts'
import type { Store } from '../store/store.ts'
import { confirmationCodeAt, type ServiceAddress } from './address.ts'
import { keepsUsers, type Settings } from './config.ts'

/** What the domain of a service needs in addition to settings and store. */
export interface DomainParts {
  readonly address: ServiceAddress
  readonly keyring: Keyring
  /** Keys of access tokens; absent if none are issued. */
  readonly signingKeys: SigningKeys | undefined
  /** Keys that backends start orders with, read for each order; `undefined` if pages start them. */
  readonly orderStartKeys: () => readonly string[] | undefined
  readonly adapters: readonly WalletAdapter[]
  readonly verifier: SignatureVerifier
  /** The people file in force. */
  readonly membership: Membership
  /** Absent if nothing outlives a session. */
  readonly sessionEnds: SessionEnds | undefined
  /** Receive each audit event. */
  readonly auditSinks: readonly AuditSink[]
  /** Receives each order that has reached another status. */
  readonly observeOrder: Observer<OrderRecord> | undefined
  /** Absent if no traces are made. */
  readonly tracing: Tracing | undefined
  /** Aborts when this process asks watchers to go elsewhere. */
  readonly shutdown: AbortSignal
  readonly log: Logger
}

/** The domain of a service, with what its server uses in addition to the RPCs. */
export interface ServiceDomain extends Domain {
  readonly audit: AuditTrail
  readonly groupsOf: (session: Session) => readonly string[]
  readonly origins: OriginPolicy
  /** The built-in host, which is in use unless `sessionHost` is set. */
  readonly standalone: StandaloneHost
  /** The users of the built-in host: those of the store, unless `resolveLogin` is set. */
  readonly users: SignInUsers
  readonly storedUsers: Users
  /** Numbers of the rate limits; absent if they are off. */
  readonly limits: Limits | undefined
  /** Absent if the rate limits are off. */
  readonly limiter: RateLimiter | undefined
  readonly ceilings: CeilingLimits
  /** Counts of what is stored for callers who need not be known. */
  readonly live: { readonly nonces: LiveCount; readonly orders: LiveCount }
}

/** Makes all that the RPCs use, without a server. */
export function makeDomain(settings: Settings, store: Store, parts: DomainParts): ServiceDomain {
  const { address, keyring, signingKeys, sessionEnds, tracing, log } = parts
  const audit = new AuditTrail(() => store.now(), parts.auditSinks)
  const origins = new OriginPolicy(address.originRules)
  const ceilings = ceilingsFor(settings)
  const limits = settings.rateLimit ? (settings.limits.rates ?? defaultLimits) : undefined
  const limiter = limits && new RateLimiter(limits, { store, isForeign: (request) => origins.isForeign(request) })
  const live = {
    nonces: new LiveCount(new Concurrency('nonces', ceilings, log)),
    orders: new LiveCount(new Concurrency('orders', ceilings, log)),
  }
  const { addressTtlSeconds } = settings
  const sessions = new Sessions(
    {
      ttlSeconds: settings.sessionTtlSeconds,
      absoluteTtlSeconds: settings.sessionAbsoluteTtlSeconds,
      addressTtlSeconds,
    },
    store,
    keyring,
    sessionEnds,
  )
  const computers = new KnownComputers(store, { addressTtlSeconds })
  const { membership } = parts
  const { resolveLogin, sessionHost, syncAddressToUser, syncPublicKeyToUser } = settings
  const claims = new WalletClaims(store)
  const forgetComputers = (wallet: WalletIdentity): Promise<void> => computers.forgetOthers(wallet, undefined)
  const kept = { syncAddressToUser, syncPublicKeyToUser }
  const storedUsers = new Users({ store, sessions, membership, forgetComputers, audit, ...kept })
  const ask = tracing && resolveLogin ? tracedLogin(resolveLogin, tracing) : resolveLogin
  const users = ask === undefined ? storedUsers : new ApplicationUsers({ resolveLogin: ask, membership, claims })
  const standalone = new StandaloneHost({
    store,
    users,
    sessions,
    origins,
    membership,
    audit,
    secureCookie: () => address.isSecure,
  })
  const requireNotBlocked = (wallet: WalletIdentity): Promise<void> => claims.requireNotBlocked(wallet)
  const host =
    sessionHost === undefined ? standalone : blockingHost(guardedHost(sessionHost, tracing), requireNotBlocked)
  const nonces = new Nonces({
    appName: settings.appName,
    ttlSeconds: settings.nonceTtlSeconds,
    store,
    custom: settings.nonceStore && withKeysBeginning(keyBeginning(settings.keyPrefix), settings.nonceStore),
    live: live.nonces,
  })
  const prover = new Prover(parts.adapters, parts.verifier, tracing)
  const signIn = new SignIn({ nonces, prover, origins, host, audit, limiter })
  const wallets = keepsUsers(settings)
    ? new UserWallets({ nonces, prover, origins, host: standalone, users: storedUsers, audit })
    : undefined
  const open = limits && new OpenOrders(limits, store)
  const records = storedOrders(store, { observe: parts.observeOrder, open })
  const orders = new Orders({
    settings: {
      ...settings,
      confirmationCode: confirmationCodeAt(settings.confirmationCode, address),
      ownPagesStart: true,
      get orderStartKeys() {
        return parts.orderStartKeys()
      },
      publicOrigin: () => address.publicUrl,
      handOverUrl: (ticket) => `${address.publicUrl}${continuePath}/${ticket}`,
    },
    records,
    watches: new OrderWatches(records, parts.shutdown),
    keyring,
    prover,
    origins,
    host,
    computers,
    keptUsers: wallets && {
      host: standalone,
      users: storedUsers,
      links: wallets.links,
      inboxes: new Inboxes(store),
      approvalUrl: (orderId) => `${address.publicUrl}${settings.basePath}/inbox?order=${orderId}`,
    },
    claims,
    list: sessionHost === undefined ? users : undefined,
    live: live.orders,
    limiter,
    audit,
  })
  const groupsOf = (session: Session): readonly string[] => membership.groupsOf(session)
  const accessTokens =
    signingKeys &&
    new AccessTokens({
      audiences: settings.accessTokens.audiences ?? [],
      ttlSeconds: settings.accessTokens.ttlSeconds,
      issuer: () => address.publicUrl,
      keys: signingKeys,
      groupsOf,
      store,
    })
  return {
    signIn,
    orders,
    host,
    computers,
    wallets,
    accessTokens,
    groupsOf,
    audit,
    origins,
    standalone,
    users,
    storedUsers,
    limits,
    limiter,
    ceilings,
    sessionEnds,
    endSession: sessionHost === undefined ? (userId: string, id: string) => sessions.end(userId, id) : undefined,
    live,
  }
}
