import { silentLogger } from '../../src/base/log.ts'
import type { RequestContext } from '../../src/base/request.ts'
import { Keyring } from '../../src/base/token.ts'
import { Membership, People } from '../../src/core/users/people.ts'
import { walletAdapters } from '../../src/core/wallet/adapters.ts'
import { nativeVerifier } from '../../src/core/wallet/native.ts'
import { ServiceAddress } from '../../src/service/address.ts'
import { resolveSettings, type Settings } from '../../src/service/config.ts'
import { makeDomain, type ServiceDomain } from '../../src/service/domain.ts'
import type { Random } from './random.ts'
import type { Wallet } from './wallets.ts'
import type { Instance, World } from './world.ts'

export const appOrigin = 'https://app.example'
export const ownOrigin = 'https://sign.example'
/** Of another application that the service trusts. */
export const otherOrigin = 'https://other.example'
/** Of a page that the service does not trust. */
export const foreignOrigin = 'https://foreign.example'
export const startKey = 'start-key-of-a-backend-long-enough-for-one'

/** What a world's service is set to. */
export interface ServiceKind {
  readonly confirmationCode: 'compare' | 'return'
  /** Whether backends start orders, with a key. */
  readonly takesStartKey: boolean
  /** Whether only people of a file may sign in. */
  readonly admitsPeople: boolean
}

/** A request of a browser or, without `origin`, of a backend. */
export function request(origin: string | undefined, bearer?: string): RequestContext {
  return {
    origin: origin ?? ownOrigin,
    originSource: origin === undefined ? 'Host header' : 'Origin header',
    ip: '192.0.2.1',
    behindUnknownProxy: false,
    userAgent: 'Test/1.0',
    headers: new Headers(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
  }
}

/** A service of several processes on the store of a world. */
export class Service {
  readonly kind: ServiceKind
  readonly instances: readonly Instance[]
  /** The people file, as each process has read it. */
  readonly membership: Membership
  readonly #world: World
  readonly #settings: Settings
  readonly #domains: ServiceDomain[] = []

  constructor(world: World, kind: ServiceKind, size: number) {
    this.#world = world
    this.kind = kind
    this.#settings = resolveSettings({
      appName: 'Example',
      publicUrl: ownOrigin,
      trustedOrigins: [appOrigin, ownOrigin, otherOrigin],
      confirmationCode: kind.confirmationCode,
      rateLimit: false,
      sessionTtlSeconds: 3600,
      sessionAbsoluteTtlSeconds: 7200,
    })
    this.membership = new Membership(new People(), kind.admitsPeople)
    this.instances = Array.from({ length: size }, (_, index) => {
      const instance: Instance = world.addInstance(`instance ${index + 1}`, () => this.#start(instance, index))
      return instance
    })
    this.instances.forEach((instance, index) => {
      this.#start(instance, index)
    })
  }

  /** Puts a people file into force that lists these wallets. */
  list(wallets: readonly Wallet[]): void {
    this.membership.replace(new People({ byWallet: new Map(wallets.map(({ listedAs }) => [listedAs, {}])) }))
  }

  /** One of the processes, and its domain. */
  any(random: Random): { readonly instance: Instance; readonly domain: ServiceDomain } {
    const index = random.below(this.instances.length)
    return { instance: this.instances[index] as Instance, domain: this.#domains[index] as ServiceDomain }
  }

  #start(instance: Instance, index: number): void {
    const { takesStartKey } = this.kind
    this.#domains[index] = makeDomain(this.#settings, this.#world.handle(instance), {
      address: new ServiceAddress(this.#settings, undefined),
      keyring: new Keyring(['a secret of this world, long enough']),
      signingKeys: undefined,
      orderStartKeys: () => (takesStartKey ? [startKey] : undefined),
      adapters: walletAdapters(['ed25519', 'nimiq']),
      verifier: nativeVerifier,
      membership: this.membership,
      sessionEnds: undefined,
      auditSinks: [],
      observeOrder: undefined,
      tracing: undefined,
      shutdown: new AbortController().signal,
      log: silentLogger,
    })
  }
}
