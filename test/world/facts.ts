import { hash } from 'node:crypto'
import type { StoredComputer } from '../../src/core/order/known-computers.ts'
import type { OrderRecord } from '../../src/core/order/order.ts'
import { deadlineOf, forgottenAt, isTerminal } from '../../src/core/order/states.ts'
import type { IssuedSession, Session } from '../../src/core/users/host.ts'
import { derivedUserId, type UserRecord, type WalletClaim } from '../../src/core/users/user-records.ts'
import type { WalletIdentity } from '../../src/core/wallet/wallet.ts'
import { type Wallet, walletId } from './wallets.ts'
import { maxOffsetMs, Violation, type World } from './world.ts'

/** What is known of an order from what was stored of it. */
export interface OrderFacts {
  readonly name: string
  /** Each that was stored, oldest first. */
  readonly versions: OrderRecord[]
  /** Ids of the sessions that it made. */
  readonly sessions: Set<string>
  /** The actor whose call finalized it. */
  finalizedBy?: object | undefined
}

/** A session whose token an actor has. */
export interface Held {
  readonly token: string
  /** Its cookie, as browsers send it; absent if it was not seen. */
  readonly cookie?: string | undefined
  readonly session: Session
}

/** Something that takes sessions away, and is not done yet. */
export interface Ban {
  readonly words: string
  readonly fits: (session: Session) => boolean
}

/** What follows an order's status. */
const nextOf: Readonly<Record<string, readonly string[]>> = {
  created: ['claimed', 'cancelled', 'expired'],
  claimed: ['waiting_user', 'rejected', 'cancelled', 'expired'],
  waiting_user: ['approved', 'rejected', 'cancelled', 'expired'],
  approved: ['finalized', 'rejected', 'cancelled', 'expired'],
  finalized: [],
  rejected: [],
  cancelled: [],
  expired: [],
}

/** Fields of an order that never change. */
const fixed = [
  'kind',
  'origin',
  'message',
  'nonce',
  'issuedAt',
  'expiresAt',
  'desktopTokenHash',
  'claimTokenHash',
] as const
/** Fields of an order that never change once they are there. */
const setOnce = ['proof', 'approval', 'login', 'finalizeKeyHash'] as const

/** The form of every token, wherever it is in a text. */
const tokenForm = /cs[a-z]_[A-Za-z0-9_-]{43}/

/** What the instances' clocks can differ by, in ms. */
export const tolerance = 2 * maxOffsetMs

const maxWallets = 20
const maxInbox = 20
const maxOfStartKey = 5
const maxComputers = 20
const maxSessions = 100

/** What was stored and answered, and whether it may be so. */
export class Facts {
  readonly orders = new Map<string, OrderFacts>()
  readonly bans = new Set<Ban>()
  /** What may never come back: of sessions that are taken away. */
  readonly #held = new Map<string, Held>()
  /** Sessions that have ended, with what the call was about that ended each. */
  readonly #ended = new Map<string, string>()
  /** The order that made each known computer known, by the key of the record and the computer's id. */
  readonly #rememberedBy = new Map<string, string>()
  /**
   * Link orders whose wallet was not the user's when they had been taken back, and how often anything else had tried to
   * give it to the user by then.
   */
  readonly #withdrawn = new Map<OrderFacts, number>()
  /** What tried to give a wallet to a user, by both, once for each call. */
  readonly #gifts = new Map<string, string[]>()
  /** People files in the order in which they were in force: names of wallets as they list them. */
  readonly #lists: { readonly since: number; readonly names: ReadonlySet<string> }[] = []
  /** Wallets that users have got, with the time of each. */
  readonly #linked = new Set<string>()
  /** Number of changes of users' wallets so far. */
  changes = 0
  /** Wallets that users have, and after how many changes they had each for the last time. */
  #having = new Set<string>()
  readonly #had = new Map<string, number>()
  /** Users who have a single wallet, and after how many changes each had a single one for the last time. */
  #lone = new Set<string>()
  readonly #wasLone = new Map<string, number>()
  /** Users that wallets were claimed for, by the keys of the wallets, in the order in which that was stored. */
  readonly #claimants: { readonly key: string; readonly userId: string | undefined; readonly since: number }[] = []
  readonly #sessionsOfNonce = new Map<string, Set<string>>()
  readonly #states = new Set<string>()
  readonly #wallets: ReadonlyMap<string, Wallet>
  #world: World | undefined

