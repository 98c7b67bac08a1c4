import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import type { Logger } from '../base/log.ts'
import type { RequestContext } from '../base/request.ts'
import { siteOf } from '../base/request.ts'
import { TimeLimit } from '../base/timing/time-limit.ts'
import type { CallTrace, Tracing } from '../base/tracing.ts'
import { type CeilingLimits, type CeilingUse, Concurrency, WatcherCounts } from '../limits/concurrency.ts'
import type { Limits } from '../limits/limits.ts'
import type { RateLimiter } from '../limits/rate.ts'
import { CallEnded, CountersignError, reasons, serverBusy } from '../shared/errors.ts'
import { toFailure } from './errors.ts'
import {
  type Call,
  type CallLimit,
  isUnary,
  type LimitOf,
  type Method,
  type Protocol,
  type StreamMethod,
  type UnaryMethod,
} from './methods.ts'
import { requireValid } from './read-input.ts'

/** End of a call: success, a failure with a reason, or an early end. */
export type CallOutcome = 'ok' | CountersignError | CallEnded

/** Ids that the caller sent, unchecked. */
export interface NamedInCall {
  readonly orderId?: string | undefined
  readonly adapterId?: string | undefined
  readonly address?: string | undefined
}

/** Name in reports of a route of a part with routes of its own: the part and the endpoint, such as `oidc token`. */
export type PartLabel = `oidc ${string}`

/** What a request without an RPC is for, as reports name it. `unknown` is a path that leads nowhere. */
export type RouteName = 'health' | 'forward-auth' | 'key set' | 'openapi' | 'options' | PartLabel | 'page' | 'unknown'

/** Report of one call, made once, at its end. */
export interface CallReport {
  /** Full name of the RPC, such as `countersign.v1.SignInService/IssueNonce`, or a {@link RouteName}. */
  readonly method: string
  readonly protocol: Protocol | 'http'
  /** HTTP method, such as GET, of a request without an RPC. */
  readonly httpMethod?: string
  /** Path of a request without an RPC, if it is one of the service's own. Any other path could contain a secret. */
  readonly path?: string
  /** The request, with its caller's address. */
  readonly request: RequestContext
  readonly outcome: CallOutcome
  /** Names in the message of a failed call, if that was read and valid. They are claims of the caller. */
  readonly named?: NamedInCall | undefined
  /** Time from arrival to end, in ms. A stream ends when its last message was taken. */
  readonly durationMs: number
}

/** Receives the report of every call. Must not throw. */
export type CallObserver = (report: CallReport) => void

/** What the invoker uses of an RPC. The answer is a promise of a reply, or a stream of replies. */
export interface InvokedMethod<I extends DescMessage, Answer> {
  /** See {@link CallReport.method}. */
  readonly name: string
  readonly desc: { readonly input: I }
  readonly limit: CallLimit | LimitOf<I>
  handle(input: MessageShape<I>, call: Call): Answer
}

/** A call to carry out. */
interface Invocation<I extends DescMessage, Answer, Reply, Written> {
  readonly method: InvokedMethod<I, Answer>
  readonly call: Call
  /** Reads the request's message. Called after the limit has let the call through, unless the message decides that. */
  readonly readInput: () => MessageShape<I> | Promise<MessageShape<I>>
  /** Encodes a reply, as a part of the call: if that fails, the call fails, and the log has it. */
  readonly write: (reply: Reply) => Written
}

/** Longest deadline of a stream, in ms: 15 minutes. Longer ones are cut to it; streams end before. */
const maxStreamMs: number = 15 * 60_000

/**
 * Carries out every call of every protocol: limit, validation, handler, reply or failure, report to the observer. All
 * errors of a call are a `CountersignError` or a `CallEnded`.
 */
export class Invoker {
  readonly #limiter: RateLimiter | undefined
  readonly #observe: CallObserver
  readonly #tracing: Tracing | undefined

  /** Without a limiter, nothing is counted; without tracing, nothing is traced. */
  constructor(limiter: RateLimiter | undefined, observe: CallObserver, tracing?: Tracing) {
    this.#limiter = limiter
    this.#observe = observe
    this.#tracing = tracing
  }

