import type { Session } from '../../src/core/users/host.ts'
import { OwnSessions } from '../../src/core/users/own-sessions.ts'
import type { ServiceDomain } from '../../src/service/domain.ts'
import { type Held, tolerance } from './facts.ts'
import type { Random } from './random.ts'
import { Caller, type KnownNonce, know, requireDirect } from './scene.ts'
import { appOrigin, otherOrigin, request } from './service.ts'
import { isOf } from './wallets.ts'
import { maxOffsetMs } from './world.ts'

/** A user at a browser with wallets: signs in directly, links and unlinks, ends sessions. */
export class User extends Caller {
  #link: (KnownNonce & { readonly held: Held }) | undefined

  protected begin(random: Random): unknown {
    const { facts, sessions, nonces, moved, focus } = this.scene
    const live = sessions.filter(({ session }) => facts.isLive(session.id))
    const known = random.permille(100) ? sessions : live
    const choice = random.below(100)
    if (nonces.length > 0 && (known.length === 0 || choice < 20)) return this.#verify(random.pick(nonces), random)
    if (known.length === 0 || choice < 12) return this.#issue(random)
    // What a move or a take-back has left shows in the list.
    const left = live.filter(({ session }) => focus === 'links' || moved.has(session.userId))
    if (left.length > 0 && random.permille(250)) return this.#listWallets(random.pick(left), random)
    const held = random.pick(known)
    if (this.#link !== undefined && random.permille(400)) return this.#linkWallet(random)
    if (choice < 30) return this.#use(held, random)
    if (choice < 37) return this.#introspect(held, random)
    if (choice < 42) return this.#list(held, random)
    if (choice < 45) return this.#signOut(held, random)
    if (choice < 51) return this.#revoke(held, random)
    if (choice < 53) return this.#revokeOthers(held, random)
    if (choice < 62) return this.#issueLink(held, random)
    if (choice < 76) return this.#linkWallet(random)
    if (choice < 92) {
      const several = live.filter(({ session }) => isDirect(session) && facts.walletsOf(session.userId).length > 1)
      if (several.length > 0 && random.permille(900)) return this.#unlink(random.pick(several), random)
      return random.permille(900) ? this.#issueLink(held, random) : this.#unlink(held, random)
    }
    return this.#listWallets(held, random)
  }

  #issue(random: Random): void {
    const { scene } = this
    // Mostly one that has signed in before: the others stay free to be linked.
    const claimed = scene.wallets.filter(({ identity }) => scene.facts.claimOf(identity)?.userId !== undefined)
    const wallet = random.pick(claimed.length > 0 && random.permille(700) ? claimed : scene.wallets)
    const name = `nonce ${++scene.count}`
    this.do(
      random,
      `asks for ${name}`,
      (domain) => domain.signIn.issueNonce(undefined, {}, request(appOrigin)),
      (outcome) => {
        if (outcome.kind !== 'answered') return
        scene.nonces.push({ nonce: outcome.value, wallet, name })
        if (scene.nonces.length > 3) scene.nonces.shift()
      },
    )
  }

