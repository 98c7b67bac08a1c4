import { hashToken } from '../../src/base/token.ts'
import type { OrderRecord } from '../../src/core/order/order.ts'
import type { OrderResult } from '../../src/core/order/orders.ts'
import { isTerminal, takesReturnCode } from '../../src/core/order/states.ts'
import type { WatchEvent } from '../../src/core/order/watch.ts'
import type { Session } from '../../src/core/users/host.ts'
import type { WalletIdentity } from '../../src/core/wallet/wallet.ts'
import type { StartOrderOptions } from '../../src/shared/orders.ts'
import type { Random } from './random.ts'
import { Caller, type KnownOrder, know, recent, requireDirect, type Scene, statusOf } from './scene.ts'
import { appOrigin, ownOrigin, request, startKey } from './service.ts'
import { ComputerKey, type Wallet, walletId } from './wallets.ts'
import { maxOffsetMs, type Outcome } from './world.ts'

const keys = [new ComputerKey(1), new ComputerKey(2)] as const

const never = Number.POSITIVE_INFINITY

type Answer<Value> = Exclude<Outcome<Value>, { kind: 'lost' }>

/** A computer: starts orders, watches them, and finalizes what a phone has approved. */
export class Computer extends Caller {
  readonly #number: number

  constructor(name: string, scene: Scene, number: number) {
    super(name, scene)
    this.#number = number
  }

  protected begin(random: Random): unknown {
    const { scene } = this
    const isOwn = ({ computer }: KnownOrder): boolean => computer === this
    const approved = recent(scene, random, (order) => isOwn(order) && statusOf(scene, order) === 'approved')
    const own = approved !== undefined && random.permille(700) ? approved : recent(scene, random, isOwn)
    const status = own && statusOf(scene, own)
    const choice = random.below(100)
    const isOver = status === undefined || isTerminal(status)
    if (own === undefined || choice < 3 || (isOver && choice < 50)) return this.#start(random)
    if (choice < 25 && status !== 'approved') return this.#watch(own, random)
    if (choice < 29) return this.#cancel(own, random)
    if (status === 'approved' || status === 'finalized' || choice < 42) this.#finalize(own, random)
  }

