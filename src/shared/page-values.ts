import type { Session } from './session.ts'
import type { OperatorTexts } from './texts/page-texts.ts'

/** What the server writes into every page for its script, as JSON. */
export interface CommonValues {
  /** Name of the application. */
  readonly appName: string
  /** Path of the REST endpoints that the page calls, such as /api/auth; empty if they are at the root. */
  readonly basePath: string
  /** Address of the operator's logo. Default: none. */
  readonly logoUrl?: string | undefined
  /** Whether the logo has the application's name in it. Default: no. */
  readonly logoHasName?: boolean | undefined
  /** The operator's accent colour, such as #1f6feb. Default: the page's own. */
  readonly accentColor?: string | undefined
  /** The operator's texts. Default: none. */
  readonly texts?: OperatorTexts | undefined
  /** Languages that an application asks for (BCP 47), separated by spaces. Default: none. */
  readonly locales?: string | undefined
}

/** What a page with wallets has. */
export interface WalletValues extends CommonValues {
  /** Ids of the wallet adapters that the service accepts. */
  readonly adapterIds: readonly string[]
  /** Whether the page offers the demo wallet. */
  readonly demoWallet: boolean
}

/** What a page with a sign-in has. */
export interface SignInValues extends WalletValues {
  /** Whether it leads people who have no wallet to some. */
  readonly walletHelp: boolean
}

/** What each page has. */
export interface PageValues {
  readonly approve: WalletValues &
    Paths & {
      /** Template of the claim URLs that lead to the page, which reads the claim by it. */
      readonly claimUrlTemplate: string
    }
  readonly demo: SignInValues & Pick<Paths, 'accountPath'> & Starts
  readonly 'sign-in': SignInValues & Starts & SignsIn & MaybeSignedIn
  readonly account: WalletValues & Starts & SignsIn & MaybeSignedIn & Pick<Paths, 'inboxPath'>
  readonly inbox: CommonValues & SignsIn & Paths
  readonly issuer: CommonValues & Pick<Paths, 'accountPath'> & { readonly content: IssuerContent }
  readonly 'not-found': CommonValues & { readonly refusal?: Refusal | undefined }
}

/** Where other pages are; empty where there is none. */
interface Paths {
  readonly accountPath: string
  readonly inboxPath: string
}

interface Starts {
  /** Whether pages can start orders; if not, backends do. */
  readonly startsOrders: boolean
}

interface MaybeSignedIn {
  /** Whether the browser may be signed in already, so that the page asks. */
  readonly maybeSignedIn: boolean
}

interface SignsIn {
  /** Path of the direct sign-in endpoints under `basePath`, such as /wallet. */
  readonly endpointPrefix: string
}

/** Why a page behind forward auth is not for its visitor. */
export interface Refusal {
  /** A reason such as GROUP_REQUIRED. */
  readonly reason: string
  /** Groups that may open the page, if that is the reason. */
  readonly groups?: readonly string[] | undefined
  /** The wallet of the visitor's session; absent without one. */
  readonly wallet?: ShownWallet | undefined
  /** The sign-in page, which leads back. */
  readonly signIn: string
}

/** What the issuer's page shows. No text of the library is in it: the page speaks the user's language. */
export type IssuerContent =
  | {
      readonly kind: 'consent'
      readonly client: ShownClient
      /** Host of the redirect URI; absent if it leads to an application on the device. */
      readonly host: string | undefined
      /** Host of the client's metadata document, which proves nothing else; `undefined` for a client of the file. */
      readonly documentHost?: string | undefined
      /** What the client asks for: scopes, those of a resource with its address behind a space. */
      readonly scopes: readonly string[]
      /** What the operator says of scopes of resources. */
      readonly scopeWords?: Readonly<Record<string, string>>
      readonly wallet: ShownWallet
      readonly sessionId: string
      /** The sign-in page, which leads back. */
      readonly signIn: string
      /** The device that the client is on, if a person has typed its code. */
      readonly device?: ShownDevice
    }
  /** Asks for the code that a device shows. */
  | { readonly kind: 'device-code' }
  /** An order made the session, which is not enough for a code of a device. */
  | { readonly kind: 'device-direct'; readonly client: ShownClient; readonly signIn: string }
  /** The user is in none of the client's groups. */
  | {
      readonly kind: 'not-for-account'
      readonly client: ShownClient
      readonly wallet: string
      readonly sessionId: string
      readonly signIn: string
      /** Of a device. */
      readonly code?: string
    }
  | {
      readonly kind: 'logout'
      readonly client: ShownClient | undefined
      readonly wallet: ShownWallet
      readonly ticket: string
    }
  | { readonly kind: 'signed-out'; readonly client: ShownClient | undefined }
  /** A wrong request of an application: the error by its code, and the redirect URI if that is what is wrong. */
  | ({
      readonly kind: 'error'
      readonly error: string
      readonly sent?: string | undefined
      /** Host of the client's document, if that cannot be fetched. */
      readonly unreachable?: string | undefined
    } & Asker)
  /** A request that is over. */
  | ({ readonly kind: 'over' } & Asker)
  /** A failure that is not the application's: a reason of ours, such as RATE_LIMITED. */
  | { readonly kind: 'failure'; readonly reason: string }

/** An application as people know it. */
export interface ShownClient {
  readonly name: string
  /** Where people find it; absent if that is on their device. */
  readonly home: string | undefined
  /** Its privacy policy. */
  readonly policy?: string | undefined
  /** Its terms of service. */
  readonly terms?: string | undefined
}

/** A device, as far as people can recognise it. */
export interface ShownDevice {
  readonly code: string
  /** IP address of its request; absent if it is unknown. */
  readonly ip: string | undefined
  readonly userAgent: string
  /** Whether it is on the browser's network; absent if that cannot be told. */
  readonly sameNetwork: boolean | undefined
}

/** The wallet of the session. */
export type ShownWallet = Pick<Session, 'adapterId' | 'address'>

/** The application that a request comes from, and the languages that it asks for, as far as they are known. */
interface Asker {
  readonly client?: ShownClient | undefined
  readonly locales?: string | undefined
}
