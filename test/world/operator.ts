import { AdminActions } from '../../src/commands/admin/admin-actions.ts'
import { resolveSettings } from '../../src/service/config.ts'
import type { Random } from './random.ts'
import { Caller, type Scene } from './scene.ts'
import { isOf, type Wallet } from './wallets.ts'
import type { Instance, Outcome } from './world.ts'

const settings = resolveSettings()

/** Blocks, moves and deletes, edits the people file, restores a copy: by commands, in a process of their own. */
export class Operator extends Caller {
  readonly #instance: Instance
  readonly #actions: AdminActions
  #copy: ReturnType<Scene['world']['store']['copy']> | undefined
  #pending: ((random: Random) => void) | undefined

  constructor(name: string, scene: Scene) {
    super(name, scene)
    this.#instance = scene.world.addInstance('the command', () => {})
    this.#actions = new AdminActions(scene.world.handle(this.#instance), settings)
  }

  override act(random: Random): unknown {
    const pending = this.#pending
    this.#pending = undefined
    if (pending !== undefined) return pending(random)
    this.begin(random)
  }

  override retry(random: Random): boolean {
    const pending = this.#pending
    this.#pending = undefined
    pending?.(random)
    return pending !== undefined
  }

  protected begin(random: Random): unknown {
    const { scene } = this
    // Operators act seldom.
    if (!random.permille(scene.focus === 'people' ? 600 : 300)) return
    if (scene.service.kind.admitsPeople && random.permille(400)) return this.#editPeople(random)
    const shared = this.#shared
    const wallet = random.pick(
      shared.length > 0 && random.permille(scene.focus === 'users' ? 800 : 400) ? shared : scene.wallets,
    )
    const users = [...scene.users]
    const choice = scene.focus === 'users' && random.permille(300) ? 50 : random.below(100)
    if (choice < 25) return this.#block(wallet)
    if (choice < 45) return this.#unblock(wallet)
    if (choice < 65 && users.length > 1) return this.#move(wallet, random.pick(users))
    if (choice < 75 && users.length > 0) return this.#delete(random.pick(users))
    if (choice < 85 && users.length > 0) return this.#endSessions(random.pick(users))
    if (choice < 95) {
      this.#copy = scene.world.store.copy()
      return scene.world.note(`${this.name} makes a copy`)
    }
    if (this.#copy !== undefined) this.#restore(this.#copy, random)
  }

  /** Wallets of users who have another. */
  get #shared(): readonly Wallet[] {
    const { wallets, facts } = this.scene
    return wallets.filter(({ identity }) => {
      const userId = facts.claimOf(identity)?.userId
      return userId !== undefined && facts.walletsOf(userId).length > 1
    })
  }

  #block(wallet: Wallet): void {
    const done = this.scene.facts.ban(`${wallet.name} is blocked`, (session) => isOf(wallet, session))
    this.#command(`blocks ${wallet.name}`, () => this.#actions.users.block(wallet.identity), done)
  }

  #unblock(wallet: Wallet): void {
    this.#command(`unblocks ${wallet.name}`, () => this.#actions.users.unblock(wallet.identity))
  }

  #move(wallet: Wallet, userId: string): void {
    const { facts, moved } = this.scene
    const owner = facts.claimOf(wallet.identity)
    if (owner !== undefined && 'userId' in owner) moved.add(owner.userId)
    facts.gift(userId, wallet.id, 'the operator')
    const done = facts.ban(`${wallet.name} is moved`, (session) => isOf(wallet, session))
    this.#command(`moves ${wallet.name}`, () => this.#actions.users.move(wallet.identity, userId), done)
  }

  #delete(userId: string): void {
    const { facts } = this.scene
    const done = facts.ban('a user is deleted', (session) => session.userId === userId)
    this.#command(
      'deletes a user',
      () => this.#actions.users.delete(userId),
      () => {
        done()
        const left = facts.live.filter(({ session }) => session.userId === userId)
        facts.require(left.length === 0, 'a user is deleted, but not the sessions')
      },
    )
  }

  #endSessions(userId: string): void {
    const before = this.scene.facts.live.filter(({ session }) => session.userId === userId)
    this.#command(
      'ends the sessions of a user',
      () => this.#actions.users.endSessions(userId),
      () => {
        const left = before.filter(({ session }) => this.scene.facts.isLive(session.id))
        this.scene.facts.require(left.length === 0, 'sessions of a user are live after they were ended')
      },
    )
  }

  #editPeople(random: Random): void {
    const { wallets, service, world } = this.scene
    // Often only a wallet is left out whose user has another.
    const shared = this.#shared
    const out = shared.length > 0 && random.permille(500) ? random.pick(shared) : undefined
    const listed = wallets.filter((wallet) => (out === undefined ? random.permille(700) : wallet !== out))
    service.list(listed)
    this.scene.facts.list(listed)
    world.note(`${this.name} lists ${listed.map(({ name }) => name).join(', ')}`)
  }

  /** All processes stop; what a copy must not revive is dropped; then they start. */
  #restore(copy: ReturnType<Scene['world']['store']['copy']>, random: Random): void {
    const { world, facts } = this.scene
    this.#copy = undefined
    world.note(`${this.name} restores a copy`)
    world.crashAll(random)
    world.store.restore(copy)
    facts.restored()
    this.scene.orders.length = 0
    this.scene.direct.length = 0
    this.scene.sessions.length = 0
    this.scene.nonces.length = 0
    this.scene.users.clear()
    this.scene.isStopped = true
    this.#command(
      'drops what a copy must not revive',
      () => this.#actions.dropPast(false),
      () => {
        this.scene.isStopped = false
        // Users and wallets stay, and for ten minutes the list of applications of a user who was deleted.
        const left = [...world.store.found('')].filter(({ key }) => !/^(user|wallet|apps-of):/.test(key))
        facts.require(left.length === 0, `a restored copy has ${left[0]?.key.split(':')[0]} of before`)
      },
    )
  }

  /** A command of an operator is repeated until it ends. */
  #command(words: string, run: () => Promise<unknown>, done: () => void = () => {}): void {
    const attempt = (): void => {
      const finish = (outcome: Outcome<unknown>): void => {
        if (outcome.kind === 'lost') this.#pending = attempt
        else done()
        this.scene.facts.checkHeld(`${this.name} ${words}`)
      }
      this.scene.world.call(this, words, this.#instance, run, finish)
    }
    attempt()
  }
}
