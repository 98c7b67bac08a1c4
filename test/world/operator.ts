import { AdminActions } from '../../src/commands/admin/admin-actions.ts'
import { People } from '../../src/core/users/people.ts'
import type { ProvenIdentity } from '../../src/core/wallet/wallet.ts'
import { resolveSettings } from '../../src/service/config.ts'
import type { Random } from './random.ts'
import { Caller, type Scene } from './scene.ts'
import type { Wallet } from './wallets.ts'
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
    if (!random.permille(300)) return
    const wallet = random.pick(scene.wallets)
    const users = [...scene.users]
    const choice = random.below(100)
    if (choice < 25) return this.#block(wallet)
    if (choice < 45) return this.#unblock(wallet)
    if (choice < 65 && users.length > 1) return this.#move(wallet, random.pick(users))
    if (choice < 75 && users.length > 0) return this.#delete(random.pick(users))
    if (choice < 82 && users.length > 0) return this.#endSessions(random.pick(users))
    if (choice < 90) return this.#editPeople(random)
    if (choice < 96) {
      this.#copy = scene.world.store.copy()
      return scene.world.note(`${this.name} makes a copy`)
    }
    if (this.#copy !== undefined) this.#restore(this.#copy, random)
  }

  #identity({ publicKeyHex }: Wallet): ProvenIdentity {
    return { adapterId: 'ed25519', subject: publicKeyHex, publicKeyHex, address: this.scene.addressOf(publicKeyHex) }
  }

  #block(wallet: Wallet): void {
    const { publicKeyHex } = wallet
    const done = this.scene.facts.ban(`${wallet.name} is blocked`, (session) => session.subject === publicKeyHex)
    this.#command(`blocks ${wallet.name}`, () => this.#actions.users.block(this.#identity(wallet)), done)
  }

  #unblock(wallet: Wallet): void {
    this.#command(`unblocks ${wallet.name}`, () => this.#actions.users.unblock(this.#identity(wallet)))
  }

  #move(wallet: Wallet, userId: string): void {
    const { facts, moved } = this.scene
    const { publicKeyHex } = wallet
    const owner = facts.claimOf('ed25519', publicKeyHex)
    if (owner !== undefined && 'userId' in owner) moved.add(owner.userId)
    facts.gift(userId, publicKeyHex, 'the operator')
    const done = facts.ban(`${wallet.name} is moved`, (session) => session.subject === publicKeyHex)
    this.#command(`moves ${wallet.name}`, () => this.#actions.users.move(this.#identity(wallet), userId), done)
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
    if (!service.kind.admitsPeople) return
    const listed = wallets.filter(() => random.permille(700))
    const names = listed.map(({ publicKeyHex }) => [`ed25519:${this.scene.addressOf(publicKeyHex)}`, {}] as const)
    service.membership.replace(new People({ byWallet: new Map(names) }))
    this.scene.facts.list(listed.map(({ publicKeyHex }) => this.scene.addressOf(publicKeyHex)))
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
        const left = [...world.store.found('')].filter(({ key }) => !/^(user|wallet):/.test(key))
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
