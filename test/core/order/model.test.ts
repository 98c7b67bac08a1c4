import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { hashToken, newToken } from '../../../src/base/token.ts'
import { KnownComputers } from '../../../src/core/order/known-computers.ts'
import type { OrderRecord, OrderTransition } from '../../../src/core/order/order.ts'
import { type OrderRecords, storedOrders } from '../../../src/core/order/records.ts'
import type { StartedOrder } from '../../../src/shared/orders.ts'
import type { Store } from '../../../src/store/store.ts'
import { stores } from '../../support/stores.ts'
import {
  type Beginning,
  type Call,
  claimed,
  type Kind,
  knownName,
  type Mode,
  ModelOrder,
  redeemed,
  type Sent,
  type Step,
} from './model.ts'
import {
  appOrigin,
  Computer,
  desktop,
  type Instance,
  makeInstance,
  openOnOurClock,
  otherCode,
  phone as phoneRequest,
  reasonOf,
  Signer,
} from './support.ts'

const ttlSeconds = 120
/** Runs on each store. A nightly run asks for the long variant. */
const numRuns = process.env.ORDER_MODEL === 'long' ? 500 : 100
/** How many calls all runs made, by what came of them. */
const tally = new Map<string, number>()

afterEach(() => void vi.useRealTimers())

/** A call as it is generated: what phones and browsers know by then is looked up when it is made. */
type Wish =
  | Extract<Call, { type: 'claim' | 'cancel' | 'finalize' }>
  | { readonly type: 'read' | 'reject' | 'handOver'; readonly phone: number }
  | (Omit<Extract<Call, { type: 'approve' }>, 'token'> & { readonly phone: number })
  | (Omit<Extract<Call, { type: 'redeem' }>, 'ticket'> & { readonly ticket: 'newest' | 'older' | 'unknown' })

/** Something secret that a caller got, with its name in the model. */
interface Named {
  readonly name: string
  readonly secret: string
}

/** An order of the service with what its desktop and phones keep of it. */
interface RealOrder {
  readonly started: StartedOrder
  readonly computer: Computer | undefined
  readonly message: string
  /** Challenge tokens by phone. */
  readonly challengeTokens: Map<number, Named>
  readonly tickets: Named[]
  readonly sessionTokens: Set<string>
  /** What the phone was shown. */
  returnCode: string | undefined
  readonly seen: OrderTransition[]
  readonly leave: AbortController
  readonly watch: Promise<void>
}

/**
 * A shared store drops orders by a clock of its own, which these tests cannot set. There they are kept longer, so that
 * only the domain says when one is forgotten.
 */
function onOurClock(store: Store): OrderRecords {
  if (!store.shared) return storedOrders(store)
  const longer: Store = Object.create(store, {
    create: { value: (key: string, value: string) => store.create(key, value, { ttlMs: 600_000 }) },
    compareAndSet: {
      value: (key: string, version: number, value: string) =>
        store.compareAndSet(key, version, value, { ttlMs: 600_000 }, { wake: true }),
    },
    get: { value: (key: string) => store.get(key) },
    watch: { value: (key: string, onWake: () => void) => store.watch(key, onWake) },
  })
  return storedOrders(longer)
}

class Real {
  readonly orders: RealOrder[] = []
  /** New ones for each run, because a store remembers what is known of them. */
  readonly signers = [new Signer(), new Signer()] as const
  readonly computers = [new Computer(), new Computer()] as const
  readonly #known: KnownComputers
  readonly #records: OrderRecords
  readonly #instances: readonly [Instance, Instance]
  readonly #starting: Readonly<Record<Mode, Instance>>
  #tickets = 0

