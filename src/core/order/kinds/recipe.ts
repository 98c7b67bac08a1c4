import type { AuditTrail } from '../../../base/audit.ts'
import type { RequestContext } from '../../../base/request.ts'
import type { Keyring } from '../../../base/token.ts'
import type { RateLimiter } from '../../../limits/rate.ts'
import type { OrderChallenge, ProofArtifact, StartOrderOptions } from '../../../shared/orders.ts'
import type { ChallengeAction } from '../../challenge-text.ts'
import type { OriginPolicy } from '../../origin-policy.ts'
import type { ListedWallet, WalletLinks } from '../../sign-in/user-wallets.ts'
import type { HeldWallet, Host, IssuedSession, Session } from '../../users/host.ts'
import type { SignInUsers, StandaloneHost } from '../../users/standalone.ts'
import type { Users } from '../../users/users.ts'
import type { ProvenIdentity } from '../../wallet/wallet.ts'
import type { Inboxes } from '../inboxes.ts'
import type {
  OrderLogin,
  OrderRecord,
  OrdersByRecipe,
  RecipeName,
  Requester,
  StoredProof,
  TakeBackOutcome,
} from '../order.ts'

/** Users whom the service keeps itself, with their wallets and inboxes. */
export interface KeptUsers {
  readonly host: Pick<StandaloneHost, 'currentSession' | 'peekSession' | 'findSession'>
  readonly users: Pick<Users, 'find' | 'walletsOf' | 'admit' | 'requireLinkable' | 'link' | 'withdraw'>
  /** Decides which sessions may add a wallet. */
  readonly links: Pick<WalletLinks<HeldWallet>, 'freshSession'>
  readonly inboxes: Inboxes
  /** The address of the page on which a user approves an order. */
  readonly approvalUrl: (orderId: string) => string
}

/** What recipes work with that the service supplies. */
export interface OrderTools {
  readonly keyring: Keyring
  readonly origins: OriginPolicy
  readonly host: Host
  /** Without them, link orders and orders for an inbox are NOT_ENABLED. */
  readonly keptUsers?: KeptUsers | undefined
  /** Refuses users who are not on the list of those who may sign in. Without it, there is no list. */
  readonly list?: Pick<SignInUsers, 'requireListed'> | undefined
  /**
   * Limits the sign-ins of each wallet, and of each network the link orders and, where others need a start key, the
   * orders that are started without one. Without it, there is no such limit.
   */
  readonly limiter?: RateLimiter | undefined
  /** Receives audit events of orders. */
  readonly audit: AuditTrail
}

/** What a step of an order works with. */
export interface OrderParts extends OrderTools {
  readonly settings: { readonly appName: string; readonly orderStartKeys: readonly string[] | undefined }
  readonly records: { now(): number; create(order: OrderRecord): Promise<void> }
  readonly admission: {
    requester(input: StartOrderOptions, request: RequestContext, rules: OrderRules): Promise<Requester>
    callingDesktop(request: RequestContext): Requester
  }
  readonly computers: {
    idOf(order: OrderRecord): string | undefined
    note(order: OrderRecord, request: RequestContext, session?: Session): Promise<void>
    forget(order: OrderRecord): Promise<void>
  }
  /** Cancels an order whose start fails after it was stored. */
  readonly withdraw: (orderId: string) => Promise<void>
  /** Returns the users that the service keeps itself. Throws NOT_ENABLED if the application keeps them. */
  readonly requireUsers: () => KeptUsers
  /** Rejects with ORDER_REJECTED if the order is taken back. */
  readonly requireStanding: (orderId: string) => Promise<void>
}

/** One call about an order. */
export interface OrderCall {
  readonly request: RequestContext
  readonly parts: OrderParts
}

/** The call that finalizes an order. */
export interface FinalizeCall extends OrderCall {
  readonly desktopToken: string
}

/** What a new order is made of, in addition to its options. */
export interface OrderBeginning {
  readonly requester: Requester
  /** What its record has by its recipe. */
  readonly own: { [Name in RecipeName]: Pick<OrdersByRecipe[Name], 'kind' | 'starter' | 'inboxUserId'> }[RecipeName]
  /** Set-Cookie header values. */
  readonly cookies?: readonly string[]
}

/** A finalized order, with the proof that approved it. */
export interface FinalizedOrder {
  readonly order: OrderRecord
  readonly proof: StoredProof
  readonly identity: ProvenIdentity
  /** Whether it was finalized before this call. */
  readonly repeated: boolean
}