  #start(random: Random): void {
    const { scene, name } = this
    const { takesStartKey } = scene.service.kind
    const live = scene.direct.filter(({ session }) => scene.facts.isLive(session.id))
    const known = live.length > 0 && random.permille(800) ? live : scene.sessions
    const starter =
      known.length > 0 && random.permille(scene.focus === 'links' ? 800 : 250) ? random.pick(known) : undefined
    const kind = starter !== undefined ? 'link' : random.permille(250) ? 'sign' : 'login'
    const computerNumber = kind === 'login' && random.permille(500) ? this.#number : undefined
    const { adapterId, address: expectedAddress } = random.pick(scene.wallets).identity
    const input: StartOrderOptions = {
      kind,
      ...(kind === 'sign' && random.permille(500) ? { adapterId, expectedAddress } : {}),
      ...(takesStartKey && kind !== 'link' ? { requester: { origin: appOrigin } } : {}),
      ...(computerNumber === undefined ? {} : { computerKey: (keys[computerNumber] as ComputerKey).computerKey }),
    }
    const bearer = starter?.token ?? (takesStartKey ? startKey : undefined)
    const orderName = `order ${++scene.count}`
    let began = 0
    this.do(
      random,
      `starts ${orderName} to ${kind}`,
      (domain) => {
        began = scene.world.now
        return domain.orders.start(input, request(appOrigin, bearer))
      },
      (outcome) => {
        if (outcome.kind !== 'answered') return
        const { value } = outcome
        if (starter !== undefined) requireDirect(scene, starter, began, `${name} starts an order to link`)
        scene.facts.require(scene.facts.orders.has(value.orderId), `${name} gets an order that is not stored`)
        scene.orders.push({
          ...value,
          name: orderName,
          computer: this,
          computerNumber,
          ...(starter === undefined ? {} : { starter: starter.token, userId: starter.session.userId }),
          tokens: new Map(),
          tickets: new Map(),
        })
      },
    )
  }

  #cancel(order: KnownOrder, random: Random): void {
    const { facts } = this.scene
    this.do(
      random,
      `cancels ${order.name}`,
      (domain) => domain.orders.cancel(order, request(appOrigin)),
      (outcome) => {
        if (outcome.kind === 'refused') return facts.checkRefusal(order.orderId, outcome.reason, order.name)
        const stored = facts.wasStored(order.orderId, ({ status }) => status === 'cancelled')
        facts.require(
          stored || !facts.orders.has(order.orderId),
          `${order.name} is cancelled by an answer, but not stored`,
        )
      },
    )
  }

  #finalize(order: KnownOrder, random: Random): void {
    finalize(this, order, random, (outcome) => {
      if (outcome.kind !== 'answered' || outcome.value.kind !== 'login') return
      know(this.scene, this.scene.facts.hold(outcome.value.issued, `${this.name}, by ${order.name},`))
    })
  }

  #watch(order: KnownOrder, random: Random): void {
    const { scene, name } = this
    const { instance, domain } = scene.service.any(random)
    const ends = new AbortController()
    const seen: number[] = []
    const run = async (): Promise<void> => {
      for await (const event of domain.orders.watch(order, request(appOrigin), ends.signal)) {
        if (!event.heartbeat && !event.reconnect) this.#see(order, event, seen)
      }
    }
    scene.world.call(
      this,
      `watches ${order.name}`,
      instance,
      run,
      (outcome) => {
        if (outcome.kind === 'refused')
          scene.facts.checkRefusal(order.orderId, outcome.reason, `${name} watches ${order.name}`)
      },
      { isWatch: true, subject: order.orderId },
    )
  }

  #see({ orderId, name }: KnownOrder, { sequence, status, at }: WatchEvent, seen: number[]): void {
    const { facts } = this.scene
    const last = seen.at(-1)
    facts.require(
      last === undefined || sequence === last + 1,
      `a watch of ${name} shows step ${sequence} after ${last}`,
    )
    seen.push(sequence)
    const isStored = facts.wasStored(orderId, ({ history }) => {
      const step = history[sequence - 1]
      return step?.status === status && step.at === at
    })
    facts.require(isStored || !facts.orders.has(orderId), `a watch of ${name} shows ${status}, which is not stored`)
  }
}

/** Six digits that are not the return code, or hardly ever if no phone was shown it yet. */
export function wrongCode({ returnCode = '123456' }: KnownOrder): string {
  return String((Number(returnCode) + 1) % 1_000_000).padStart(6, '0')
}

