import type { AuditTrail } from '../base/audit.ts'
import type { Logger } from '../base/log.ts'
import type { RequestContext } from '../base/request.ts'
import type { Sampler } from '../base/timing/sampler.ts'
import type { Keyring } from '../base/token.ts'
import type { ConnectedApps } from '../core/users/connected-apps.ts'
import type { StandaloneHost } from '../core/users/standalone.ts'
import type { WalletName } from '../core/wallet/adapters.ts'
import type { PageFiles } from '../http/page-files.ts'
import type { Store } from '../store/store.ts'
import type { OwnClaims } from './claims.ts'
import type { FileClients } from './clients.ts'
import type { Grants } from './grants.ts'
import type { SigningJwk } from './keys.ts'
import type { PageLooks, ShowPage } from './pages.ts'
import type { People } from './people.ts'
import type { Offered } from './resources.ts'
import type { SealedRecords } from './sealed-records.ts'

/** Settings of the issuer. */
export interface IssuerSettings extends PageLooks {
  /** File with the clients. */
  readonly clientsFile: string
  /** Template of users' e-mail addresses, with `{user_id}`. Absent: no user has one. */
  readonly email?: string | undefined
  readonly claims?: OwnClaims | undefined
  /** File with claims of people. Absent: there is none. */
  readonly peopleFile?: string | undefined
  /** Longest life of a session in seconds. */
  readonly sessionSeconds: number
  /** Audiences of the service's own access tokens, which no client may have as its id. */
  readonly audiences: readonly string[]
}

/** A record that is about to be stored for a sender that need not be known. */
export interface CountedRecord {
  /** The request that causes it. */
  readonly request: RequestContext
  /**
   * What it counts for as a call: the network of a navigation, a client that has proven who it is, or the network of any
   * other sender. Nothing if a record that was counted has led to it.
   */
  readonly caller: 'navigation' | 'unknown' | 'counted' | { readonly clientId: string }
  readonly bytes: number
  readonly lifeMs: number
}

/** What the issuer stands on. */
export interface IssuerParts {
  readonly settings: IssuerSettings
  /** Paths of the issuer's metadata, outside the base path. */
  readonly discoveryPaths: readonly string[]
  /** The service's public URL, which is the issuer. */
  readonly publicUrl: () => string
  readonly store: Store
  readonly keyring: Keyring
  readonly host: StandaloneHost
  readonly apps: ConnectedApps
  readonly audit: AuditTrail
  /** The built pages; `undefined` if they have not been built. */
  readonly pageFiles: PageFiles | undefined
  /** Counts a record before it is stored. Rejects with RATE_LIMITED or SERVER_BUSY beyond a limit. */
  readonly spend: (stored: CountedRecord) => Promise<void>
  /** Reads the name of a wallet, as `nimiq:NQ…`, or without the adapter. `undefined` if no wallet can have it. */
  readonly readWallet: (text: string) => WalletName | undefined
  /**
   * Counts a request of a browser for its network, whatever its answer: an error page takes several times the CPU of the
   * sign-in page. Rejects with RATE_LIMITED beyond the limit.
   */
  readonly countNavigation: (request: RequestContext, isWholePage: boolean) => Promise<void> | undefined
  /** Counts a wrong secret or token of a network. Rejects with RATE_LIMITED beyond its limit. */
  readonly countWrong: (request: RequestContext) => Promise<void> | undefined
  readonly log: Logger
}

/** Life of an interaction in seconds. */
export const interactionSeconds = 10 * 60

/** The exports of the library that are used. */
export type Library = Pick<typeof import('oidc-provider'), 'Provider' | 'errors' | 'interactionPolicy'>

/** What was read of the files and the store. */
export interface Loaded extends Offered {
  readonly clients: FileClients
  readonly keys: readonly SigningJwk[]
  readonly people: People
}

/** What the parts of the issuer go by: all that it stands on, and what they share. */
export interface SharedParts extends IssuerParts {
  readonly library: Library
  /** Path of the issuer's endpoints. */
  readonly base: string
  readonly records: SealedRecords
  readonly grants: Grants
  readonly page: ShowPage
  /** Thins out lines of the log that callers can cause at will. */
  readonly sampler: Sampler
  /** What is in force now. */
  readonly loaded: () => Loaded
}
