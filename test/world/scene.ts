import type { ServiceDomain } from '../../src/service/domain.ts'
import type { OrderStatus, StartedOrder } from '../../src/shared/orders.ts'
import type { Facts, Held } from './facts.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'
import type { Wallet } from './wallets.ts'
import type { Actor, Outcome, World } from './world.ts'

/** An order as its computer and phones know it. */
export interface KnownOrder extends StartedOrder {
  readonly name: string
  readonly computer: Actor
  /** Token of the session that started it: a link order's. */
  readonly starter?: string
  readonly computerNumber?: number | undefined
  readonly finalizeKey?: string
  /** The code that the phone shows. */
  returnCode?: string | undefined
  /** Challenge tokens, oldest first: the last one is in force. */
  readonly tokens: string[]
  readonly tickets: string[]
}

/** What the actors of a world share. */
export interface Scene {
  readonly world: World
  readonly service: Service
  readonly facts: Facts
  readonly wallets: readonly Wallet[]
  readonly orders: KnownOrder[]
  /** Ids of users that have been seen. */
  readonly users: Set<string>
  /** Sessions that users got by signing in directly. */
  readonly direct: Held[]
  /** Ids of users from whom an operator moved a wallet away. */
  readonly moved: Set<string>
  /** Whether the service waits for a copy to be restored. */
  isStopped: boolean
  /** Counts what gets a name. */
  count: number
  /** The address of a wallet. */
  addressOf(subject: string): string
  /** Notes which wallets a user was shown. */
  listed(userId: string, subjects: readonly string[]): void
}

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

/** An actor that makes a call again after a lost answer, as the documented client does. */
export abstract class Caller implements Actor {
  readonly name: string
  readonly scene: Scene
  /** Calls without an answer. */
  readonly #again: ((random: Random) => void)[] = []

  constructor(name: string, scene: Scene) {
    this.name = name
    this.scene = scene
    scene.world.add(this)
  }

  act(random: Random): unknown {
    if (this.scene.isStopped) return
    // Some come back late, or never.
    if (random.permille(900) && this.retry(random)) return
    this.begin(random)
  }

  /** Makes a call again that got no answer. Returns false if there is none. */
  retry(random: Random): boolean {
    const again = this.#again.pop()
    again?.(random)
    return again !== undefined
  }

  /** Makes a call of its own choice. */
  protected abstract begin(random: Random): unknown

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
        if (outcome.kind === 'lost') this.#again.push(attempt)
        else done(outcome)
        facts.checkHeld(`${this.name} ${words}`)
      }
      world.call(this, words, instance, () => run(domain), finish, { subject })
    }
    attempt(random)
  }
}