  /** Carries out a call that answers once. Resolves with the encoded reply. */
  async unary<I extends DescMessage, Reply, Written>(
    invocation: Invocation<I, Promise<Reply>, Reply, Written>,
  ): Promise<Written> {
    const startedAt = performance.now()
    const running = this.#begun(invocation)
    const { method, call, write } = invocation
    const { timeoutMs } = call
    let written: Written
    try {
      // A call without time left has no effect.
      if (timeoutMs !== undefined && timeoutMs <= 0) throw late()
      const work = within(running.trace, async () =>
        write(await method.handle(await this.#read(invocation, running), call)),
      )
      written = await withinDeadline(work, timeoutMs)
    } catch (thrown) {
      throw await this.#failed(invocation, startedAt, thrown, running)
    }
    this.#report(invocation, startedAt, 'ok', running)
    return written
  }

  /**
   * Carries out a call that answers with a stream. A caller that leaves early ends it with `return`, or aborts its
   * signal.
   */
  async *stream<I extends DescMessage, Reply, Written>(
    invocation: Invocation<I, AsyncGenerator<Reply, void, undefined>, Reply, Written>,
  ): AsyncGenerator<Written, void, undefined> {
    const { method, call, write } = invocation
    const running = this.#begun(invocation)
    const startedAt = performance.now()
    const deadline = new CallDeadline(call)
    let outcome: CallOutcome = new CallEnded('canceled')
    try {
      if (deadline.passed) throw new CallEnded('deadline_exceeded')
      const watched = deadline.signal === call.signal ? call : withSignal(call, deadline.signal)
      const replies = await within(running.trace, async () =>
        method.handle(await this.#read(invocation, running), watched),
      )
      for await (const reply of running.trace === undefined ? replies : traced(replies, running.trace))
        yield write(reply)
      if (deadline.passed) throw new CallEnded('deadline_exceeded')
      if (!call.signal.aborted) outcome = 'ok'
    } catch (thrown) {
      outcome = await this.#countWrongToken(toOutcome(thrown, call), call, running)
      throw outcome
    } finally {
      deadline.clear()
      this.#report(invocation, startedAt, outcome, running)
    }
  }

  /** Reads the message of a call that the limit lets through, and checks it. */
  async #read<I extends DescMessage>(
    { method, call, readInput }: Omit<Invocation<I, unknown, unknown, unknown>, 'write'>,
    running: Running,
  ): Promise<MessageShape<I>> {
    const spend = async (limit: CallLimit): Promise<void> => {
      if (limit !== 'unlimited') await this.#limiter?.spend(limit, call.request)
    }
    const { limit } = method
    if (typeof limit === 'string') await spend(limit)
    const input = await readInput()
    if (typeof limit !== 'string') await spend(limit(input))
    requireValid(method.desc.input, input)
    running.input = input
    return input
  }

  async #failed(
    invocation: AnyInvocation,
    startedAt: number,
    thrown: unknown,
    running: Running,
  ): Promise<CountersignError | CallEnded> {
    const { call } = invocation
    // A failed call hands out nothing, cookies above all.
    delete call.responseHeaders['set-cookie']
    delete call.responseHeaders['set-auth-token']
    const outcome = await this.#countWrongToken(toOutcome(thrown, call), call, running)
    this.#report(invocation, startedAt, outcome, running)
    return outcome
  }

  /**
   * Counts a failure that shows a wrong token or code. After too many, returns RATE_LIMITED in its place; a caller with
   * the right token is never refused for the guesses of others. The answer to a wrong code stays as it is: the order
   * counts the tries, and a client that waits and repeats the call would use them up.
   */
  async #countWrongToken<Failure extends CountersignError | CallEnded>(
    failure: Failure,
    { request }: Call,
    { input }: Running,
  ): Promise<Failure | CountersignError> {
    if (this.#limiter === undefined || failure instanceof CallEnded) return failure
    const { counts } = reasons[failure.reason]
    if (counts === 'none') return failure
    const isToken = counts === 'order-wrong-token'
    try {
      await this.#limiter.countWrongToken(request)
      const orderId = isToken && input !== undefined ? namedInCall(input).orderId : undefined
      if (orderId !== undefined) await this.#limiter.countWrongTokenOf(orderId)
      return failure
    } catch (limited) {
      return isToken && limited instanceof CountersignError ? limited : failure
    }
  }

  #begun({ method: { name: method }, call: { protocol, request } }: AnyInvocation): Running {
    return { trace: this.#tracing?.begin({ method, protocol, request }) }
  }

  #report({ method, call }: AnyInvocation, startedAt: number, outcome: CallOutcome, { input, trace }: Running): void {
    trace?.end(outcome)
    const { protocol, request, pardoned } = call
    const reported = outcome === 'ok' ? (pardoned ?? outcome) : outcome
    const named = reported === 'ok' || input === undefined ? undefined : namedInCall(input)
    const durationMs = performance.now() - startedAt
    this.#observe({ method: method.name, protocol, request, outcome: reported, named, durationMs })
  }
}