  constructor(here: Store, there: Store) {
    this.#known = new KnownComputers(here)
    this.#records = onOurClock(here)
    this.#instances = [
      makeInstance(here, { records: this.#records }),
      makeInstance(there, { records: onOurClock(there) }),
    ]
    const starting = (confirmationCode: Mode) =>
      makeInstance(here, { records: this.#records, settings: { confirmationCode } })
    this.#starting = { compare: starting('compare'), return: starting('return') }
  }

  async start({ kind, mode, computer: index }: Beginning): Promise<void> {
    const computer = index === undefined ? undefined : this.computers[index]
    const started = await this.#starting[mode].orders.start({ kind, computerKey: computer?.computerKey }, desktop)
    const { message } = (await this.#load(started)) as { message: string }
    const leave = new AbortController()
    const seen: OrderTransition[] = []
    const events = this.#instances[1].orders.watch({ ...started, afterSequence: 0 }, desktop, leave.signal)
    const read = async (): Promise<void> => {
      for await (const { sequence, status, at, heartbeat } of events)
        if (!heartbeat) seen.push({ sequence, status, at })
    }
    const watch = read()
    // Looked at in the end; until then it may have failed without anyone's waiting for it.
    watch.catch(() => undefined)
    const own = { challengeTokens: new Map(), tickets: [], sessionTokens: new Set<string>(), seen, leave, watch }
    this.orders.push({ started, computer, message, returnCode: undefined, ...own })
  }

  /** What a wish comes to with what its caller knows now. */
  resolve(index: number, wish: Wish): Call {
    const { challengeTokens, tickets, returnCode } = this.orders[index] as RealOrder
    switch (wish.type) {
      case 'claim':
      case 'cancel':
        return wish
      case 'finalize':
        return wish.code === 'right' && returnCode === undefined ? { ...wish, code: 'none' } : wish
      case 'redeem': {
        const ticket = { newest: tickets.at(-1), older: tickets.at(-2), unknown: undefined }[wish.ticket]
        return { ...wish, ticket: ticket?.name }
      }
      case 'handOver':
        return { ...wish, token: challengeTokens.get(wish.phone)?.name, ticket: `ticket ${this.#tickets++}` }
      case 'read':
      case 'reject':
        return { type: wish.type, token: challengeTokens.get(wish.phone)?.name }
      case 'approve':
        return { ...wish, token: challengeTokens.get(wish.phone)?.name }
    }
  }

  /** Makes a call on one of the instances; `ok` and what the caller learns, or the reason. */
  async call(index: number, call: Call, instance: number): Promise<string> {
    try {
      return await this.#make(this.orders[index] as RealOrder, call, this.#instances[instance % 2] as Instance)
    } catch (error) {
      if (error instanceof Error && 'reason' in error) return String(error.reason)
      throw error
    }
  }

  /** What is stored of an order; `undefined` once the store has dropped it. */
  async stored(index: number): Promise<OrderRecord | undefined> {
    return await this.#load((this.orders[index] as RealOrder).started)
  }

  /** Name of the ticket that is stored with an order. */
  newestTicket(index: number, { handOver }: OrderRecord): string | undefined {
    return this.orders[index]?.tickets.find(({ secret }) => hashToken(secret) === handOver?.ticketHash)?.name
  }

  /** The computers that are known for each wallet. */
  async known(): Promise<string[]> {
    const names = await Promise.all(
      this.signers.flatMap(({ publicKeyHex }, signer) =>
        this.computers.map(async ({ computerKey }, computer) => {
          const wallet = { adapterId: 'ed25519', subject: publicKeyHex }
          const site = { appName: 'Example', origin: appOrigin }
          const known = await this.#known.isKnown(wallet, this.#known.idOf(wallet, computerKey, site))
          return known ? [knownName(signer, computer)] : []
        }),
      ),
    )
    return names.flat()
  }

  /** An order has made one session at most, which is live until the order is taken back. */
  async checkSessions(index: number): Promise<void> {
    const { sessionTokens } = this.orders[index] as RealOrder
    const stored = await this.stored(index)
    if (stored === undefined) return
    expect(sessionTokens.size).toBeLessThanOrEqual(1)
    const { orderId, login, takenBack } = stored
    if (login === undefined) expect(sessionTokens.size).toBe(0)
    const { host } = this.#instances[0]
    const sessions = login === undefined ? [] : await host.listSessions(login.userId)
    const own = sessions.filter((session) => session.orderId === orderId)
    for (const token of sessionTokens) {
      expect(await host.introspect(token)).toEqual(takenBack === undefined ? own[0] : undefined)
    }
    expect(own).toHaveLength(takenBack === undefined ? sessionTokens.size : 0)
  }

  /**
   * Waits until the order's watcher has seen all that is stored, and nothing else. A watcher may itself be the one to
   * store that the order's time is up, so both are read until they agree.
   */
  async checkWatcher(index: number): Promise<void> {
    const { seen } = this.orders[index] as RealOrder
    const giveUp = performance.now() + 5000
    for (;;) {
      const stored = await this.stored(index)
      if (stored === undefined || JSON.stringify(seen) === JSON.stringify(stored.history)) return
      if (performance.now() > giveUp) expect(seen).toEqual(stored.history)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /**
   * Ends all watches. None may have failed, but for those whose order the clock leapt over to where it is forgotten.
   */
  async close(): Promise<void> {
    for (const [index, { leave, watch }] of this.orders.entries()) {
      leave.abort()
      const reason = await reasonOf(watch)
      if (reason !== undefined) expect(await this.call(index, { type: 'cancel', ownToken: true }, 0)).toBe(reason)
    }
  }

  async #load({ orderId }: StartedOrder) {
    return (await this.#records.load(orderId))?.order
  }

  async #make(order: RealOrder, call: Call, { orders }: Instance): Promise<string> {
    const { started, challengeTokens, tickets } = order
    const { orderId, claimToken } = started
    switch (call.type) {
      case 'claim': {
        const input = { orderId, claimToken, claimKey: keyOf(call) }
        const { status, challengeToken } = await orders.claim(input, phoneRequest)
        challengeTokens.set(call.phone, { name: claimed, secret: challengeToken })
        return `ok ${status}`
      }
      case 'redeem': {
        const ticket = secretOf(tickets, call.ticket) ?? newToken('hand-over') + orderId
        const redemption = await orders.redeem({ ticket, claimKey: keyOf(call) }, phoneRequest)
        challengeTokens.set(call.phone, { name: redeemed(String(call.ticket)), secret: redemption.challengeToken })
        expect(redemption.orderId).toBe(orderId)
        return `ok ${redemption.status}`
      }
      case 'cancel':
        return `ok ${(await orders.cancel(this.#asDesktop(order, call), desktop)).status}`
      case 'finalize': {
        const wrong = otherCode(order.returnCode ?? '000000')
        const returnCode = { right: order.returnCode, wrong, none: undefined }[call.code]
        const { computer } = order
        const own = computer?.prove(started)
        const computerProof = { right: own, wrong: new Computer().prove(started), none: undefined }[call.computer]
        const finalized = await orders.finalize({ ...this.#asDesktop(order, call), returnCode, computerProof }, desktop)
        if (finalized.kind === 'login') order.sessionTokens.add(finalized.issued.token)
        return `ok ${finalized.status}`
      }
    }
    const input = { orderId, challengeToken: secretOf(challengeTokens.values(), call.token) ?? newToken('challenge') }
    switch (call.type) {
      case 'read':
        return this.#told(order, await orders.readChallenge(input, phoneRequest))
      case 'reject': {
        const { status, sessionEnded } = await orders.reject(input, phoneRequest)
        const ended = sessionEnded ? 'session ended' : 'no session'
        return `ok ${status}${sessionEnded === undefined ? '' : `, ${ended}`}`
      }
      case 'handOver': {
        const { ticket } = await orders.handOver(input, phoneRequest)
        tickets.push({ name: call.ticket, secret: ticket })
        return 'ok'
      }
      case 'approve': {
        const proof = this.signers[call.signer]!.prove(call.validProof ? order.message : 'something else')
        const approval = { ...input, proof, rememberComputer: call.remember }
        return this.#told(order, await orders.approve(approval, phoneRequest))
      }
    }
  }

  #asDesktop({ started: { orderId, desktopToken } }: RealOrder, { ownToken }: { readonly ownToken: boolean }) {
    return { orderId, desktopToken: ownToken ? desktopToken : newToken('desktop') }
  }

  /** The phone keeps the code that it is shown. It is the same at each call. */
  #told(order: RealOrder, { status, returnCode }: { readonly status: string; readonly returnCode?: string }): string {
    if (returnCode === undefined) return `ok ${status}`
    expect(order.returnCode ?? returnCode).toBe(returnCode)
    order.returnCode = returnCode
    return `ok ${status} with a code`
  }
}

function keyOf({ phone, withKey }: { readonly phone: number; readonly withKey: boolean }): string | undefined {
  return withKey ? `phone-${phone}`.padEnd(22, '-') : undefined
}

function secretOf(all: Iterable<Named>, name: string | undefined): string | undefined {
  return [...all].find((one) => one.name === name)?.secret
}

/** What the model knows: the orders, and the computers that are known. */
interface Model {
  readonly orders: ModelOrder[]
  known: Set<string>
}
type Command = fc.AsyncCommand<Model, Real>

class Start implements Command {
  readonly beginning: Beginning

  constructor(beginning: Beginning) {
    this.beginning = beginning
  }

  check = () => true

  async run(model: Model, real: Real): Promise<void> {
    await real.start(this.beginning)
    model.orders.push(new ModelOrder(this.beginning, Date.now(), ttlSeconds * 1000))
    await real.checkWatcher(real.orders.length - 1)
  }

  toString = () => `start ${JSON.stringify(this.beginning)}`
}

class PassTime implements Command {
  readonly ms: number

  constructor(ms: number) {
    this.ms = ms
  }

  check = () => true

  async run(): Promise<void> {
    vi.setSystemTime(Date.now() + this.ms)
  }

  toString = () => `${this.ms} ms`
}

/** Calls made at once, on both instances; one alone is a plain call. */
class AtOnce implements Command {
  readonly pick: number
  readonly wishes: readonly Wish[]

  constructor(pick: number, wishes: readonly Wish[]) {
    this.pick = pick
    this.wishes = wishes
  }

  check = (model: Readonly<Model>) => model.orders.length > 0

  async run(model: Model, real: Real): Promise<void> {
    // The newest few: older ones have mostly ended.
    const index = Math.max(0, model.orders.length - 1 - (this.pick % 3))
    const before = model.orders[index] as ModelOrder
    const calls = this.wishes.map((wish) => real.resolve(index, wish))
    const answers = await Promise.all(calls.map((call, i) => real.call(index, call, this.pick + i)))
    for (const answer of answers) tally.set(answer, (tally.get(answer) ?? 0) + 1)
    const stored = await real.stored(index)
    const known = await real.known()
    const now = Date.now()

    // One after the other, in some order, they must have had these answers and led to what is stored.
    const explanation = explanations(calls.length, before).find(({ ordering, hadSession }) => {
      const after = { order: before.copy(), known: new Set(model.known) }
      after.order.hadSession = hadSession
      const told = ordering.map((i) => [after.order.answer(calls[i] as Call, now, after.known), answers[i]] as const)
      const beforehand = before.takenBack
      const fits = told.every(
        ([expected, answer]) => expected === answer || isOvertaken(expected, answer, after.order, beforehand),
      )
      if (!fits || !sameState(stored, after.order, now)) return false
      if (stored !== undefined && real.newestTicket(index, stored) !== after.order.ticket?.name) return false
      if (JSON.stringify([...after.known].sort()) !== JSON.stringify(known.sort())) return false
      model.orders[index] = after.order
      model.known = after.known
      return true
    })
    if (explanation === undefined) {
      throw new Error(`unexplained: ${answers} from ${JSON.stringify(before)}, now ${JSON.stringify(stored)}, ${known}`)
    }
    await real.checkWatcher(index)
    await real.checkSessions(index)
    // Where there was no session to end, nobody was ever given one.
    if (model.orders[index]?.takenBack && !explanation.hadSession) {
      expect(real.orders[index]?.sessionTokens.size).toBe(0)
    }
  }

  toString = () => `order ${this.pick}: ${JSON.stringify(this.wishes)}`
}

/** Whether a finalize was overtaken by a take-back, after it was stored and before its session was made. */
function isOvertaken(
  expected: string,
  answer: string | undefined,
  order: ModelOrder,
  takenBackBefore: boolean,
): boolean {
  return expected === 'ok finalized' && answer === 'ORDER_REJECTED' && order.takenBack && !takenBackBefore
}

/** So many steps of an order, one call after the other: random calls alone rarely get far. */
class Steps implements Command {
  readonly beginning: Beginning
  readonly wishes: readonly Wish[]

  constructor(beginning: Beginning, signer: number, count: number, then: readonly Wish[] = []) {
    this.beginning = beginning
    const phone = 0
    const all: Wish[] = [
      { type: 'claim', phone, withKey: true },
      { type: 'read', phone },
      { type: 'approve', phone, signer, validProof: true, remember: true },
      { type: 'finalize', ownToken: true, code: 'right', computer: 'right' },
    ]
    this.wishes = [...all.slice(0, count), ...then]
  }

  check = () => true

  async run(model: Model, real: Real): Promise<void> {
    await new Start(this.beginning).run(model, real)
    for (const wish of this.wishes) await new AtOnce(0, [wish]).run(model, real)
  }

  toString = () => `${this.wishes.length} steps of ${JSON.stringify(this.beginning)}`
}

/** How calls at once can have been one after the other, and whether a session was there if they took the order back. */
function explanations(calls: number, { takenBack, hadSession }: ModelOrder) {
  const all = orderings(Array.from({ length: calls }, (_, i) => i))
  const answers = takenBack ? [hadSession] : [true, false]
  return answers.flatMap((had) => all.map((ordering) => ({ ordering, hadSession: had })))
}

function orderings(items: readonly number[]): number[][] {
  if (items.length <= 1) return [[...items]]
  return items.flatMap((first) => orderings(items.filter((item) => item !== first)).map((rest) => [first, ...rest]))
}

/** Whether the store holds what the model says; an expiry that nobody was told of need not be stored yet. */
function sameState(stored: OrderRecord | undefined, model: ModelOrder, now: number): boolean {
  if (stored === undefined) return model.over && now >= (model.steps.at(-1) as Step).at + 600_000
  const steps = numbered(model.steps)
  const pending = model.status === 'expired' && stored.history.length === steps.length - 1
  return (
    JSON.stringify(stored.history) === JSON.stringify(pending ? steps.slice(0, -1) : steps) &&
    (stored.wrongReturnCodes ?? 0) === model.wrongReturnCodes &&
    // Two approvals at once with the same answer can differ in this: the first one stored decides.
    remembersComputer(stored) === model.remembers &&
    stored.takenBack?.sessionEnded === (model.takenBack ? model.hadSession : undefined)
  )
}

function remembersComputer({ approval }: OrderRecord): boolean {
  return approval?.rememberComputer === true && !approval.knownComputer
}

function numbered(steps: readonly Step[]): { sequence: number; status: string; at: number }[] {
  return steps.map(({ status, at }, index) => ({ sequence: index + 1, status, at }))
}

// Mostly the same phone: orders that many claim at random rarely get anywhere.
const someone = fc.constantFrom(0, 0, 0, 1, 2)
const mostly = fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) })
const sent = fc.constantFrom<Sent>('right', 'wrong', 'none')
const mostlyRight = fc.constantFrom<Sent>('right', 'right', 'right', 'right', 'wrong', 'none')
const signer = fc.nat({ max: 1 })
const some = <T extends string>(type: T) => fc.constant(type)
const wish: fc.Arbitrary<Wish> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: some('claim'), phone: someone, withKey: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ type: some('read'), phone: someone }) },
  { weight: 1, arbitrary: fc.record({ type: some('reject'), phone: someone }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: some('approve'),
      phone: someone,
      signer,
      validProof: mostly,
      remember: mostly,
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: some('handOver'), phone: someone }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: some('redeem'),
      phone: someone,
      withKey: fc.boolean(),
      ticket: fc.constantFrom(
        'newest' as const,
        'newest' as const,
        'newest' as const,
        'older' as const,
        'unknown' as const,
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: some('cancel'), ownToken: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({ type: some('finalize'), ownToken: mostly, code: sent, computer: mostlyRight }),
  },
)
/** A try to finalize an approved order. */
function guess(code: Sent): Wish {
  return { type: 'finalize', ownToken: true, code, computer: 'right' }
}

