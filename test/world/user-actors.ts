import type { NonceRecord } from '../../src/core/sign-in/nonce.ts'
import type { Held } from './facts.ts'
import type { Random } from './random.ts'
import { Caller } from './scene.ts'
import { appOrigin, request } from './service.ts'
import type { Wallet } from './wallets.ts'
import { maxOffsetMs } from './world.ts'

/** A user at a browser with wallets: signs in directly, links and unlinks, ends sessions. */
export class User extends Caller {
  #nonce: { readonly nonce: NonceRecord; readonly wallet: Wallet; readonly name: string } | undefined
  #link: { readonly nonce: NonceRecord; readonly wallet: Wallet; readonly held: Held } | undefined
  #sessions: Held[] = []

  protected begin(random: Random): unknown {
    const { facts } = this.scene
    this.#sessions = this.#sessions.filter(({ session }) => facts.isLive(session.id)).slice(-4)
    const held = this.#sessions.length === 0 ? undefined : random.pick(this.#sessions)
    const choice = random.below(100)
    if (this.#nonce !== undefined && (held === undefined || choice < 30)) return this.#verify(random)
    if (held === undefined || choice < 15) return this.#issue(random)
    if (choice < 25) return this.#use(held, random)
    if (choice < 33) return this.#list(held, random)
    if (choice < 38) return this.#signOut(held, random)
    if (choice < 45) return this.#revoke(held, random)
    if (choice < 55) return this.#issueLink(held, random)
    if (choice < 72) return this.#linkWallet(random)
    if (choice < 86) return this.#unlink(held, random)
    return this.#listWallets(held, random)
  }

  #issue(random: Random): void {
    const wallet = random.pick(this.scene.wallets)
    const name = `nonce ${++this.scene.count}`
    this.do(
      random,
      `asks for ${name}`,
      (domain) => domain.signIn.issueNonce(undefined, {}, request(appOrigin)),
      (outcome) => {
        if (outcome.kind === 'answered') this.#nonce = { nonce: outcome.value, wallet, name }
      },
    )
  }

  #verify(random: Random): void {
    const { scene } = this
    const { facts } = scene
    const asked = this.#nonce
    if (asked === undefined) return
    const { nonce, wallet, name } = asked
    // Some try twice.
    if (random.permille(600)) this.#nonce = undefined
    let began = scene.world.now
    this.do(
      random,
      `signs in with ${wallet.name} by ${name}`,
      (domain) => {
        began = scene.world.now
        return domain.signIn.verify(nonce.nonceId, wallet.prove(nonce.message), request(appOrigin))
      },
      (outcome) => {
        if (outcome.kind === 'refused') return
        const { value } = outcome
        facts.require(began < nonce.expiresAt + 2 * maxOffsetMs, `${name} is good for too long`)
        const held = facts.hold(value, this.name)
        this.#sessions.push(held)
        scene.direct.push(held)
        if (scene.direct.length > 6) scene.direct.shift()
        scene.users.add(value.session.userId)
      },
      name,
    )
  }

  #use(held: Held, random: Random): void {
    const { facts } = this.scene
    this.do(
      random,
      'uses a session',
      (domain) => domain.host.currentSession(request(appOrigin, held.token)),
      (outcome) => {
        if (outcome.kind === 'refused') return
        facts.require(outcome.value.session.id === held.session.id, 'a token leads to another session')
        facts.hold({ ...held, cookies: [] }, `${this.name}, by a call,`)
      },
    )
  }

  #list(held: Held, random: Random): void {
    const { facts } = this.scene
    const { userId } = held.session
    this.do(
      random,
      'lists its sessions',
      (domain) => domain.host.listSessions(userId, request(appOrigin, held.token)),
      (outcome) => {
        if (outcome.kind === 'refused') return
        const listed = new Set(outcome.value.map(({ id }) => id))
        for (const { session } of facts.live) {
          // One that was made during the call may be missing.
          if (session.userId !== userId || session.createdAt > held.session.createdAt) continue
          facts.require(listed.has(session.id) || !facts.isLive(session.id), 'a live session is missing in the list')
        }
      },
    )
  }

  #signOut(held: Held, random: Random): void {
    const { id } = held.session
    const done = this.scene.facts.ban('a user signs out', (session) => session.id === id)
    this.do(
      random,
      'signs out',
      (domain) => domain.host.signOut(request(appOrigin, held.token)),
      () => {
        this.scene.facts.require(!this.scene.facts.isLive(id), 'a session is live after its sign-out')
        done()
      },
    )
  }

  #revoke(held: Held, random: Random): void {
    const { facts } = this.scene
    const { userId, id } = held.session
    const others = facts.live.filter(({ session }) => session.userId === userId && session.id !== id)
    if (others.length === 0) return
    const other = random.pick(others).session.id
    this.do(
      random,
      'ends another session',
      (domain) => domain.host.revokeSession(userId, other, request(appOrigin, held.token)),
      () => facts.require(!facts.isLive(other), 'a session is live after it was ended'),
    )
  }

  #issueLink(held: Held, random: Random): void {
    const wallet = random.pick(this.scene.wallets)
    this.do(
      random,
      `asks to link ${wallet.name}`,
      (domain) =>
        (domain.wallets as NonNullable<typeof domain.wallets>).links.issueNonce(
          undefined,
          {},
          request(appOrigin, held.token),
        ),
      (outcome) => {
        if (outcome.kind === 'answered') this.#link = { nonce: outcome.value.challenge, wallet, held }
      },
    )
  }

  #linkWallet(random: Random): void {
    const link = this.#link
    if (link === undefined) return
    this.#link = undefined
    const { nonce, wallet, held } = link
    this.do(random, `links ${wallet.name}`, (domain) =>
      (domain.wallets as NonNullable<typeof domain.wallets>).link(
        nonce.nonceId,
        wallet.prove(nonce.message),
        request(appOrigin, held.token),
      ),
    )
  }

  #unlink(held: Held, random: Random): void {
    const { facts } = this.scene
    const { userId } = held.session
    const wallets = facts.walletsOf(userId)
    if (wallets.length === 0) return
    const subject = random.pick(wallets)
    const wallet = this.scene.wallets.find(({ publicKeyHex }) => publicKeyHex === subject)
    const done = facts.ban(`${wallet?.name} is unlinked`, (session) => session.subject === subject)
    let began = ''
    this.do(
      random,
      `unlinks ${wallet?.name}`,
      (domain) => {
        began = JSON.stringify(facts.userOf(userId)?.wallets.length)
        return (domain.wallets as NonNullable<typeof domain.wallets>).unlink(
          'ed25519',
          this.scene.addressOf(subject),
          request(appOrigin, held.token),
        )
      },
      (outcome) => {
        if (outcome.kind === 'answered' || ['WALLET_NOT_FOUND', 'LAST_WALLET'].includes(outcome.reason)) done()
        if (outcome.kind !== 'answered' || this.scene.moved.has(userId) || began === '') return
        facts.require(facts.walletsOf(userId).length > 0, 'a user unlinks the last wallet')
      },
    )
  }

  #listWallets(held: Held, random: Random): void {
    const { facts } = this.scene
    this.do(
      random,
      'lists its wallets',
      (domain) => (domain.wallets as NonNullable<typeof domain.wallets>).list(request(appOrigin, held.token)),
      (outcome) => {
        if (outcome.kind === 'refused') return
        this.scene.listed(
          held.session.userId,
          outcome.value.wallets.map(({ publicKeyHex }) => publicKeyHex),
        )
        facts.require(outcome.value.wallets.length <= 20, 'a user has too many wallets')
      },
    )
  }
}
