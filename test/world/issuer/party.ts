import type { Random } from '../random.ts'
import type { Wallet } from '../wallets.ts'
import type { Actor, Outcome, World } from '../world.ts'
import type { Application } from './application.ts'
import type { Browser } from './browser.ts'
import type { Facts } from './facts.ts'
import type { Running, Service } from './service.ts'

/** What the actors of a world with an issuer share. */
export interface Scene {
  readonly world: World
  readonly service: Service
  readonly facts: Facts
  readonly wallets: readonly Wallet[]
  readonly browsers: Browser[]
  readonly applications: readonly Application[]
  /** Counts what gets a name. */
  count: number
}

/** An actor that makes calls at any process. */
export abstract class Party implements Actor {
  readonly name: string
  readonly scene: Scene
  /** Calls without an answer that are to be made again. */
  readonly #again: ((random: Random) => void)[] = []

  constructor(name: string, scene: Scene) {
    this.name = name
    this.scene = scene
    scene.world.add(this)
  }

  act(random: Random): void {
    if (random.permille(900) && this.retry(random)) return
    this.begin(random)
  }

  /** Makes a call again that got no answer. Returns false if there is none. */
  retry(random: Random): boolean {
    const again = this.#again.pop()
    again?.(random)
    return again !== undefined
  }

  /** What remains to be done once faults have stopped: begins a step, or returns false. */
  finish(random: Random): boolean {
    return this.retry(random)
  }

  /** Makes a call of its own choice. */
  protected abstract begin(random: Random): unknown

  /** Makes a call. `done` gets `undefined` if there is no answer. */
  do<Value>(
    random: Random,
    words: string,
    run: (running: Running) => Promise<Value>,
    done: (outcome: Outcome<Value>) => void,
  ): void {
    const process = this.scene.service.any(random)
    if (process === undefined) done({ kind: 'lost' })
    else this.scene.world.call(this, words, process.instance, () => run(process.running), done)
  }

  /** Makes a call later, unless the world ends before. */
  later(again: (random: Random) => void): void {
    this.#again.push(again)
  }
}