  #verify({ nonce, wallet, name }: KnownNonce, random: Random): void {
    const { scene } = this
    const { facts } = scene
    const isElsewhere = random.permille(50)
    let began = scene.world.now
    this.do(
      random,
      `signs in with ${wallet.name} by ${name}${isElsewhere ? ' on another page' : ''}`,
      (domain) => {
        began = scene.world.now
        const from = request(isElsewhere ? otherOrigin : appOrigin)
        return domain.signIn.verify(nonce.nonceId, wallet.prove(nonce.message), from)
      },
      (outcome) => {
        // Some are tried once more.
        if (random.permille(800))
          scene.nonces.splice(0, scene.nonces.length, ...scene.nonces.filter((each) => each.name !== name))
        if (outcome.kind === 'refused') return
        facts.require(began < nonce.expiresAt + 2 * maxOffsetMs, `${name} is good for too long`)
        facts.require(!isElsewhere, `${name} is good on another page than it was made for`)
        const isListed = facts.wasListed(outcome.value.session.userId, wallet.identity, began)
        facts.require(isListed, `${name} signs a person in who is not listed`)
        know(scene, facts.hold(outcome.value, this.name))
      },
      name,
    )
  }

  #use(held: Held, random: Random): void {
    const { cookie } = held
    const from =
      cookie === undefined || random.permille(500)
        ? request(appOrigin, held.token)
        : { ...request(appOrigin), headers: new Headers({ cookie }) }
    this.#reads(held, random, 'uses a session', (domain) =>
      domain.host.currentSession(from).then(({ session }) => session),
    )
  }

  #introspect(held: Held, random: Random): void {
    this.#reads(held, random, 'is asked about by a backend', (domain) => domain.host.introspect(held.token))
  }

  /** A call that answers with a session answers with this one, and only if it lives. */
  #reads(
    { session, token }: Held,
    random: Random,
    words: string,
    run: (domain: ServiceDomain) => Promise<Held['session'] | undefined>,
  ): void {
    const { facts, world } = this.scene
    let [began, wasLive] = [0, false]
    this.do(
      random,
      words,
      (domain) => {
        // For an instance whose clock is behind, a session that has just ended by itself is live.
        ;[began, wasLive] = [world.now, facts.isLive(session.id, -tolerance)]
        return run(domain)
      },
      (outcome) => {
        if (outcome.kind === 'refused' || outcome.value === undefined) return
        facts.require(outcome.value.id === session.id, 'a token leads to another session')
        facts.require(wasLive, 'a session is answered with that has ended')
        const { userId, adapterId, subject = '' } = session
        const isListed = facts.wasListed(userId, { adapterId, subject }, began)
        facts.require(isListed, 'a session is of a person who is not listed')
        facts.hold({ token, session: outcome.value, cookies: [] }, `${this.name}, by a call,`)
      },
    )
  }

  #list(held: Held, random: Random): void {
    const { facts } = this.scene
    const { userId } = held.session
    let before: readonly Held[] = []
    this.do(
      random,
      'lists its sessions',
      (domain) => {
        before = facts.live.filter(({ session }) => session.userId === userId)
        return domain.host.listSessions(userId, request(appOrigin, held.token))
      },
      (outcome) => {
        if (outcome.kind === 'refused') return
        const listed = new Set(outcome.value.map(({ id }) => id))
        const missing = before.find(({ session }) => !listed.has(session.id) && facts.isLive(session.id, tolerance))
        facts.require(missing === undefined, 'a live session is missing in the list')
      },
    )
  }

  #signOut(held: Held, random: Random): void {
    const { facts } = this.scene
    const { id } = held.session
    this.do(
      random,
      'signs out',
      (domain) => domain.host.signOut(request(appOrigin, held.token)),
      // For an instance whose clock is ahead, one that is about to end is over.
      () => facts.require(!facts.isLive(id, tolerance), 'a session is live after its sign-out'),
    )
  }

  #revoke(held: Held, random: Random): void {
    const { facts } = this.scene
    const { userId, id } = held.session
    const others = facts.live.filter(({ session }) => session.userId === userId && session.id !== id)
    if (others.length === 0) return
    const other = random.pick(others).session
    this.do(
      random,
      'ends another session',
      (domain) => ownSessions(domain).revoke(held.session, other.id, request(appOrigin, held.token)),
      (outcome) => {
        if (outcome.kind === 'refused' && outcome.reason !== 'SESSION_NOT_FOUND') return
        facts.require(!facts.isLive(other.id), 'a session is live after it was ended')
        const isFair = outcome.kind === 'refused' || held.session.orderId === undefined || other.orderId !== undefined
        facts.require(isFair, 'a session of an order ends one that was made directly')
      },
    )
  }

  #revokeOthers(held: Held, random: Random): void {
    const { facts } = this.scene
    const { userId, id, orderId } = held.session
    const name = `end ${++this.scene.count}`
    let before: readonly Held[] = []
    this.do(
      random,
      `ends all other sessions, ${name}`,
      (domain) => {
        before = facts.live.filter(({ session }) => session.userId === userId && session.id !== id)
        return ownSessions(domain).revokeOthers(held.session, request(appOrigin, held.token))
      },
      (outcome) => {
        if (outcome.kind === 'refused') return
        for (const { session } of before) {
          const isReached = orderId === undefined || session.orderId !== undefined
          if (isReached) facts.require(!facts.isLive(session.id), 'a session is live after all others were ended')
          else facts.require(facts.endOf(session.id) !== name, 'a session of an order ends one that was made directly')
        }
      },
      name,
    )
  }

  #issueLink(held: Held, random: Random): void {
    const { world, facts, wallets } = this.scene
    const free = wallets.filter(({ identity }) => facts.claimOf(identity)?.userId === undefined)
    const wallet = random.pick(free.length > 0 && random.permille(600) ? free : wallets)
    const name = `nonce ${++this.scene.count}`
    let began = 0
    this.do(
      random,
      `asks for ${name} to link ${wallet.name}`,
      (domain) => {
        began = world.now
        return walletsOf(domain).links.issueNonce(undefined, {}, request(appOrigin, held.token))
      },
      (outcome) => {
        if (outcome.kind === 'refused') return
        requireDirect(this.scene, held, began, 'a wallet is to be linked')
        this.#link = { nonce: outcome.value.challenge, wallet, held, name }
      },
    )
  }

  #linkWallet(random: Random): unknown {
    const { scene } = this
    const link = this.#link
    if (link === undefined || scene.sessions.length === 0) return this.#issue(random)
    this.#link = undefined
    const { nonce, wallet, name } = link
    const held = random.permille(150) ? random.pick(scene.sessions) : link.held
    const { userId } = held.session
    let began = 0
    this.do(
      random,
      `links ${wallet.name} by ${name}`,
      (domain) => {
        began = scene.world.now
        if (userId === link.held.session.userId) scene.facts.gift(userId, wallet.id, name)
        const proof = wallet.prove(nonce.message)
        return walletsOf(domain).link(nonce.nonceId, proof, request(appOrigin, held.token))
      },
      (outcome) => {
        if (outcome.kind === 'refused') return
        requireDirect(scene, held, began, 'a wallet is linked')
        const isOfUser = userId === link.held.session.userId
        scene.facts.require(isOfUser, `${name} links a wallet to another user`)
        const isStored = scene.facts.wasLinked(userId, outcome.value.wallet)
        scene.facts.require(isStored, `${name} links a wallet by an answer, but not stored`)
      },
      name,
    )
  }

  #unlink(held: Held, random: Random): void {
    const { facts, moved } = this.scene
    const { userId } = held.session
    const wallets = facts.walletsOf(userId)
    if (wallets.length === 0) return
    const id = random.pick(wallets)
    const wallet = this.scene.wallets.find((each) => each.id === id)
    if (wallet === undefined) return
    const { adapterId, address } = wallet.identity
    const done = facts.ban(`${wallet.name} is unlinked`, (session) => isOf(wallet, session))
    let began = 0
    this.do(
      random,
      `unlinks ${wallet.name}`,
      (domain) => {
        began = this.scene.world.now
        return walletsOf(domain).unlink(adapterId, address, request(appOrigin, held.token))
      },
      (outcome) => {
        if (outcome.kind === 'answered' || ['WALLET_NOT_FOUND', 'LAST_WALLET'].includes(outcome.reason)) done()
        if (outcome.kind !== 'answered') return
        requireDirect(this.scene, held, began, 'a wallet is unlinked')
        if (moved.has(userId) || facts.userOf(userId)?.deleting) return
        facts.require(facts.walletsOf(userId).length > 0, 'a user unlinks the last wallet')
      },
    )
  }

  #listWallets(held: Held, random: Random): void {
    const { facts } = this.scene
    const { userId } = held.session
    let began = 0
    this.do(
      random,
      'lists its wallets',
      (domain) => {
        began = facts.changes
        return walletsOf(domain).list(request(appOrigin, held.token))
      },
      (outcome) => {
        if (outcome.kind === 'refused') return
        const { wallets } = outcome.value
        const isWhole = facts.changes > began || wallets.length === facts.walletsOf(userId).length
        facts.require(isWhole, "a user's list misses a wallet of the user's")
        for (const listed of wallets) {
          const wallet = this.scene.wallets.find(
            ({ identity }) => identity.adapterId === listed.adapterId && identity.address === listed.address,
          )
          const isHeld = facts.wasOf(userId, wallet?.id ?? '', began)
          facts.require(isHeld, "a user's list has a wallet that is not the user's")
        }
      },
    )
  }
}

function isDirect({ orderId }: Session): boolean {
  return orderId === undefined
}

function walletsOf({ wallets }: ServiceDomain): NonNullable<ServiceDomain['wallets']> {
  if (wallets === undefined) throw new TypeError('the service keeps no users')
  return wallets
}

function ownSessions({ host, computers }: ServiceDomain): OwnSessions {
  return new OwnSessions(host, { computers })
}
