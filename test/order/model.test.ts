import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { OrderTransition } from '../../src/order/order.ts'
import type { StartedOrder } from '../../src/order/orders.ts'
import { type OrderRecords, storedOrders } from '../../src/order/records.ts'
import type { Store } from '../../src/store/store.ts'
import { newToken } from '../../src/token.ts'
import { stores } from '../support/stores.ts'
import { type Call, type Kind, ModelOrder, type Step } from './model.ts'
import {
  desktop,
  type Instance,
  makeInstance,
  openOnOurClock,
  phone as phoneRequest,
  reasonOf,
  Signer,
} from './support.ts'

const ttlSeconds = 120
const signers = [new Signer(), new Signer()]
/** How many calls all runs made, by what came of them. */
const tally = new Map<string, number>()

afterEach(() => {
  vi.useRealTimers()
})

/** An order of the service with what its desktop and phones keep of it. */
interface RealOrder {
  readonly started: StartedOrder
  readonly message: string
  /** Challenge tokens by phone. */
  readonly challengeTokens: Map<number, string>
  readonly sessionTokens: Set<string>
  readonly seen: OrderTransition[]
  readonly leave: AbortController
  readonly watch: Promise<void>
}

/**
 * A shared store drops orders by a clock of its own, which these tests cannot set. There they are kept longer, so that only
 * the domain says when one is forgotten.
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
  readonly #records: OrderRecords
  readonly #instances: readonly [Instance, Instance]
  readonly #requiring: Instance

  constructor(here: Store, there: Store) {
    this.#records = onOurClock(here)
    this.#instances = [
      makeInstance(here, { records: this.#records }),
      makeInstance(there, { records: onOurClock(there) }),
    ]
    this.#requiring = makeInstance(here, { records: this.#records, settings: { confirmationCode: 'required' } })
  }

  async start(kind: Kind, codeRequired: boolean): Promise<void> {
    const { orders } = codeRequired ? this.#requiring : this.#instances[0]
    const started = await orders.start({ kind }, desktop)
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
    const own = { challengeTokens: new Map(), sessionTokens: new Set<string>(), seen, leave, watch }
    this.orders.push({ started, message, ...own })
  }

  /** Makes a call on one of the instances; `ok` and the status, or the reason. */
  async call(index: number, call: Call, instance: number): Promise<string> {
    try {
      return `ok ${await this.#make(this.orders[index] as RealOrder, call, this.#instances[instance % 2] as Instance)}`
    } catch (error) {
      if (error instanceof Error && 'reason' in error) return String(error.reason)
      throw error
    }
  }

  /** What is stored of an order; `undefined` once the store has dropped it. */
  async stored(index: number): Promise<{ history: readonly OrderTransition[]; wrongCodes: number } | undefined> {
    return await this.#load((this.orders[index] as RealOrder).started)
  }

  /**
   * Waits until the order's watcher has seen all that is stored, and nothing else. A watcher may itself be the one to store
   * that the order's time is up, so both are read until they agree.
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

  /** Ends all watches. None may have failed, but for those whose order the clock leapt over to where it is forgotten. */
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

  async #make(order: RealOrder, call: Call, { orders, host }: Instance): Promise<string> {
    const { started, challengeTokens } = order
    const { orderId, claimToken } = started
    if (call.type === 'claim') {
      const claimKey = call.withKey ? `phone-${call.phone}`.padEnd(22, '-') : undefined
      const { status, challengeToken } = await orders.claim({ orderId, claimToken, claimKey }, phoneRequest)
      challengeTokens.set(call.phone, challengeToken)
      return status
    }
    if ('ownToken' in call) {
      const input = { orderId, desktopToken: call.ownToken ? started.desktopToken : newToken('desktop') }
      if (call.type === 'cancel') return (await orders.cancel(input, desktop)).status
      const finalized = await orders.finalize(input, desktop)
      if (finalized.kind === 'login') {
        const { token, session } = finalized.issued
        order.sessionTokens.add(token)
        const sessions = await host.listSessions(session.userId)
        expect(sessions.filter((one) => one.orderId === orderId)).toEqual([session])
      }
      return finalized.status
    }
    const input = { orderId, challengeToken: challengeTokens.get(call.phone) ?? newToken('challenge') }
    if (call.type === 'read') return (await orders.readChallenge(input, phoneRequest)).status
    if (call.type === 'reject') return (await orders.reject(input, phoneRequest)).status
    const proof = signers[call.signer]!.prove(call.validProof ? order.message : 'something else')
    const right = started.confirmationCode
    const wrong = right.startsWith('0') ? '111111' : '000000'
    const confirmationCode = { right, wrong, none: undefined }[call.code]
    return (await orders.approve({ ...input, proof, confirmationCode }, phoneRequest)).status
  }
}

type Model = { readonly orders: ModelOrder[] }
type Command = fc.AsyncCommand<Model, Real>

class Start implements Command {
  readonly kind: Kind
  readonly codeRequired: boolean

  constructor(kind: Kind, codeRequired: boolean) {
    this.kind = kind
    this.codeRequired = codeRequired
  }