/** Not a spread, which leaves out accessors of a class. */
function withSignal({ protocol, request, responseHeaders, timeoutMs }: Call, signal: AbortSignal): Call {
  return { protocol, request, responseHeaders, timeoutMs, signal }
}

/** State of a call in progress. */
interface Running {
  /** Absent without tracing. */
  readonly trace: CallTrace | undefined
  /** The call's message, once it is read and valid. */
  input?: object
}

/** Runs a part of a call within its trace. */
function within<Result>(trace: CallTrace | undefined, work: () => Result): Result {
  return trace === undefined ? work() : trace.within(work)
}

/**
 * Replies that are made within the call's trace: a generator otherwise continues in the async context of its consumer.
 */
function traced<Reply>(replies: AsyncGenerator<Reply, void, undefined>, trace: CallTrace): AsyncIterable<Reply> {
  const next = async (): Promise<IteratorResult<Reply, void>> => {
    const result = await trace.within(() => replies.next())
    if (result.done !== true) trace.sent()
    return result
  }
  const end = (): Promise<IteratorResult<Reply, void>> => trace.within(() => replies.return())
  return { [Symbol.asyncIterator]: () => ({ next, return: end }) }
}

interface AnyInvocation {
  readonly method: { readonly name: string }
  readonly call: Call
}

function toOutcome(thrown: unknown, call: Call): CountersignError | CallEnded {
  if (thrown instanceof CallEnded) return thrown
  const failure = toFailure(thrown)
  // Errors after the caller has left, such as a body that ends in the middle, are not failures of the server.
  return call.signal.aborted && failure.reason === 'INTERNAL' ? new CallEnded('canceled') : failure
}

/**
 * Waits for a call's reply until the caller's deadline, and {@link maxUnaryMs} at most. The work itself continues and
 * may take effect.
 */
function withinDeadline<T>(work: Promise<T>, timeoutMs: number | undefined): Promise<T> {
  if (timeoutMs === undefined || timeoutMs >= maxUnaryMs) return unaryTime.within(work, late)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), timeoutMs)
    const settle = (): void => clearTimeout(timer)
    work.then(settle, settle)
    work.then(resolve, reject)
  })
}

function late(): CallEnded {
  return new CallEnded('deadline_exceeded')
}

/** Longest time for the reply of a call that answers once, in ms. Handlers and deadlines cannot extend it. */
const maxUnaryMs = 30_000

/** The time limit of all calls that answer once. They end up to a second late. */
const unaryTime = new TimeLimit(maxUnaryMs, 1000)

/** End of a stream: its signal aborts with the caller's own, or at the caller's deadline. */
class CallDeadline {
  readonly signal: AbortSignal
  passed = false
  readonly #timer: NodeJS.Timeout | undefined

  constructor({ signal, timeoutMs }: Call) {
    if (timeoutMs === undefined) {
      this.signal = signal
      return
    }
    const controller = new AbortController()
    this.signal = AbortSignal.any([signal, controller.signal])
    const pass = (): void => {
      this.passed = true
      controller.abort()
    }
    if (timeoutMs <= 0) pass()
    else this.#timer = setTimeout(pass, Math.min(timeoutMs, maxStreamMs))
  }

