import { newestTransition } from '../../src/core/order/order.ts'
import { deadlineOf, forgottenAt, isTerminal } from '../../src/core/order/states.ts'
import { Facts } from './facts.ts'
import { runIssuerWorld, stepsOfIssuerWorld } from './issuer/run.ts'
import { Operator } from './operator.ts'
import { Agent, Computer, Phone } from './order-actors.ts'
import { Random } from './random.ts'
import type { Caller, Scene } from './scene.ts'
import { Service } from './service.ts'
import { Thief } from './thief.ts'
import { User } from './user-actors.ts'
import { Wallet } from './wallets.ts'
import { type Faults, maxOffsetMs, noFaults, type Played, Violation, World } from './world.ts'

/** Steps of a world, unless another number is asked for. Long worlds end in what few faults lead to. */
export const stepsOfWorld = 600

/** How a world is run. */
export interface Run {
  readonly seed: number
  /** Most steps of the scheduler. */
  readonly steps: number
  /** Whether faults stop in the middle, and what was begun must come to its end. */
  readonly liveness: boolean
  /** Names of actors that do nothing. */
  readonly idle?: readonly string[]
  /** Whether it is a world with an issuer, in place of one with orders. */
  readonly issuer?: boolean
}

/** What came of a world. */
export interface Ran extends Played {
  readonly orders: number
  readonly states: ReadonlySet<string>
}

/** The second has the key of the first, and is another wallet. */
const wallets = [new Wallet(1), new Wallet(1, 'nimiq'), ...[2, 3, 4].map((number) => new Wallet(number))]

/** The numbers of the steps that a seed leads to. */
function numbersOf({ seed, steps }: Run): number[] {
  const random = new Random(seed)
  return Array.from({ length: steps }, () => random.next())
}

/** Steps of a world of a kind, unless another number is asked for. */
export function stepsOf({ issuer = false }: Pick<Run, 'issuer'>): number {
  return issuer ? stepsOfIssuerWorld : stepsOfWorld
}

/** Runs the world of a seed. With `numbers`, these steps in place of those that follow from the seed. */
export async function runWorld(run: Run, numbers: readonly number[] = numbersOf(run)): Promise<Ran> {
  if (run.issuer) return await runIssuerWorld(run, numbers)
  const random = new Random(run.seed ^ 0x5eed)
  const facts = new Facts(wallets)
  const world = new World(run.seed, faultsOf(random), (...change) => facts.onWrite(...change))
  facts.follow(world)
  world.idle = new Set(run.idle)
  const played = await world.play(numbers, async (steps) => {
    const actors = peopled(world, facts, random)
    await steps()
    if (run.liveness) await comeToAnEnd(world, facts, actors)
  })
  return { ...played, orders: facts.orders.size, states: facts.states }
}

/** Each world has some faults often, and others never: together they would keep anything from happening. */
function faultsOf(random: Random): Faults {
  const some = (share: number): number => (random.permille(500) ? share : 0)
  return {
    ...noFaults,
    lostBefore: some(20),
    lostAfter: some(20),
    lateAnswer: some(400),
    lostWake: some(200),
    doubleWake: some(200),
    crash: some(8),
    clockJump: some(10),
    leap: some(6),
    slow: random.pick([0, 60, 300]),
  }
}

/** In how many of 1,000 worlds an actor is there, by what the world is about. */
type Share = Readonly<Record<Scene['focus'], number>>

const always: Share = { all: 1000, users: 1000, links: 1000, inbox: 1000, people: 1000 }

