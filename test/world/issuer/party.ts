import type { Random } from '../random.ts'
import type { Wallet } from '../wallets.ts'
import { type Outcome, RetryingActor, type World } from '../world.ts'
import type { Application } from './application.ts'
import type { Browser } from './browser.ts'
import type { Facts } from './facts.ts'
import type { Running, Service } from './service.ts'
import type { Terminal } from './terminal.ts'

/** What the actors of a world with an issuer share. */
export interface Scene {
  readonly world: World
  readonly service: Service
  readonly facts: Facts
  readonly wallets: readonly Wallet[]
  readonly browsers: Browser[]
  readonly applications: readonly Application[]
  readonly terminals: Terminal[]
  /** Counts what gets a name. */
  count: number
}

/** An actor that makes calls at any process. */
export abstract class Party extends RetryingActor {
  readonly scene: Scene

  constructor(name: string, scene: Scene) {
    super(name, scene.world)
    this.scene = scene
  }

  /** What remains to be done once faults have stopped: begins a step, or returns false. */
  finish(random: Random): boolean {
    return this.retry(random)
  }

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
}
