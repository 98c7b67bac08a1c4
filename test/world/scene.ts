import type { NonceRecord } from '../../src/core/sign-in/nonce.ts'
import type { ServiceDomain } from '../../src/service/domain.ts'
import type { OrderStatus, StartedOrder } from '../../src/shared/orders.ts'
import type { Facts, Held } from './facts.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'
import type { Wallet } from './wallets.ts'
import { type Actor, maxOffsetMs, type Outcome, RetryingActor, type World } from './world.ts'

/** An order as its computer and phones know it. */
export interface KnownOrder extends StartedOrder {
  readonly name: string
  readonly computer: Actor
  /** Token of the session that started it: a link order's. */
  readonly starter?: string
  /** The user who started it, or whose inbox has it. */
  readonly userId?: string
  /** Whether a phone has wanted its computer to be remembered. */
  remembers?: boolean
  readonly computerNumber?: number | undefined
  readonly finalizeKey?: string
  /** The code that the phone shows. */
  returnCode?: string | undefined
  /**
   * Challenge tokens, oldest first, and tickets, each with the session by which it counts: of an order from an inbox, the
   * one that claimed it, also after a hand-over.
   */
  readonly tokens: Map<string, Held | undefined>
  readonly tickets: Map<string, Held | undefined>
}

/** A nonce, with the wallet that it was asked for. */
export interface KnownNonce {
  readonly name: string
  readonly nonce: NonceRecord
  readonly wallet: Wallet
}

/** What the actors of a world share. */
export interface Scene {
  readonly world: World
  readonly service: Service
  readonly facts: Facts
  /** What most calls are about: a world with few actors comes to what few calls at once lead to. */
  readonly focus: 'all' | 'users' | 'links' | 'inbox' | 'people'
  readonly wallets: readonly Wallet[]
  readonly orders: KnownOrder[]
  /** Ids of users that have been seen. */
  readonly users: Set<string>
  /** Sessions that users got by signing in directly. */
  readonly direct: Held[]
  /** Those, and sessions that orders made. */
  readonly sessions: Held[]
  /** Nonces that are known. */
  readonly nonces: KnownNonce[]
  /** Ids of users from whom an operator moved a wallet away. */
  readonly moved: Set<string>
  /** Whether most return codes are typed wrong. */
  readonly typesBadly: boolean
  /** Whether the service waits for a copy to be restored. */
  isStopped: boolean
  /** Counts what gets a name. */
  count: number
}

/** Notes that a session is known; of each list, the newest stay. */
export function know({ sessions, direct, users }: Scene, held: Held): void {
  const { orderId, userId } = held.session
  for (const list of orderId === undefined ? [sessions, direct] : [sessions]) {
    list.push(held)
    if (list.length > 6) list.shift()
  }
  users.add(userId)
}

/** Refuses that a session was enough to change a user's wallets which an order made, or which is not fresh. */
export function requireDirect({ facts }: Scene, { session }: Held, began: number, words: string): void {
  facts.require(session.orderId === undefined, `${words} with a session that an order made`)
  facts.require(began - session.createdAt < freshMs + 2 * maxOffsetMs, `${words} with a session that is not fresh`)
}

const freshMs = 10 * 60_000

/** One of the newest orders that fit. */
export function recent(
  scene: Scene,
  random: Random,
  fits: (order: KnownOrder) => boolean = () => true,
): KnownOrder | undefined {
  const found = scene.orders.slice(-8).filter(fits)
  return found.length === 0 ? undefined : random.pick(found)
}

export function statusOf({ facts }: Scene, { orderId }: KnownOrder): OrderStatus | undefined {
  return facts.orders.get(orderId)?.versions.at(-1)?.status
}

/** An actor that makes calls at any instance. */
export abstract class Caller extends RetryingActor {
  readonly scene: Scene

  constructor(name: string, scene: Scene) {
    super(name, scene.world)
    this.scene = scene
  }

  override act(random: Random): unknown {
    return this.scene.isStopped ? undefined : super.act(random)
  }

  override retry(random: Random): boolean {
    return !this.scene.isStopped && super.retry(random)
  }

  /** Makes a call at any instance, and again after a lost answer. */
  do<Value>(
    random: Random,
    words: string,
    run: (domain: ServiceDomain) => Promise<Value>,
    done: (outcome: Exclude<Outcome<Value>, { kind: 'lost' }>) => void = () => {},
    subject = '',
  ): void {
    const { world, service, facts } = this.scene
    const attempt = (again: Random): void => {
      const { instance, domain } = service.any(again)
      const finish = (outcome: Outcome<Value>): void => {
        if (outcome.kind === 'lost') this.later(attempt)
        else done(outcome)
        facts.checkHeld(`${this.name} ${words}`)
      }
      world.call(this, words, instance, () => run(domain), finish, { subject })
    }
    attempt(random)
  }
}