/** Puts a service and actors into a world. */
function peopled(world: World, facts: Facts, random: Random): readonly Caller[] {
  const focus = random.pick(['all', 'all', 'users', 'links', 'links', 'inbox', 'people'] as const)
  const kind = {
    confirmationCode: random.pick(['compare', 'return'] as const),
    takesStartKey: focus === 'inbox' || random.permille(focus === 'people' ? 700 : 350),
    admitsPeople: focus === 'people' || random.permille(focus === 'inbox' ? 500 : 250),
  }
  const service = new Service(world, kind, 2)
  service.list(wallets)
  if (kind.admitsPeople) facts.list(wallets)
  const least = focus === 'all' ? 1 : 2
  const few = wallets.slice(0, least + random.below(focus === 'all' ? wallets.length : focus === 'people' ? 2 : 3))
  const scene: Scene = {
    world,
    service,
    facts,
    focus,
    wallets: few,
    orders: [],
    users: new Set(),
    direct: [],
    sessions: [],
    nonces: [],
    moved: new Set(),
    typesBadly: random.permille(200),
    isStopped: false,
    count: 0,
  }
  world.deadlines = () => [
    ...scene.nonces.map(({ nonce }) => nonce.expiresAt),
    ...scene.sessions.flatMap(({ session }) => [session.createdAt + 600_000, session.expiresAt]),
    ...scene.orders.slice(-4).flatMap(({ orderId }) => {
      const newest = facts.orders.get(orderId)?.versions.at(-1)
      return newest === undefined ? [] : [deadlineOf(newest), newestTransition(newest).at + 60_000]
    }),
  ]
  const some = <Made extends Caller>(share: Share, make: () => Made): Caller[] =>
    random.permille(share[focus]) ? [make()] : []
  return [
    ...some({ all: 850, users: 0, links: 1000, inbox: 100, people: 0 }, () => new Computer('computer 1', scene, 0)),
    ...some({ all: 400, users: 0, links: 0, inbox: 0, people: 0 }, () => new Computer('computer 2', scene, 1)),
    ...some(
      { all: 900, users: 0, links: 1000, inbox: 1000, people: 1000 },
      () => new Phone('phone 1', scene, random.pick(few)),
    ),
    ...some(
      { all: 600, users: 0, links: 300, inbox: 500, people: 300 },
      () => new Phone('phone 2', scene, random.pick(few)),
    ),
    ...some({ all: 450, users: 100, links: 0, inbox: 100, people: 0 }, () => new Thief('the thief', scene)),
    ...some({ all: 600, users: 1000, links: 1000, inbox: 1000, people: 1000 }, () => new User('user 1', scene)),
    ...some({ all: 400, users: 1000, links: 300, inbox: 300, people: 1000 }, () => new User('user 2', scene)),
    ...(kind.takesStartKey
      ? [
          ...some({ all: 900, users: 0, links: 0, inbox: 1000, people: 1000 }, () => new Agent('backend 1', scene)),
          ...some({ all: 0, users: 0, links: 0, inbox: 700, people: 0 }, () => new Agent('backend 2', scene)),
        ]
      : []),
    ...some(kind.admitsPeople ? always : { all: 350, users: 800, links: 100, inbox: 200, people: 1000 }, () => {
      return new Operator('the operator', scene)
    }),
  ]
}

/** Faults have stopped: what was begun comes to its end. */
async function comeToAnEnd(world: World, facts: Facts, actors: readonly Caller[]): Promise<void> {
  const random = new Random(1)
  const faultsEndedAt = world.now
  for (let rounds = 0; actors.filter((actor) => actor.retry(random)).length > 0; rounds++) {
    if (rounds > 50) throw new Violation('calls are repeated for ever')
    await world.drain()
  }
  // Longer than an order lives, and than it is remembered. Its watchers look again with each heartbeat.
  for (let rounds = 0; world.watched.length > 0; rounds++) {
    if (rounds > 400) throw new Violation('a watch does not come to its end')
    await world.pass(20_000)
    await world.drain()
    const late = world.watched.find((orderId) => {
      const newest = facts.orders.get(orderId)?.versions.at(-1)
      return newest !== undefined && isTerminal(newest.status) && rounds > 3
    })
    if (late !== undefined) throw new Violation(`a watch of ${facts.orders.get(late)?.name} is later than a heartbeat`)
  }
  for (const { name, versions } of facts.orders.values()) {
    const newest = versions.at(-1)
    // Once an order is forgotten, its phone comes back too late.
    if (newest === undefined || forgottenAt(newest) < faultsEndedAt + 2 * maxOffsetMs) continue
    if (newest.takenBack !== undefined && Object.keys(newest.takenBack).length === 0) {
      throw new Violation(`${name} is taken back, and nothing becomes of it`)
    }
  }
  const isMoving = [...world.store.found('wallet:')].some(({ value }) => value.includes('"movedFrom"'))
  if (isMoving) throw new Violation('a move of a wallet does not come to its end')
  facts.checkHeld('at the end')
}