  constructor(wallets: readonly Wallet[]) {
    this.#wallets = new Map(wallets.map((wallet) => [wallet.id, wallet]))
  }

  /** Number of distinct shapes of orders that were stored. */
  get states(): ReadonlySet<string> {
    return this.#states
  }

  follow(world: World): void {
    this.#world = world
  }

  get world(): World {
    if (this.#world === undefined) throw new Error('there is no world yet')
    return this.#world
  }

  require(holds: boolean, words: string): void {
    if (!holds) throw new Violation(words)
  }

  /** Everything before a copy of the past was restored counts as ended. */
  restored(): void {
    for (const { session } of this.#held.values()) this.#ended.set(session.id, 'a copy is restored')
    this.#held.clear()
    this.orders.clear()
    this.#withdrawn.clear()
    this.#onHolding()
  }

  onWrite(key: string, before: string | undefined, after: string | undefined): void {
    const [kind = '', id = ''] = key.split(':')
    const text = `${key} ${after}`
    // The id of a nonce is long enough to have the form by chance.
    const searched = kind.endsWith('nonce') ? text.replaceAll(id, '') : text
    this.require(!tokenForm.test(searched), `a token is stored, in ${kind}`)
    const was = before === undefined || before === '' ? undefined : JSON.parse(before)
    const is = after === undefined || after === '' ? undefined : JSON.parse(after)
    if (kind === 'order') this.#onOrder(was, is)
    else if (kind === 'session') this.#onSession(key.slice('session:'.length), was, is)
    else if (kind === 'inbox' && is !== undefined) this.#onInbox(is)
    else if (kind === 'user' && is !== undefined) this.#onUser(was, is)
    else if (kind === 'computers' && is !== undefined) this.#onComputers(key, was?.computers ?? [], is.computers)
    else if (kind === 'wallet') this.#claimants.push({ key, userId: is?.userId, since: this.world.now })
    if (kind === 'user' || kind === 'wallet') this.#onHolding()
  }

  /** Notes that an actor has got a session. */
  hold({ token, session, cookies }: IssuedSession, who: string): Held {
    const held = { token, session, cookie: cookies[0]?.split(';')[0] }
    this.#held.set(session.id, held)
    this.checkHeld(`${who} gets a session`)
    return held
  }

  /** The sessions whose tokens actors have, and that are live. */
  get live(): readonly Held[] {
    return [...this.#held.values()].filter(({ session }) => this.isLive(session.id))
  }

  /** Whether a session is live, and its end further away than `marginMs`; a negative margin allows for an end before. */
  isLive(sessionId: string, marginMs = 0): boolean {
    const text = this.world.store.read(`session:${sessionId}`)
    if (text === undefined) return false
    const record = JSON.parse(text)
    return record.ended !== true && this.world.now + marginMs < record.session.expiresAt
  }

  /** What the call was about that ended a session. */
  endOf(sessionId: string): string | undefined {
    return this.#ended.get(sessionId)
  }

  /** Begins to take sessions away. Until the returned function is called, they may be there or not. */
  ban(words: string, fits: (session: Session) => boolean): () => void {
    const ban = { words, fits }
    this.bans.add(ban)
    return () => {
      this.bans.delete(ban)
      this.checkHeld(words)
    }
  }

  /**
   * Each session that an actor has the token of is one that its user may have. One that is about to expire is not looked
   * at: by a clock that is ahead it is over, so nothing ends it.
   */
  checkHeld(after: string): void {
    for (const [id, { session }] of this.#held) {
      if (!this.isLive(id)) this.#held.delete(id)
      else if (this.isLive(id, tolerance) && ![...this.bans].some(({ fits }) => fits(session))) {
        const why = this.#whyNot(session)
        this.require(why === undefined, `${after}: a session is live although ${why}`)
      }
    }
    for (const [{ name, versions }, tries] of this.#withdrawn) {
      const order = versions.at(-1) as OrderRecord
      const isBack = this.#isLinked(order) && this.#otherGifts(order).length === tries
      this.require(!isBack, `${name} links its wallet after it was taken back`)
    }
  }

  /** Why a session must not be live; `undefined` if it may be. */
  #whyNot(session: Session): string | undefined {
    const { userId, adapterId, subject = '', orderId } = session
    const user = this.userOf(userId)
    const claim = this.claimOf({ adapterId, subject })
    if (claim?.blockedAt !== undefined) return 'its wallet is blocked'
    if (user === undefined || user.deleting) return 'its user is deleted'
    if (claim === undefined || !('userId' in claim)) return 'its wallet is unlinked'
    if (claim.userId !== userId) return "its wallet is another user's"
    if (user.wallets.some((entry) => entry.claim === claim.claim && entry.leaving))
      return 'its wallet is being unlinked'
    const order = orderId === undefined ? undefined : this.orders.get(orderId)
    if (order?.versions.at(-1)?.takenBack !== undefined) return 'its order is taken back'
    return undefined
  }

  userOf(userId: string): UserRecord | undefined {
    const text = this.world.store.read(`user:${userId}`)
    return text === undefined ? undefined : JSON.parse(text)
  }

  claimOf(wallet: WalletIdentity): (WalletClaim & { blockedAt?: number }) | undefined {
    const text = this.world.store.read(claimKey(wallet))
    return text === undefined ? undefined : JSON.parse(text)
  }

  /** The users that a wallet was claimed for since a time: also for a moment, by a link that did not end. */
  claimantsOf(wallet: WalletIdentity, since: number): readonly (string | undefined)[] {
    const key = claimKey(wallet)
    const all = this.#claimants.filter((each) => each.key === key)
    const isLater = (each: { readonly since: number } | undefined) => each === undefined || each.since >= since
    return all.filter((_, index) => isLater(all[index + 1])).map(({ userId }) => userId)
  }

  /** Ids of the wallets of a user, by the two records that say so. */
  walletsOf(userId: string): readonly string[] {
    const user = this.userOf(userId)
    if (user === undefined || user.deleting) return []
    return user.wallets
      .filter((entry) => {
        const found = this.claimOf(entry)
        return found?.userId === userId && found.claim === entry.claim && !entry.leaving
      })
      .map(walletId)
  }

  /** Notes that something is about to try to give a wallet to a user. */
  gift(userId: string, wallet: string, by: string): void {
    const key = `${userId} ${wallet}`
    this.#gifts.set(key, [...(this.#gifts.get(key) ?? []), by])
  }

  /** Whether it was stored that a user got a wallet at this time. */
  wasLinked(userId: string, { address, linkedAt }: { readonly address: string; readonly linkedAt: number }): boolean {
    return this.#linked.has(`${userId} ${address} ${linkedAt}`)
  }

  /** Whether a user has a wallet, or has had it since there were so many {@link changes}. */
  wasOf(userId: string, wallet: string, since: number): boolean {
    const key = `${userId} ${wallet}`
    return this.#having.has(key) || (this.#had.get(key) ?? -1) >= since
  }

  /** Whether a user has a single wallet, or has had a single one since there were so many {@link changes}. */
  wasLone(userId: string, since: number): boolean {
    return this.#lone.has(userId) || (this.#wasLone.get(userId) ?? -1) >= since
  }

  /** What tried to give a wallet to a user. */
  giftsOf(userId: string, wallet: string): readonly string[] {
    return this.#gifts.get(`${userId} ${wallet}`) ?? []
  }

  /** Notes the wallets whose people may sign in from now on. */
  list(wallets: readonly Wallet[]): void {
    this.#lists.push({ since: this.world.now, names: new Set(wallets.map(({ listedAs }) => listedAs)) })
  }

  /** Whether a wallet, or the one that its user's id follows from, was on the list at some time since. */
  wasListed(userId: string | undefined, wallet: WalletIdentity, since: number): boolean {
    if (this.#lists.length === 0) return true
    const first = [...this.#wallets.values()].find(({ identity }) => derivedUserId(identity) === userId)
    const all = [this.#wallets.get(walletId(wallet))?.listedAs, first?.listedAs]
    return this.#lists.some(({ names }, index) => {
      const until = this.#lists[index + 1]?.since ?? Number.POSITIVE_INFINITY
      return until >= since && all.some((each) => each !== undefined && names.has(each))
    })
  }

  /** Whether the user who started a link order has its wallet, and by nothing but this order. */
  isGivenBy(order: OrderRecord): boolean {
    const { orderId, starter, proof, issuedAt } = order
    if (starter === undefined || proof === undefined) return false
    const gifts = new Set(this.giftsOf(starter.userId, walletId(proof)))
    const entry = this.userOf(starter.userId)?.wallets.find((each) => walletId(each) === walletId(proof))
    return this.#isLinked(order) && gifts.size === 1 && gifts.has(orderId) && (entry?.linkedAt ?? 0) >= issuedAt
  }

  /** Whether the user who started a link order has its wallet. */
  #isLinked({ starter, proof }: OrderRecord): boolean {
    return starter !== undefined && proof !== undefined && this.walletsOf(starter.userId).includes(walletId(proof))
  }

  /** What else has tried to give a link order's wallet to its user. */
  #otherGifts({ orderId, starter, proof }: OrderRecord): readonly string[] {
    if (starter === undefined || proof === undefined) return []
    return this.giftsOf(starter.userId, walletId(proof)).filter((by) => by !== orderId)
  }

  /** Whether a version of an order was stored that is so. */
  wasStored(orderId: string, fits: (order: OrderRecord) => boolean): boolean {
    return this.orders.get(orderId)?.versions.some(fits) === true
  }

  /** Refuses a refusal that says of an order what was not stored. */
  checkRefusal(orderId: string, reason: string, words: string): void {
    const facts = this.orders.get(orderId)
    if (facts === undefined) return
    const { versions } = facts
    const newest = versions.at(-1) as OrderRecord
    const says: Readonly<Record<string, (order: OrderRecord) => boolean>> = {
      ORDER_ALREADY_CLAIMED: ({ status }) => status !== 'created',
      ORDER_ALREADY_APPROVED: ({ status }) => status === 'approved',
      ORDER_FINALIZED: ({ status }) => status === 'finalized',
      ORDER_REJECTED: ({ status, takenBack }) => status === 'rejected' || takenBack !== undefined,
      ORDER_CANCELLED: ({ status }) => status === 'cancelled',
      ORDER_EXPIRED: ({ status }) => status === 'expired',
      ORDER_NOT_FOUND: () => this.world.now + tolerance >= forgottenAt(newest),
    }
    const fits = says[reason]
    this.require(fits === undefined || versions.some(fits), `${words}: ${reason}, which was not stored`)
  }

  #onOrder(was: OrderRecord | undefined, is: OrderRecord | undefined): unknown {
    if (is === undefined) return
    const { orderId, history, status } = is
    const facts = this.orders.get(orderId) ?? {
      name: /order \d+/.exec(this.world.current?.words ?? '')?.[0] ?? orderId,
      versions: [],
      sessions: new Set(),
    }
    this.orders.set(orderId, facts)
    facts.versions.push(is)
    this.#states.add(shapeOf(is))
    const check = (holds: boolean, words: string): void => this.require(holds, `${facts.name}: ${words}`)
    check(history.at(-1)?.status === status, 'its status is not that of its last step')
    if (was === undefined) return check(history.length === 1 && status === 'created', 'it does not begin as created')
    check(JSON.stringify(history.slice(0, was.history.length)) === JSON.stringify(was.history), 'its history changes')
    const steps = history.slice(was.history.length)
    check(steps.length <= 1, 'it makes two steps at once')
    for (const step of steps) {
      check(nextOf[was.status]?.includes(step.status) === true, `it goes from ${was.status} to ${step.status}`)
      check(step.sequence === was.history.length + 1, 'a step has a wrong number')
      check(step.at >= (was.history.at(-1)?.at ?? 0), 'its times go back')
      if (step.status === 'expired') check(step.at === deadlineOf(was), 'it expires at another time than its deadline')
      else if (step.status === 'approved') this.#checkApproval(is, check)
      else if (step.status === 'finalized') facts.finalizedBy = this.world.current?.actor
      if (step.status !== 'expired')
        check(step.at < deadlineOf(was) + tolerance, `it is ${step.status} after its deadline`)
    }
    for (const field of fixed) check(was[field] === is[field], `${field} changes`)
    for (const field of setOnce) {
      check(was[field] === undefined || JSON.stringify(was[field]) === JSON.stringify(is[field]), `${field} changes`)
    }
    const { wrongReturnCodes = 0 } = is
    check(wrongReturnCodes <= 3, 'more than three wrong return codes are tried')
    check(wrongReturnCodes >= (was.wrongReturnCodes ?? 0), 'wrong return codes are forgotten')
    if (wrongReturnCodes >= 3) check(isTerminal(status), 'it goes on after three wrong return codes')
    check(was.takenBack === undefined || is.takenBack !== undefined, 'a take-back is undone')
    if (is.takenBack?.sessionEnded !== undefined && was.takenBack?.sessionEnded === undefined) {
      check(!this.#remembers(orderId), 'it is taken back, but its computer is known')
    }
    if (is.takenBack?.walletUnlinked !== undefined && !this.#withdrawn.has(facts) && !this.#isLinked(is)) {
      const others = this.#otherGifts(is)
      const mayGoOn = others.some((by) => by === 'the operator' || this.world.isRunning(by))
      if (!mayGoOn) this.#withdrawn.set(facts, others.length)
    }
    this.#checkPhone(was, is, check)
  }

  #checkApproval(
    { kind, proof, expectedAddress, returnCodes }: OrderRecord,
    check: (holds: boolean, words: string) => void,
  ): void {
    const isExpected = expectedAddress === undefined || proof?.address === expectedAddress
    check(isExpected, 'another wallet approves it than the one it asks for')
    check(kind !== 'link' || returnCodes === true, 'it links a wallet without a return code')
  }