/** Finalizes an order for a computer or a backend, mostly as it should be done. */
function finalize(
  computer: Computer | Agent,
  order: KnownOrder,
  random: Random,
  done: (outcome: Answer<OrderResult>) => void,
): void {
  const { scene } = computer
  const { facts, world } = scene
  const { orderId, desktopToken, name } = order
  const key = order.computerNumber === undefined ? undefined : keys[order.computerNumber]
  const [codeIsWrong, proofIsWrong] = [random.permille(scene.typesBadly ? 700 : 80), random.permille(40)]
  const returnCode = codeIsWrong ? wrongCode(order) : order.returnCode
  const wrongKey = random.permille(500) ? undefined : keys[order.computerNumber === 0 ? 1 : 0]
  const computerProof = (proofIsWrong ? wrongKey : key)?.prove(orderId, desktopToken)
  const other = order.starter === undefined || random.permille(700) ? undefined : scene.sessions.at(-1)
  const bearer = other?.token ?? order.starter
  const finalizeKey = order.finalizeKey && (random.permille(400) ? 'another key of a backend' : order.finalizeKey)
  const input = {
    orderId,
    desktopToken,
    ...(returnCode === undefined ? {} : { returnCode }),
    ...(computerProof === undefined ? {} : { computerProof }),
    ...(finalizeKey === undefined ? {} : { finalizeKey }),
  }
  let [before, began] = [facts.orders.get(orderId)?.versions.at(-1), world.now]
  let wasAble = false
  const origin = order.finalizeKey === undefined ? appOrigin : undefined
  const words = `finalizes ${name}${codeIsWrong ? ' with a wrong code' : ''}${finalizeKey === order.finalizeKey ? '' : ' with another key'}`
  computer.do(
    random,
    words,
    (domain) => {
      ;[before, began] = [facts.orders.get(orderId)?.versions.at(-1), world.now]
      wasAble ||= isApprover(scene, before)
      if (order.userId !== undefined && before?.proof !== undefined)
        facts.gift(order.userId, walletId(before.proof), orderId)
      return domain.orders.finalize(input, request(origin, bearer))
    },
    (outcome) => {
      if (outcome.kind === 'refused') {
        const isFinal = before?.takenBack !== undefined && outcome.reason === 'ORDER_FINALIZED'
        facts.require(!isFinal, `${name} is refused as finalized after it was taken back`)
        return facts.checkRefusal(orderId, outcome.reason, `${name} to be finalized`)
      }
      const newest = facts.orders.get(orderId)?.versions.at(-1)
      if (newest === undefined) return done(outcome)
      const must = (holds: boolean, text: string): void => facts.require(holds, `${name} is finalized ${text}`)
      must(newest.status === 'finalized', 'by an answer, but not stored')
      if (takesReturnCode(newest)) must(returnCode !== undefined && !codeIsWrong, 'without its return code')
      if (key !== undefined) must(!proofIsWrong, 'without the key of its computer')
      must(bearer === order.starter, 'by another session than the one that started it')
      if (outcome.value.kind === 'login') {
        const { session } = outcome.value.issued
        must(facts.wasListed(session.userId, subjectOf(session), began), 'by a person who is not listed')
      }
      if (outcome.value.kind === 'link') {
        must(facts.wasLinked(order.userId ?? '', outcome.value.wallet), 'by an answer, but its wallet is not linked')
      }
      const isFirst = facts.orders.get(orderId)?.finalizedBy === computer
      if (isFirst && before?.status === 'approved')
        must(wasAble || isApprover(scene, newest), 'with a wallet that may not')
      if (before?.takenBack !== undefined) must(false, 'after it was taken back')
      if (newest.inboxUserId === undefined) {
        const late =
          before?.status === 'finalized' && began > (before.history.at(-1)?.at ?? 0) + 60_000 + 2 * maxOffsetMs
        must(!late, 'once more, after more than a minute')
      } else must(newest.finalizeKeyHash === hashToken(String(finalizeKey)), 'with another key')
      done(outcome)
    },
    orderId,
  )
}

/** What a phone knows of an order. */
interface Claimed {
  readonly claimKey: string
  token?: string
  message?: string
}

/** A phone with a wallet, or an attacker's. */
export class Phone extends Caller {
  readonly #wallet: Wallet
  readonly #known = new Map<KnownOrder, Claimed>()

  constructor(name: string, scene: Scene, wallet: Wallet) {
    super(name, scene)
    this.#wallet = wallet
  }

  protected begin(random: Random): unknown {
    const { scene } = this
    // What has just been finalized is taken back while its computer still works on it.
    const made = recent(
      scene,
      random,
      (each) => statusOf(scene, each) === 'finalized' && this.#has(each) && scene.world.isRunning(each.orderId),
    )
    const open = recent(scene, random, (each) => !isTerminal(statusOf(scene, each) ?? 'created'))
    const other = open !== undefined && random.permille(600) ? open : recent(scene, random)
    const order = made !== undefined && random.permille(600) ? made : other
    if (order === undefined) return
    const known = this.#known.get(order) ?? { claimKey: `key of ${this.name} for ${order.orderId}` }
    this.#known.set(order, known)
    const status = statusOf(scene, order)
    const choice = random.below(100)
    if (known.token === undefined) {
      if (order.tickets.size > 0 && random.permille(500)) return this.#redeem(order, known, random)
      if (choice < 20 && order.claimToken !== '') return this.#preview(order, random)
      if (status === 'created' || choice < 30) return this.#claim(order, known, random)
      return
    }
    if (order === made && random.permille(500)) return this.#reject(order, known as Claimed, random)
    if (order.tickets.size > 0 && random.permille(80)) return this.#redeem(order, known, random)
    if (order.finalizeKey !== undefined && random.permille(order.tickets.size > 0 ? 300 : 60))
      return this.#claim(order, known, random)
    if (choice < 6) return this.#reject(order, known, random)
    if (status === 'claimed' || known.message === undefined || choice < 14) return this.#read(order, known, random)
    if (status === 'waiting_user' && choice < 26) return this.#handOver(order, known, random)
    if (status === 'waiting_user' || choice < 35) return this.#approve(order, known, random)
    if (status === 'finalized' && choice < 60) return this.#reject(order, known, random)
  }