const pick = fc.nat({ max: 11 })
const beginning: fc.Arbitrary<Beginning> = fc.record({
  kind: fc.constantFrom<Kind>('login', 'login', 'sign'),
  mode: fc.constantFrom<Mode>('compare', 'return'),
  computer: fc.constantFrom(undefined, 0, 0, 1),
})
const commands = fc.commands(
  [
    beginning.map((one) => new Start(one)),
    fc.tuple(beginning, signer, fc.constantFrom(2, 2, 3, 4, 4)).map(([one, by, count]) => new Steps(one, by, count)),
    // Random calls hardly ever get to where a code is looked at.
    fc
      .tuple(beginning, fc.array(sent, { minLength: 1, maxLength: 4 }))
      .map(([one, tries]) => new Steps({ ...one, mode: 'return' }, 0, 3, tries.map(guess))),
    fc
      .constantFrom(1, 1000, 20_000, 59_999, 60_000, 61_000, 119_999, 120_000, 179_999, 539_999, 600_000)
      .map((ms) => new PassTime(ms)),
    ...Array.from({ length: 8 }, () => fc.tuple(pick, wish).map(([index, one]) => new AtOnce(index, [one]))),
    ...Array.from({ length: 4 }, () =>
      fc.tuple(pick, fc.array(wish, { minLength: 2, maxLength: 4 })).map(([index, many]) => new AtOnce(index, many)),
    ),
  ],
  { maxCommands: 120, size: 'max' },
)

