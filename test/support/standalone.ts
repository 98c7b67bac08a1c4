import { Keyring } from '../../src/base/token.ts'
import { KnownComputers } from '../../src/core/order/known-computers.ts'
import { OriginPolicy } from '../../src/core/origin-policy.ts'
import { ApplicationUsers, type ResolveLogin } from '../../src/core/users/application.ts'
import { Membership } from '../../src/core/users/people.ts'
import { Sessions } from '../../src/core/users/sessions.ts'
import { StandaloneHost } from '../../src/core/users/standalone.ts'
import { WalletClaims } from '../../src/core/users/user-records.ts'
import { Users } from '../../src/core/users/users.ts'
import type { Store } from '../../src/store/store.ts'

/** What a {@link TestHost} is made with. */
export interface TestHostOptions {
  readonly resolveLogin?: ResolveLogin
  readonly secureCookie?: boolean
  readonly syncs?: boolean
  readonly keyring?: Keyring
  readonly absoluteTtlSeconds?: number
  readonly cachedTokens?: number | undefined
  readonly origins?: OriginPolicy
}

/** The origin that a {@link TestHost} trusts. */
export const trustedOrigin = 'https://app.example'

/** The host of one process, with the users of its store. Several on one store are what several processes are. */
export class TestHost extends StandaloneHost {
  readonly users: Users

  constructor(store: Store, options: TestHostOptions = {}) {
    const { resolveLogin, secureCookie = true, syncs = false, absoluteTtlSeconds = 36_000, cachedTokens } = options
    const { keyring = new Keyring(['a secret for tests and for nothing else']) } = options
    const { origins = new OriginPolicy({ enforce: true, own: trustedOrigin, trusted: [trustedOrigin] }) } = options
    const sessions = new Sessions({ ttlSeconds: 3600, absoluteTtlSeconds, cachedTokens }, store, keyring)
    const computers = new KnownComputers(store)
    const users = new Users({
      store,
      sessions,
      forgetComputers: (wallet) => computers.forgetOthers(wallet, undefined),
      syncAddressToUser: syncs,
      syncPublicKeyToUser: syncs,
    })
    const application = resolveLogin && { resolveLogin, membership: new Membership(), claims: new WalletClaims(store) }
    super({
      store,
      users: application === undefined ? users : new ApplicationUsers(application),
      sessions,
      origins,
      secureCookie: () => secureCookie,
    })
    this.users = users
  }
}