  #has(order: KnownOrder): boolean {
    return this.#known.get(order)?.token !== undefined
  }

  #preview({ orderId, claimToken, name }: KnownOrder, random: Random): void {
    const { facts } = this.scene
    let wasClaimed = false
    this.do(
      random,
      `looks at ${name}`,
      (domain) => {
        wasClaimed = facts.wasStored(orderId, ({ status }) => status !== 'created')
        return domain.orders.preview({ orderId, claimToken }, request(ownOrigin))
      },
      (outcome) => {
        if (outcome.kind === 'refused') facts.checkRefusal(orderId, outcome.reason, `${name} to be looked at`)
        else facts.require(!wasClaimed, `${name} is shown to a phone that has not claimed it`)
      },
    )
  }

  #claim(order: KnownOrder, known: Claimed, random: Random): void {
    const { facts, sessions, direct, world } = this.scene
    const { orderId, claimToken, name } = order
    const { claimKey } = known
    const inbox = order.finalizeKey !== undefined
    if (inbox && sessions.length === 0) return
    const own = direct.filter(({ session }) => {
      const isListed = facts.wasListed(session.userId, subjectOf(session), world.now)
      return session.userId === order.userId && facts.isLive(session.id) && isListed
    })
    if (inbox && own.length === 0 && random.permille(800)) return
    const session = inbox ? random.pick(own.length > 0 && random.permille(800) ? own : sessions) : undefined
    this.do(
      random,
      `claims ${name}${inbox ? ' from the inbox' : ''}`,
      (domain) =>
        session === undefined
          ? domain.orders.claim({ orderId, claimToken, claimKey }, request(ownOrigin))
          : domain.orders.claimFromInbox({ orderId, claimKey }, request(ownOrigin, session.token)),
      (outcome) => {
        if (outcome.kind === 'refused') {
          if (!inbox) facts.checkRefusal(orderId, outcome.reason, `${name} to be claimed`)
          return
        }
        const { challengeToken } = outcome.value
        const hashed = hashToken(challengeToken)
        const isStored = facts.wasStored(orderId, (each) => each.challengeTokenHash === hashed)
        facts.require(isStored || !facts.orders.has(orderId), `${name} is claimed by an answer, but not stored`)
        if (session !== undefined) {
          const forUser = facts.wasStored(orderId, ({ inboxUserId }) => inboxUserId === session.session.userId)
          facts.require(forUser || !facts.orders.has(orderId), `${name} is claimed by another user`)
          facts.require(session.session.orderId === undefined, `${name} is claimed by a session of an order`)
        }
        known.token = challengeToken
        order.tokens.set(challengeToken, session)
      },
    )
  }

  #read(order: KnownOrder, known: Claimed, random: Random): void {
    const { orderId, name } = order
    const challengeToken = known.token as string
    let [wasFormer, hadLeft] = [false, false]
    this.do(
      random,
      `reads ${name}`,
      (domain) => {
        wasFormer = this.#isFormer(order, challengeToken)
        hadLeft = this.#hasLeft(order, challengeToken)
        return domain.orders.readChallenge({ orderId, challengeToken }, request(ownOrigin))
      },
      (outcome) => {
        if (outcome.kind === 'refused') return this.#refused(order, outcome.reason, 'read')
        this.scene.facts.require(!wasFormer, `${name} is read with the token of a former browser`)
        this.scene.facts.require(!hadLeft, `${name} is read after the session that claimed it has ended`)
        known.message = outcome.value.message
        order.returnCode = outcome.value.returnCode ?? order.returnCode
      },
    )
  }

  #approve(order: KnownOrder, known: Claimed, random: Random): void {
    const { facts, world } = this.scene
    const { orderId, name } = order
    const challengeToken = known.token as string
    const { identity } = this.#wallet
    const proof = this.#wallet.prove(known.message as string)
    const rememberComputer = random.permille(500)
    const isDone = (): boolean => facts.wasStored(orderId, (each) => each.proof?.signatureHex === proof.signatureHex)
    const isAble = (): boolean => mayApprove(this.scene, facts.orders.get(orderId)?.versions.at(-1), identity)
    let [wasAble, wasFormer, hadLeft] = [false, false, false]
    // A repeated approval is answered whatever is listed by then.
    let since = never
    this.do(
      random,
      `approves ${name} with ${this.#wallet.name}`,
      (domain) => {
        wasAble ||= isDone() || isAble()
        wasFormer = this.#isFormer(order, challengeToken)
        hadLeft = this.#hasLeft(order, challengeToken) && !isDone()
        if (!isDone()) since = Math.min(since, world.now)
        if (rememberComputer) order.remembers = true
        return domain.orders.approve({ orderId, challengeToken, proof, rememberComputer }, request(ownOrigin))
      },
      (outcome) => {
        if (outcome.kind === 'refused') return this.#refused(order, outcome.reason, 'approved')
        facts.require(isDone() || !facts.orders.has(orderId), `${name} is approved by an answer, but not stored`)
        facts.require(!wasFormer, `${name} is approved with the token of a former browser`)
        const remembers = facts.wasStored(orderId, ({ approval }) => approval?.rememberComputer === true)
        facts.require(!remembers || order.remembers === true, `${name} remembers a computer that no phone wants`)
        facts.require(wasAble || isAble(), `${name} is approved by a wallet that may not`)
        facts.require(!hadLeft, `${name} is approved after the session that claimed it has ended`)
        const kind = facts.orders.get(orderId)?.versions[0]?.kind
        const isOwn = order.finalizeKey === undefined
        const asksList = kind === 'login' || !isOwn
        const users = isOwn ? [undefined, ...facts.claimantsOf(identity, since)] : [order.userId]
        const isListed = !asksList || since === never || users.some((id) => facts.wasListed(id, identity, since))
        facts.require(isListed, `${name} is approved by a person who is not listed`)
        order.returnCode = outcome.value.returnCode ?? order.returnCode
      },
    )
  }

  #handOver(order: KnownOrder, known: Claimed, random: Random): void {
    const { orderId, name } = order
    const challengeToken = known.token as string
    this.do(
      random,
      `makes a ticket for ${name}`,
      (domain) => domain.orders.handOver({ orderId, challengeToken }, request(ownOrigin)),
      (outcome) => {
        if (outcome.kind === 'refused') return this.#refused(order, outcome.reason, 'handed over')
        order.tickets.set(outcome.value.ticket, order.tokens.get(challengeToken))
      },
    )
  }

  #redeem(order: KnownOrder, known: Claimed, random: Random): void {
    const { facts } = this.scene
    const [ticket, session] = random.pick([...order.tickets])
    const claimKey = random.permille(500) ? known.claimKey : `another ${known.claimKey}`
    this.do(
      random,
      `redeems a ticket of ${order.name}`,
      (domain) => domain.orders.redeem({ ticket, claimKey }, request(ownOrigin)),
      (outcome) => {
        if (outcome.kind === 'refused') return
        const hashed = hashToken(outcome.value.challengeToken)
        const isStored = facts.wasStored(order.orderId, (each) => each.challengeTokenHash === hashed)
        facts.require(
          isStored || !facts.orders.has(order.orderId),
          `${order.name} is taken over by an answer, but not stored`,
        )
        known.token = outcome.value.challengeToken
        order.tokens.set(known.token, session)
      },
    )
  }

  #reject(order: KnownOrder, known: Claimed, random: Random): void {
    const { facts } = this.scene
    const { orderId, name } = order
    const challengeToken = known.token as string
    // A link order's wallet is unlinked.
    const linked = facts.orders.get(orderId)?.versions.find(({ kind, proof }) => kind === 'link' && proof !== undefined)
    const wallet = linked?.proof && walletId(linked.proof)
    const endsWith = (session: Session): boolean =>
      session.orderId === orderId || walletId(subjectOf(session)) === wallet
    let [hadLeft, began] = [false, Number.POSITIVE_INFINITY]
    const done = facts.ban(`${name} is taken back`, (session) => endsWith(session))
    this.do(
      random,
      `rejects ${name}`,
      (domain) => {
        hadLeft = this.#hasLeft(order, challengeToken)
        began = Math.min(began, facts.changes)
        return domain.orders.reject({ orderId, challengeToken }, request(ownOrigin))
      },
      (outcome) => {
        if (outcome.kind === 'refused') {
          this.#refused(order, outcome.reason, 'rejected')
          // What was begun stays as it is once the order is forgotten.
          if (outcome.reason !== 'ORDER_NOT_FOUND') done()
          facts.require(outcome.reason !== 'ORDER_ALREADY_APPROVED', `${name} cannot be rejected once it is approved`)
          return
        }
        const isStored = facts.wasStored(orderId, (each) => each.status === 'rejected' || each.takenBack !== undefined)
        facts.require(isStored || !facts.orders.has(orderId), `${name} is rejected by an answer, but not stored`)
        facts.require(!hadLeft, `${name} is rejected after the session that claimed it has ended`)
        done()
        if (order.starter === undefined || linked === undefined || facts.bans.size > 0) return
        // The last wallet of a user stays. Another may have come since.
        const wasLone = facts.wasLone(order.userId ?? '', began)
        facts.require(wasLone || !facts.isGivenBy(linked), `${name} is taken back, but its wallet is linked`)
      },
    )
  }

  #refused(order: KnownOrder, reason: string, what: string): void {
    this.scene.facts.checkRefusal(order.orderId, reason, `${order.name} to be ${what}`)
  }

  /** Whether the session has ended by which a phone's token counts. */
  #hasLeft({ tokens }: KnownOrder, token: string): boolean {
    const session = tokens.get(token)
    return session !== undefined && this.scene.facts.endOf(session.session.id) !== undefined
  }

  /** Whether a token is of a browser that handed the order over: it can only reject it. */
  #isFormer({ orderId }: KnownOrder, token: string): boolean {
    const { formerTokenHashes = [] } = this.scene.facts.orders.get(orderId)?.versions.at(-1) ?? {}
    return formerTokenHashes.includes(hashToken(token))
  }
}

