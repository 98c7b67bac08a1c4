import { hashToken } from '../../../src/base/token.ts'
import { AdminActions } from '../../../src/commands/admin/admin-actions.ts'
import { resolveSettings } from '../../../src/service/config.ts'
import type { Random } from '../random.ts'
import { isOf, type Wallet } from '../wallets.ts'
import type { Instance, Outcome } from '../world.ts'
import type { Holding } from './facts.ts'
import { editedFiles, wholeFiles } from './files.ts'
import { Party, type Scene } from './party.ts'
import type { Service } from './service.ts'

/** Keys of what a restored copy keeps. */
const kept = /^(user|wallet|app|apps-of|oidc:signing-keys)\b/

/** A copy of the store, and when it was made. */
interface Copy {
  readonly content: ReturnType<Scene['world']['store']['copy']>
  readonly moment: number
}

/** Blocks and moves wallets, deletes users, ends sessions, restores a copy: by commands, in a process of their own. */
export class Operator extends Party {
  readonly #instance: Instance
  readonly #actions: AdminActions
  /** Blocks in force, by the wallet's id. */
  readonly #blocks = new Map<string, object>()
  #copy: Copy | undefined

  constructor(name: string, scene: Scene) {
    super(name, scene)
    this.#instance = scene.world.addInstance('the command', () => {})
    this.#actions = new AdminActions(scene.world.handle(this.#instance), resolveSettings())
  }

  /** A command is repeated until it ends, before the next. */
  override act(random: Random): void {
    if (!this.retry(random)) this.begin(random)
  }

  protected begin(random: Random): unknown {
    const { wallets, browsers, world, facts, service } = this.scene
    if (random.permille(service.files.admitsPeople ? 200 : 40)) return this.#edit(service, random)
    // Operators act seldom.
    if (!random.permille(60)) return
    const wallet = random.pick(wallets)
    if (this.#blocks.has(wallet.id) && random.permille(700)) return this.#unblock(wallet)
    const choice = random.below(100)
    if (choice < 25) return this.#block(wallet)
    if (choice < 70) {
      const sessions = browsers.flatMap((each) => each.sessions.slice(-2))
      if (sessions.length === 0) return
      const { userId } = random.pick(sessions).session
      if (choice < 40) return this.#move(wallet, userId)
      return choice < 55 ? this.#delete(userId) : this.#endSessions(userId)
    }
    if (choice < 90 || this.#copy === undefined) {
      this.#copy = { content: world.store.copy(), moment: facts.tick() }
      return world.note(`${this.name} makes a copy`)
    }
    this.#restore(this.#copy, random)
  }

  /** Each process reads the files again when its time comes. */
  #edit(service: Service, random: Random): void {
    const { wallets, facts, world } = this.scene
    const { admitsPeople } = service.files
    service.files = random.permille(500)
      ? editedFiles(wallets, admitsPeople, random)
      : wholeFiles(wallets, admitsPeople)
    service.edit++
    facts.edited(service.files)
    world.note(`${this.name} edits the files`)
  }

  #block(wallet: Wallet): void {
    const block = {}
    this.#blocks.set(wallet.id, block)
    const lasts = (): boolean => this.#blocks.get(wallet.id) === block
    const take = this.#taking('its wallet is blocked', ({ session }) => isOf(wallet, session), lasts)
    this.#command(`blocks ${wallet.name}`, () => this.#actions.users.block(wallet.identity), take)
  }

  #unblock(wallet: Wallet): void {
    this.#blocks.delete(wallet.id)
    this.#command(`unblocks ${wallet.name}`, () => this.#actions.users.unblock(wallet.identity))
  }

  #move(wallet: Wallet, userId: string): void {
    const take = this.#taking(
      'its wallet is moved',
      ({ session }) => isOf(wallet, session) && session.userId !== userId,
    )
    this.#command(`moves ${wallet.name}`, () => this.#actions.users.move(wallet.identity, userId), take)
  }

  #delete(userId: string): void {
    const { facts, world } = this.scene
    const fits = ({ session }: Pick<Holding, 'session'>): boolean => session.userId === userId
    const began = facts.tick()
    const take = this.#taking('its user is deleted', fits)
    this.#command(
      'deletes a user',
      () => this.#actions.users.delete(userId),
      (isDone) => {
        take(isDone)
        facts.takeBackConsents(fits, began)
        const left = [...world.store.found(`app:${hashToken(userId)}:`)].some(({ value }) =>
          value.includes('"clientId"'),
        )
        facts.require(!isDone || !left, 'a user is deleted, but not what applications have of the user')
      },
    )
  }

  #endSessions(userId: string): void {
    const take = this.#taking('its sessions are ended', ({ session }) => session.userId === userId)
    this.#command('ends the sessions of a user', () => this.#actions.users.endSessions(userId), take)
  }

  /** All processes stop; what a copy must not revive is dropped; then they start. */
  #restore({ content, moment }: Copy, random: Random): void {
    const { world, facts, service } = this.scene
    this.#copy = undefined
    this.#blocks.clear()
    world.note(`${this.name} restores a copy`)
    const take = this.#taking('a copy is restored', () => true)
    service.isStopped = true
    world.crashAll(random)
    world.store.restore(content)
    facts.restored(moment)
    this.#command(
      'drops what a copy must not revive',
      () => this.#actions.dropPast(false),
      (isDone) => {
        take(isDone)
        service.isStopped = false
        const left = [...world.store.found('')].find(({ key }) => !kept.test(key))
        facts.require(left === undefined, `a restored copy has ${left?.key} of before`)
      },
    )
  }

  /** Begins to take sessions away, with all that outlives a sign-out. */
  #taking(words: string, fits: (holding: Holding) => boolean, lasts?: () => boolean): (isDone: boolean) => void {
    return this.scene.facts.end(words, fits, { takesSessions: true, ...(lasts && { lasts }) })
  }

  #command(words: string, run: () => Promise<unknown>, done: (isDone: boolean) => void = () => {}): void {
    const attempt = (): void => {
      const finish = (outcome: Outcome<unknown>): void => {
        if (outcome.kind === 'lost') this.later(attempt)
        else done(outcome.kind === 'answered')
      }
      this.scene.world.call(this, words, this.#instance, run, finish)
    }
    attempt()
  }
}