/** What a finalized order gives its desktop. `cookies` are Set-Cookie header values. */
export type OrderYield =
  | { readonly kind: 'login'; readonly issued: IssuedSession }
  | { readonly kind: 'sign'; readonly proofArtifact: ProofArtifact }
  | { readonly kind: 'link'; readonly wallet: ListedWallet; readonly cookies: readonly string[] }

/** A field of StartOrder that not every recipe takes. */
export type OptionalField = Exclude<keyof StartOrderOptions, 'kind' | 'adapterId' | 'returnTo'>

/** How orders of a recipe differ from all others, as far as no order is needed to say so. */
export interface OrderRules {
  /** Orders that follow it, in the words of a refusal. */
  readonly label: string
  /** Purpose of the signature, in the text that the wallet signs. */
  readonly action: ChallengeAction
  /** Fields of StartOrder that it takes, in addition to `kind`, `adapterId` and `returnTo`. */
  readonly takes: readonly OptionalField[]
  /**
   * Whether a phone claims the order from a computer's screen. It then has a claim URL and a code, and the networks of
   * phone and computer are compared. Otherwise it waits in the inbox of its user.
   */
  readonly scanned: boolean
  /** Whether the service's own pages start such orders without a start key. */
  readonly startsOnOwnPages?: true
  /**
   * Whether its recipe counts its start, once the session is known: a call without one takes nothing from the users of
   * its network. Absent: the start counts on the limit `start-order`, before anything is done for it.
   */
  readonly countsOwnStart?: true
  /** Whether finalizing takes a return code, whatever the setting says. */
  readonly alwaysReturnCode?: true
  /** Whether the computer can become known. */
  readonly remembersComputer?: true
  /** Whether the proof keeps the signed text, if that is another than the order's. */
  readonly keepsSignedText?: true
  /** Whether the event `approved` names the wallet. */
  readonly showsWallet?: true
  /**
   * Whether finalizing takes a key, which gets the result again until the order is forgotten. Otherwise a desktop gets
   * it again for a minute.
   */
  readonly takesFinalizeKey?: true
  /** Default lifetime in seconds. Absent: as the settings say. */
  readonly ttlSeconds?: number
  /** Least time in ms for an approved order to be finalized. Absent: as its return code needs. */
  readonly finishMs?: number
}

/** The user and the session that an order is about, as far as it names them. */
export interface OrderSubject {
  readonly userId?: string
  readonly sessionId?: string
}

/** How orders of a recipe differ from all others. */
export interface Recipe<Name extends RecipeName> extends OrderRules {
  /** Admits the start of an order. Rejects with NOT_ENABLED, and for a caller who may not start one. */
  begin(input: StartOrderOptions, call: OrderCall): Promise<OrderBeginning>
  /** Stores a new order. Absent: it is stored in the records alone. */
  create?(order: OrdersByRecipe[Name], startKeyId: string, call: OrderCall): Promise<void>
  /**
   * Records where a stored order waits for its user, and returns the address of that page. Absent for scanned orders.
   */
  announce?(order: OrdersByRecipe[Name], call: OrderCall): string
  /** Refuses a phone's token that does not count any more. Absent: it counts while the order has it. */
  requireHolder?(order: OrdersByRecipe[Name], challengeTokenHash: string, call: OrderCall): Promise<void>
  /** What the phone is shown in addition. */
  shown?(order: OrdersByRecipe[Name]): Pick<OrderChallenge, 'sessionAccount' | 'fromInbox'>
  /** Refuses a wallet that cannot approve the order now, in addition to blocked ones. */
  requireApprover?(order: OrdersByRecipe[Name], identity: ProvenIdentity, call: OrderCall): Promise<void>
  /** Called once the order is approved or over. */
  leave?(order: OrdersByRecipe[Name], call: OrderCall): Promise<void>
  /**
   * Finds or makes the user of a login, before the order is finalized. Absent: the wallet must still be one that can
   * approve the order.
   */
  resolve?(order: OrdersByRecipe[Name], identity: ProvenIdentity, call: FinalizeCall): Promise<OrderLogin>
  /**
   * Admits a caller who has the desktop token, and returns the function that makes what the desktop gets, each time
   * anew.
   */
  finalize(order: OrdersByRecipe[Name], call: FinalizeCall): Promise<(finalized: FinalizedOrder) => Promise<OrderYield>>
  /**
   * Undoes what a finalized order has made or is about to make. Can be repeated. Absent: a finalized order cannot be
   * taken back.
   */
  takeBack?(order: OrdersByRecipe[Name], identity: ProvenIdentity, call: OrderCall): Promise<TakeBackOutcome>
  subject(order: OrdersByRecipe[Name]): OrderSubject
}
