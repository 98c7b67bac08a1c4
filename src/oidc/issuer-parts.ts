import type { AuditTrail } from '../base/audit.ts'
import type { Logger } from '../base/log.ts'
import type { Keyring } from '../base/token.ts'
import type { OwnClaims } from '../core/users/application.ts'
import type { People } from '../core/users/people.ts'
import type { SignInUsers, StandaloneHost } from '../core/users/standalone.ts'
import type { WalletName } from '../core/wallet/adapters.ts'
import type { PageFiles } from '../http/page-files.ts'
import type { LiveCount } from '../limits/concurrency.ts'
import type { RateLimiter } from '../limits/rate.ts'
import type { Store } from '../store/store.ts'
import type { ClientsFile, Offered } from './clients.ts'
import type { SigningJwk } from './keys.ts'

/** Settings of the service that the issuer uses. */
export interface IssuerSettings {
  readonly appName: string
  readonly basePath: string
  readonly pages: {
    readonly logoUrl?: string | undefined
    readonly logoHasName?: boolean | undefined
    readonly accentColor?: string | undefined
    readonly textsFile?: string | undefined
  }
  readonly oidc: {
    /** File with the clients. */
    readonly clients?: string | undefined
    /** Beginnings of addresses, or whole ones, of metadata documents of clients that are in no file; `*` for all. */
    readonly clientDocuments?: readonly string[] | undefined
    /** Template of users' e-mail addresses, with `{user_id}`. */
    readonly email?: string | undefined
    readonly claims?: OwnClaims | undefined
    /** Whether devices sign in by a code that people type (RFC 8628). */
    readonly device: boolean
  }
  /** How the networks of a device and its user are compared. */
  readonly proximity: 'show' | 'off' | 'enforce'
  /** Audiences of the service's own access tokens, which no client may have as its id. */
  readonly accessTokens: { readonly audiences?: readonly string[] | undefined }
  /** Longest life of a session in seconds. */
  readonly sessionAbsoluteTtlSeconds: number
  /** Sessions of an application, with which there is no issuer. */
  readonly sessionHost?: unknown
  /** Users of an application, for which there is no account page. */
  readonly resolveLogin?: unknown
}

/** What the issuer needs of the service. */
export interface IssuerParts {
  readonly settings: IssuerSettings
  /** The service's public URL, which is the issuer. */
  readonly publicUrl: () => string
  readonly store: Store
  readonly keyring: Keyring
  readonly host: StandaloneHost
  readonly users: Pick<SignInUsers, 'holds' | 'walletsOf'>
  readonly audit: AuditTrail
  /** The built pages; `undefined` if they have not been built. */
  readonly pageFiles: PageFiles | undefined
  /** Absent if the rate limits are off. */
  readonly limiter: RateLimiter | undefined
  /** Count of the records of senders that need not be known. */
  readonly live: LiveCount
  /** The people file in force at the start. */
  readonly people: People
  /** Reads the name of a wallet, as `nimiq:NQ…`, or without the adapter. `undefined` if no wallet can have it. */
  readonly readWallet: (text: string) => WalletName | undefined
  readonly log: Logger
}

/** Content of the files, and keys of the store. */
export interface Loaded extends Offered, ClientsFile {
  readonly keys: readonly SigningJwk[]
  readonly people: People
}