  clear(): void {
    clearTimeout(this.#timer)
  }
}

/**
 * Reads the names in a valid message: its order, and the wallet of its proof. A caller can send any text, even a token
 * by mistake: text of another form is left out.
 */
function namedInCall(message: object): NamedInCall {
  const { orderId, adapterId, address, proof } = message as ReportFields
  return {
    orderId: matching(orderIdForm, orderId),
    adapterId: matching(adapterIdForm, proof?.adapterId ?? adapterId),
    address: matching(addressForm, proof?.address ?? address),
  }
}

/** The identifiers of orders: 128 bits. */
const orderIdForm = /^[A-Za-z0-9_-]{22}$/

const adapterIdForm = /^[a-z][a-z0-9-]{0,31}$/

/**
 * Addresses of wallets, in groups or not, and of contracts (CAIP-10). Tokens, nonces, codes and signatures have other
 * forms.
 */
const addressForm =
  /^(NQ\d\d[ 0-9A-Z]{32,40}|(eip155:\d{1,20}:)?0x[0-9A-Fa-f]{40}|[1-9A-HJ-NP-Za-km-z]{32,42}|[1-9A-HJ-NP-Za-km-z]{44})$/

function matching(form: RegExp, text: string | undefined): string | undefined {
  return text !== undefined && form.test(text) ? text : undefined
}

/** Fields with names in the API's messages. Their types are the same in all messages. */
interface ReportFields extends NamedInCall {
  readonly proof?: NamedInCall
}

/** What calls in progress are held to. */
export interface CallCeilings {
  readonly ceilings: CeilingLimits
  /** Number of watchers of each client address; without it, they are unlimited. */
  readonly limits: Pick<Limits, 'watchers'> | undefined
  readonly log: Logger
}

/**
 * The same RPCs with ceilings on calls that wait for the store, and on streams. A call beyond a ceiling is refused with
 * SERVER_BUSY at once, before its first step in the store.
 *
 * Whole calls are counted, not single steps: a refusal between two steps would leave a nonce consumed without a
 * session, or an order finalized without one, although SERVER_BUSY promises that nothing was done. All RPCs need the
 * store, and spend nearly all their time on it; a hook of the application can also hang, for at most five seconds in
 * each step. A call that ended at its deadline counts until its handler ends, because its step still waits in the
 * store's queue.
 *
 * A stream counts as a call until its first event. Later it reads its order only after a change, and every 15 s: at
 * most as many reads as there are streams, and a refusal would end a working stream. One network has a share of each
 * ceiling.
 */
export function withAdmission(methods: readonly Method[], { ceilings, limits, log }: CallCeilings) {
  const calls = new Concurrency('storeCalls', ceilings, log)
  const streams = new Concurrency('streams', ceilings, log)
  const watchers = limits && new WatcherCounts(limits)
  const admitted = (method: Method): Method =>
    isUnary(method) ? admittedUnary(method, calls) : admittedStream(method, calls, streams, watchers)
  /** Present use of each ceiling. */
  const ceilingUses = (): readonly CeilingUse[] => [calls.use(), streams.use()]
  return { methods: methods.map(admitted), ceilingUses }
}

function admittedUnary(method: UnaryMethod, calls: Concurrency): UnaryMethod {
  return {
    ...method,
    // Throws if there is no slot.
    handle(input, call) {
      const leave = enter(calls, call)
      const handling = method.handle(input, call)
      handling.then(leave, leave)
      return handling
    },
  }
}

function admittedStream(
  method: StreamMethod,
  calls: Concurrency,
  streams: Concurrency,
  watchers: WatcherCounts | undefined,
): StreamMethod {
  return {
    ...method,
    async *handle(input, call) {
      const held = [enter(streams, call)]
      try {
        if (watchers !== undefined) held.push(watchers.enter(call.request.ip))
        let opened: (() => void) | undefined = enter(calls, call)
        try {
          for await (const message of method.handle(input, call)) {
            opened?.()
            opened = undefined
            yield message
          }
        } finally {
          opened?.()
        }
      } finally {
        for (const leave of held) leave()
      }
    },
  }
}

/**
 * Takes a slot for a call, and returns the function that gives it back, once. Throws SERVER_BUSY without a free slot.
 */
function enter(slots: Concurrency, { request: { ip } }: Call): () => void {
  const network = siteOf(ip)
  if (!slots.take(network)) throw serverBusy()
  return () => slots.leave(network)
}