/** The wallet of a session. */
function subjectOf({ adapterId, subject = '' }: Session): WalletIdentity {
  return { adapterId, subject }
}

/** Whether a wallet can approve an order for an inbox. */
function mayApprove({ facts }: Scene, order: OrderRecord | undefined, wallet: WalletIdentity | undefined): boolean {
  if (order?.inboxUserId === undefined) return true
  const user = facts.userOf(order.inboxUserId)
  const entry = wallet && user?.wallets.find((each) => walletId(each) === walletId(wallet))
  if (user === undefined || entry === undefined || !facts.walletsOf(user.id).includes(walletId(entry))) return false
  return entry.linkedAt === user.createdAt || entry.linkedAt <= order.issuedAt - 86_400_000
}

/** Whether the wallet that approved an order still can. */
function isApprover(scene: Scene, order: OrderRecord | undefined): boolean {
  return mayApprove(scene, order, order?.proof)
}

/** A process of a backend with a start key: asks users by their inboxes. */
export class Agent extends Caller {
  protected begin(random: Random): unknown {
    const { scene } = this
    const approved = recent(
      scene,
      random,
      (order) => order.finalizeKey !== undefined && statusOf(scene, order) === 'approved',
    )
    const own = approved ?? recent(scene, random, ({ finalizeKey }) => finalizeKey !== undefined)
    if (own !== undefined && (own === approved || random.permille(200))) return finalize(this, own, random, () => {})
    const users = [...scene.users]
    if (users.length === 0) return
    const several = users.filter((each) => scene.facts.walletsOf(each).length > 1)
    const userId = random.pick(several.length > 0 && random.permille(800) ? several : users)
    const name = `order ${++scene.count}`
    const isRight = !random.permille(50)
    this.do(
      random,
      `asks a user by ${name}${isRight ? '' : ' with a wrong key'}`,
      (domain) =>
        domain.orders.start(
          { kind: 'sign', payload: '{"a":1}', inboxUserId: userId, requester: { origin: appOrigin } },
          request(undefined, isRight ? startKey : `another ${startKey}`.replace(' ', '-')),
        ),
      (outcome) => {
        if (outcome.kind === 'refused') return
        scene.facts.require(isRight, `${name} is started with a wrong key`)
        const finalizeKey = `finalize key of ${name}`
        scene.orders.push({
          ...outcome.value,
          name,
          computer: this,
          userId,
          finalizeKey,
          tokens: new Map(),
          tickets: new Map(),
        })
      },
    )
  }
}