  #checkPhone(was: OrderRecord, is: OrderRecord, check: (holds: boolean, words: string) => void): void {
    const { challengeTokenHash: before } = was
    if (before === undefined || before === is.challengeTokenHash) return
    check(is.formerTokenHashes?.includes(before) === true, 'the phone loses its order')
    const redeemed = was.handOver?.redeemedAt === undefined && is.handOver?.redeemedAt !== undefined
    check(redeemed || is.inboxUserId !== undefined, 'a second phone claims it')
    if (redeemed) check(this.world.now < (was.handOver?.expiresAt ?? 0) + tolerance, 'a ticket is good for too long')
    else check(is.handOver === undefined, 'a ticket of the browser before stays good')
  }

  // biome-ignore lint/suspicious/noExplicitAny: a stored record.
  #onSession(id: string, _was: any, is: any): void {
    if (is === undefined || is.ended) {
      if (!this.#ended.has(id)) this.#ended.set(id, this.world.current?.subject ?? '')
      return
    }
    this.require(!this.#ended.has(id), 'a session that has ended is there again')
    const { orderId, userId } = is.session as Session
    if (orderId !== undefined) {
      const facts = this.orders.get(orderId)
      facts?.sessions.add(id)
      this.require((facts?.sessions.size ?? 1) <= 1, `${facts?.name} makes two sessions`)
      const newest = facts?.versions.at(-1)
      this.require(newest === undefined || newest.status === 'finalized', `${facts?.name} makes a session too early`)
    }
    const nonce = this.world.current?.subject
    if (nonce?.startsWith('nonce')) {
      const made = this.#sessionsOfNonce.get(nonce) ?? new Set()
      this.#sessionsOfNonce.set(nonce, made.add(id))
      this.require(made.size <= 1, `${nonce} is used twice`)
    }
    const list = `sessions:${hash('sha256', userId, 'base64url')}`
    this.require(this.world.store.membersOf(list).length <= 2 * maxSessions, 'a user has too many sessions')
  }

  #onComputers(key: string, was: readonly StoredComputer[], is: readonly StoredComputer[]): void {
    this.require(is.length <= maxComputers, 'a wallet has more known computers than it may')
    const orderId = this.world.current?.subject ?? ''
    const facts = this.orders.get(orderId)
    for (const { id, createdAt } of is) {
      if (was.some((known) => known.id === id && known.createdAt === createdAt)) continue
      this.#rememberedBy.set(`${key} ${id}`, orderId)
      const isOver = facts?.versions.at(-1)?.takenBack?.sessionEnded !== undefined
      this.require(!isOver, `${facts?.name} is taken back, and makes its computer known`)
    }
  }

  /** Whether a computer is known by an order. */
  #remembers(orderId: string): boolean {
    return [...this.#rememberedBy].some(([name, by]) => {
      const [key = '', id = ''] = name.split(' ')
      return by === orderId && this.world.store.read(key)?.includes(`"${id}"`)
    })
  }

  #onInbox({ orders }: { orders: readonly { startKeyId: string; expiresAt: number }[] }): void {
    const open = orders.filter(({ expiresAt }) => this.world.now < expiresAt)
    this.require(open.length <= maxInbox, 'an inbox has too many orders')
    for (const { startKeyId } of open) {
      const ofKey = open.filter((entry) => entry.startKeyId === startKeyId)
      this.require(ofKey.length <= maxOfStartKey, 'an inbox has too many orders of a start key')
    }
  }

  #onHolding(): void {
    for (const key of this.#having) this.#had.set(key, this.changes)
    for (const id of this.#lone) this.#wasLone.set(id, this.changes)
    this.changes++
    this.#having = new Set()
    this.#lone = new Set()
    for (const { value } of this.world.store.found('user:')) {
      const { id } = JSON.parse(value) as UserRecord
      const wallets = this.walletsOf(id)
      for (const wallet of wallets) this.#having.add(`${id} ${wallet}`)
      if (wallets.length === 1) this.#lone.add(id)
    }
  }

  #onUser(was: UserRecord | undefined, { id, wallets, createdAt, deleting }: UserRecord): void {
    if (deleting) return
    this.require(wallets.length <= maxWallets, `user ${id} has too many wallets`)
    for (const wallet of wallets) {
      this.#linked.add(`${id} ${wallet.address} ${wallet.linkedAt}`)
      const isFirst = wallet.linkedAt === createdAt
      // An entry whose claim is over counts for nothing, as that of a sign-in beside the end of an interrupted unlink.
      const isOver = this.claimOf(wallet)?.claim !== wallet.claim
      const isGiven = isFirst || isOver || this.giftsOf(id, walletId(wallet)).length > 0
      this.require(isGiven, 'a user gets a wallet that nothing gave the user')
      const isListed = was !== undefined || this.wasListed(id, wallet, this.world.current?.since ?? 0)
      this.require(isListed, 'a user is made for a person who is not listed')
    }
  }
}

function claimKey({ adapterId, subject }: WalletIdentity): string {
  return `wallet:${hash('sha256', `wallet\n${adapterId}\n${subject}`, 'base64url')}`
}

function shapeOf({
  status,
  kind,
  takenBack,
  handOver,
  formerTokenHashes = [],
  wrongReturnCodes = 0,
  ...order
}: OrderRecord): string {
  const { inboxUserId, approval, history } = order
  const steps = history.map((step) => step.status).join()
  return [steps, kind, status, JSON.stringify(takenBack), handOver?.redeemedAt !== undefined, handOver !== undefined]
    .concat(
      [formerTokenHashes.length, wrongReturnCodes, inboxUserId !== undefined, JSON.stringify(approval)].map(String),
    )
    .join('|')
}
