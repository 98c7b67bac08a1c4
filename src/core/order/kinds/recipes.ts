import type { RequestContext } from '../../../base/request.ts'
import type { OrderChallenge, ProofArtifact, StartOrderOptions } from '../../../shared/orders.ts'
import type { ChallengeAction } from '../../challenge-text.ts'
import type { ListedWallet } from '../../sign-in/user-wallets.ts'
import type { IssuedSession } from '../../users/host.ts'
import type { ProvenIdentity } from '../../wallet/wallet.ts'
import type { Admission } from '../admission.ts'
import type { OrderComputers } from '../known-computers.ts'
import type { OrderLogin, OrderRecord, OrdersByRecipe, RecipeName, StoredProof, TakeBackOutcome } from '../order.ts'
import type { KeptUsers, OrdersOptions } from '../orders.ts'
import type { OptionalField, Requester } from '../start.ts'
import { inbox } from './inbox.ts'
import { link } from './link.ts'
import { login } from './login.ts'
import { sign } from './sign.ts'

/** What a step of an order works with. */
export interface OrderParts extends Omit<OrdersOptions, 'computers' | 'watches'> {
  readonly admission: Admission
  readonly computers: OrderComputers
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
  /** The user and the session that the order is about, as far as it names them. */
  subject(order: OrdersByRecipe[Name]): { readonly userId?: string; readonly sessionId?: string }
}

/** Recipes by their names. */
type Recipes = { readonly [Name in RecipeName]: Recipe<Name> }

const recipes = { login, sign, inbox, link } satisfies Recipes

/** The recipe of a new order. */
export function recipeFor({
  kind,
  inboxUserId,
}: StartOrderOptions): Pick<Recipe<RecipeName>, keyof OrderRules | 'begin'> {
  return kind === 'sign' && inboxUserId !== undefined ? recipes.inbox : recipes[kind]
}

/** Calls a function with the recipe of an order, and with the order as a record of that recipe. */
export function withRecipe<Result>(
  order: OrderRecord,
  use: <Name extends RecipeName>(recipe: Recipe<Name>, order: OrdersByRecipe[Name]) => Result,
): Result {
  switch (order.kind) {
    case 'login':
      return use(recipes.login, order)
    case 'sign':
      return order.inboxUserId === undefined ? use(recipes.sign, order) : use(recipes.inbox, order)
    case 'link':
      return use(recipes.link, order)
  }
}

/** The rules of an order's recipe. */
export function rulesOf(order: OrderRecord): OrderRules {
  return withRecipe<OrderRules>(order, (recipe) => recipe)
}