describe.each(stores)('any interleaving of calls on $name', ({ open }) => {
  let here: Store
  let there: Store

  beforeAll(async () => {
    const url = String((await open()).store)
    here = await openOnOurClock(url)
    there = here.shared ? await openOnOurClock(url) : here
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })

  test('is one that the model explains, and watchers see it without a gap', {
    timeout: 240_000 + numRuns * 1000,
  }, async () => {
    tally.clear()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
    await fc.assert(
      fc.asyncProperty(commands, async (all) => {
        const model: Model = { orders: [], known: new Set() }
        const real = new Real(here, there)
        await new Start({ kind: 'login', mode: 'compare', computer: undefined }).run(model, real)
        await fc.asyncModelRun(() => ({ model, real }), all)
        await real.close()
      }),
      { numRuns },
    )
    const calls = [...tally.values()].reduce((sum, count) => sum + count, 0)
    expect(calls).toBeGreaterThan(5000)
    // The interesting answers all came up; a generator that stopped reaching them would prove little.
    for (const answer of [
      'ok finalized',
      'ok rejected',
      'ok cancelled',
      'ORDER_EXPIRED',
      'ORDER_FINALIZED',
      'ORDER_ALREADY_APPROVED',
      'ORDER_TOKEN_INVALID',
      'ORDER_NOT_FOUND',
      'RETURN_CODE_WRONG',
      'RETURN_CODE_REQUIRED',
      'COMPUTER_PROOF_INVALID',
      'HANDOVER_INVALID',
      'ok approved',
      'ok approved with a code',
      'ok finalized, session ended',
    ]) {
      expect({ answer, came: tally.has(answer) }).toEqual({ answer, came: true })
    }
  })
})