  check = () => true

  async run(model: Model, real: Real): Promise<void> {
    await real.start(this.kind, this.codeRequired)
    model.orders.push(new ModelOrder(this.kind, this.codeRequired, Date.now(), ttlSeconds * 1000))
    await real.checkWatcher(real.orders.length - 1)
  }

  toString = () => `start ${this.kind}${this.codeRequired ? ' with code' : ''}`
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
  readonly calls: readonly Call[]

  constructor(pick: number, calls: readonly Call[]) {
    this.pick = pick
    this.calls = calls
  }

  check = (model: Readonly<Model>) => model.orders.length > 0

  async run(model: Model, real: Real): Promise<void> {
    // The newest few: older ones have mostly ended.
    const index = Math.max(0, model.orders.length - 1 - (this.pick % 3))
    const before = model.orders[index] as ModelOrder
    const known = this.calls.map((call) => 'phone' in call && real.orders[index]!.challengeTokens.has(call.phone))
    const answers = await Promise.all(this.calls.map((call, i) => real.call(index, call, this.pick + i)))
    for (const answer of answers) tally.set(answer, (tally.get(answer) ?? 0) + 1)
    const stored = await real.stored(index)
    const now = Date.now()

    // One after the other, in some order, they must have had these answers and led to what is stored.
    const explanation = orderings(this.calls.map((_, i) => i)).find((ordering) => {
      const after = before.copy()
      const fits = ordering.every((i) => after.answer(this.calls[i] as Call, known[i] as boolean, now) === answers[i])
      if (!fits || !sameState(stored, after, now)) return false
      model.orders[index] = after
      return true
    })
    if (explanation === undefined) {
      throw new Error(`unexplained: ${answers} from ${JSON.stringify(before)}, now ${JSON.stringify(stored)}`)
    }
    await real.checkWatcher(index)
    expect(real.orders[index]!.sessionTokens.size).toBeLessThanOrEqual(1)
  }

  toString = () => `order ${this.pick}: ${JSON.stringify(this.calls)}`
}

function orderings(items: readonly number[]): number[][] {
  if (items.length <= 1) return [[...items]]
  return items.flatMap((first) => orderings(items.filter((item) => item !== first)).map((rest) => [first, ...rest]))
}

/** Whether the store holds what the model says; an expiry that nobody was told of need not be stored yet. */
function sameState(
  stored: { history: readonly OrderTransition[]; wrongCodes: number } | undefined,
  model: ModelOrder,
  now: number,
): boolean {
  if (stored === undefined) return model.over && now >= (model.steps.at(-1) as Step).at + 600_000
  const steps = numbered(model.steps)
  const pending = model.status === 'expired' && stored.history.length === steps.length - 1
  return (
    JSON.stringify(stored.history) === JSON.stringify(pending ? steps.slice(0, -1) : steps) &&
    stored.wrongCodes === model.wrongCodes
  )
}

function numbered(steps: readonly Step[]): { sequence: number; status: string; at: number }[] {
  return steps.map(({ status, at }, index) => ({ sequence: index + 1, status, at }))
}

// Mostly the same phone: orders that many claim at random rarely get anywhere.
const someone = fc.constantFrom(0, 0, 0, 1, 2)
const call: fc.Arbitrary<Call> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('claim' as const), phone: someone, withKey: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('read' as const), phone: someone }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('reject' as const), phone: someone }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('approve' as const),
      phone: someone,
      signer: fc.nat({ max: signers.length - 1 }),
      validProof: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
      code: fc.constantFrom('right' as const, 'wrong' as const, 'none' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('cancel' as const), ownToken: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('finalize' as const),
      ownToken: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
    }),
  },
)
const pick = fc.nat({ max: 11 })
const commands = fc.commands(
  [
    fc.tuple(fc.constantFrom<Kind>('login', 'sign'), fc.boolean()).map(([kind, required]) => new Start(kind, required)),
    fc
      .constantFrom(1, 1000, 20_000, 59_999, 60_000, 61_000, 119_999, 120_000, 539_999, 600_000)
      .map((ms) => new PassTime(ms)),
    ...Array.from({ length: 8 }, () => fc.tuple(pick, call).map(([index, one]) => new AtOnce(index, [one]))),
    ...Array.from({ length: 4 }, () =>
      fc.tuple(pick, fc.array(call, { minLength: 2, maxLength: 4 })).map(([index, some]) => new AtOnce(index, some)),
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

  test('is one that the model explains, and watchers see it without a gap', { timeout: 120_000 }, async () => {
    tally.clear()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
    await fc.assert(
      fc.asyncProperty(commands, async (some) => {
        const model: Model = { orders: [] }
        const real = new Real(here, there)
        await new Start('login', false).run(model, real)
        await fc.asyncModelRun(() => ({ model, real }), some)
        await real.close()
      }),
      { numRuns: 200 },
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
      'CONFIRMATION_CODE_WRONG',
    ]) {
      expect({ answer, came: tally.has(answer) }).toEqual({ answer, came: true })
    }
  })
})
