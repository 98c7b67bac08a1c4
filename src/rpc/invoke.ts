import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf'
import { CallEnded, type CountersignError } from '../errors.ts'
import type { RateLimiter } from '../rate-limit.ts'
import type { RequestContext } from '../request.ts'
import { TimeLimit } from '../timing/time-limit.ts'
import type { Call, Protocol } from './call.ts'
import { toFailure } from './errors.ts'
import type { BidiHandler, CallLimit, StreamHandler } from './methods.ts'
import { requireValid } from './read-input.ts'

/** How a call ended: well, with a failure that has a reason, or early. */
export type CallOutcome = 'ok' | CountersignError | CallEnded

/** What the observer is told of each call, once, when it is over. */
export interface CallReport {
  /** Full name of the RPC, such as `countersign.v1.SignInService/IssueNonce`, or what else was asked for. */
  readonly method: string
  readonly protocol: Protocol | 'http'
  /** HTTP method, such as GET, of what no RPC took. */
  readonly httpMethod?: string
  /** Path of what no RPC took, if it is one of the service's own. Any other path could contain a secret. */
  readonly path?: string
  /** Who called. */
  readonly request: RequestContext
  readonly outcome: CallOutcome
  /** Time from the call's arrival to its end, milliseconds. A stream ends when its last message was taken. */
  readonly durationMs: number
}

/** Told of every call. Must not throw. */
export type CallObserver = (report: CallReport) => void

/** A call to be carried out: how it is handled, who makes it, and how to read what it says. */
export interface Invocation<Handler, I extends DescMessage> {
  /** See {@link CallReport.method}. */
  readonly name: string
  readonly schema: I
  readonly handler: Handler
  readonly call: Call
  /** Reads the request's message, which is work, and is done only for calls that the limit lets through. */
  readonly readInput: () => MessageShape<I> | Promise<MessageShape<I>>
}

/** How replies are written: a part of the call, so that one that cannot be written is a failure of the call, in the log. */
interface Writing<Reply, Written> {
  readonly write: (reply: Reply) => Written
}

/** A call that answers once. */
export interface UnaryInvocation<I extends DescMessage, Reply, Written>
  extends Invocation<AnyUnaryHandler<I, Reply>, I>,
    Writing<Reply, Written> {}

/** A call that answers with a stream. */
export interface StreamInvocation<I extends DescMessage, O extends DescMessage, Written>
  extends Invocation<StreamHandler<I, O>, I>,
    Writing<MessageInitShape<O>, Written> {}

/** A call that answers a stream of messages with another one. */
export interface BidiInvocation<I extends DescMessage, O extends DescMessage, Written>
  extends Omit<Invocation<BidiHandler<I, O>, I>, 'readInput'>,
    Writing<MessageInitShape<O>, Written> {
  /** Reads the messages as they come, until all have come or the signal aborts. */
  readonly readInputs: (signal: AbortSignal) => AsyncIterable<MessageShape<I>>
}

/** A handler of calls that answer once, with whatever reply. */
interface AnyUnaryHandler<I extends DescMessage, Reply> {
  readonly limit: CallLimit
  handle(input: MessageShape<I>, call: Call): Promise<Reply>
}

/** Longest deadline of a stream, in milliseconds: 15 minutes. A longer one is cut to it; streams end by themselves before. */
const maxStreamMs: number = 15 * 60_000

/**
 * The one place that every call of every protocol passes: limit, validation, handler, reply or failure, and the observer is
 * told. What a call rejects with is always a `CountersignError` or a `CallEnded`.
 */
export class Invoker {
  readonly #limiter: RateLimiter | undefined
  readonly #observe: CallObserver

  /** Without a limiter, nothing is counted. */
  constructor(limiter: RateLimiter | undefined, observe: CallObserver) {
    this.#limiter = limiter
    this.#observe = observe
  }

  /** Carries out a call that answers once. Resolves with the reply as it was written. */
  async unary<I extends DescMessage, Reply, Written>(invocation: UnaryInvocation<I, Reply, Written>): Promise<Written> {
    const startedAt = performance.now()
    const { timeoutMs } = invocation.call
    try {
      // Nobody waits for the reply of a call that has no time, so it must not take effect either.
      if (timeoutMs !== undefined && timeoutMs <= 0) throw new CallEnded('deadline_exceeded')
      const written = await withinDeadline(timeoutMs, this.#run(invocation))
      this.#tell(invocation, startedAt, 'ok')
      return written
    } catch (thrown) {
      throw this.#failed(invocation, startedAt, thrown)
    }
  }

  async #run<I extends DescMessage, Reply, Written>(invocation: UnaryInvocation<I, Reply, Written>): Promise<Written> {
    const { handler, call, write } = invocation
    const input = await this.#admit(invocation)
    return write(await handler.handle(input, call))
  }

  /** Carries out a call that answers with a stream. A caller that leaves early ends it with `return`, or aborts its signal. */
  stream<I extends DescMessage, O extends DescMessage, Written>(
    invocation: StreamInvocation<I, O, Written>,
  ): AsyncGenerator<Written, void, undefined> {
    const { handler } = invocation
    return this.#streamed<O, Written>(invocation, async (call) => handler.handle(await this.#admit(invocation), call))
  }

  /** Carries out a call that answers a stream with another one. The limit counts it once. */
  bidi<I extends DescMessage, O extends DescMessage, Written>(
    invocation: BidiInvocation<I, O, Written>,
  ): AsyncGenerator<Written, void, undefined> {
    const { handler, schema, readInputs } = invocation
    return this.#streamed<O, Written>(invocation, async (call) => {
      this.#spend(invocation)
      return handler.handle(validated(schema, readInputs(call.signal)), call)
    })
  }

  async *#streamed<O extends DescMessage, Written>(
    invocation: AnyInvocation & Writing<MessageInitShape<O>, Written>,
    open: (call: Call) => Promise<AsyncGenerator<MessageInitShape<O>, void, undefined>>,
  ): AsyncGenerator<Written, void, undefined> {
    const { call, write } = invocation
    const startedAt = performance.now()
    const deadline = new Deadline(call)
    let outcome: CallOutcome = new CallEnded('canceled')
    try {
      if (deadline.passed) throw new CallEnded('deadline_exceeded')
      const watched = deadline.signal === call.signal ? call : withSignal(call, deadline.signal)
      for await (const reply of await open(watched)) yield write(reply)
      if (deadline.passed) throw new CallEnded('deadline_exceeded')
      if (!call.signal.aborted) outcome = 'ok'
    } catch (thrown) {
      outcome = toOutcome(thrown, call)
      throw outcome
    } finally {
      deadline.clear()
      this.#tell(invocation, startedAt, outcome)
    }
  }

  #spend({ handler, call }: Pick<Invocation<Limited, DescMessage>, 'handler' | 'call'>): void {
    if (handler.limit !== 'unlimited') this.#limiter?.spend(handler.limit, call.request.ip)
  }

  async #admit<I extends DescMessage>(invocation: Invocation<Limited, I>): Promise<MessageShape<I>> {
    this.#spend(invocation)
    const { schema, readInput } = invocation
    const input = await readInput()
    requireValid(schema, input)
    return input
  }

  #failed(invocation: AnyInvocation, startedAt: number, thrown: unknown): CountersignError | CallEnded {
    const { call } = invocation
    // Nothing of a call that failed is handed out, cookies above all.
    delete call.responseHeaders['set-cookie']
    delete call.responseHeaders['set-auth-token']
    const outcome = toOutcome(thrown, call)
    this.#tell(invocation, startedAt, outcome)
    return outcome
  }

  #tell({ name, call }: AnyInvocation, startedAt: number, outcome: CallOutcome): void {
    const { protocol, request } = call
    this.#observe({ method: name, protocol, request, outcome, durationMs: performance.now() - startedAt })
  }
}

/** Checks messages as they come. */
async function* validated<I extends DescMessage>(
  schema: I,
  inputs: AsyncIterable<MessageShape<I>>,
): AsyncGenerator<MessageShape<I>, void, undefined> {
  for await (const input of inputs) {
    requireValid(schema, input)
    yield input
  }
}

/** The parts are named, because those of a call can be accessors of its class, which a spread does not copy. */
function withSignal({ protocol, request, responseHeaders, timeoutMs }: Call, signal: AbortSignal): Call {
  return { protocol, request, responseHeaders, timeoutMs, signal }
}

interface Limited {
  readonly limit: CallLimit
}

type AnyInvocation = Pick<Invocation<unknown, DescMessage>, 'name' | 'call'>

function toOutcome(thrown: unknown, call: Call): CountersignError | CallEnded {
  if (thrown instanceof CallEnded) return thrown
  const failure = toFailure(thrown)
  // What breaks because the caller has gone, such as a body that ends in the middle, is nobody's failure.
  return call.signal.aborted && failure.reason === 'INTERNAL' ? new CallEnded('canceled') : failure
}

/**
 * Waits for a call's reply as long as the caller does, and no longer than {@link maxUnaryMs}. The work itself goes on: it may take
 * effect.
 */
function withinDeadline<T>(timeoutMs: number | undefined, running: Promise<T>): Promise<T> {
  const late = (): CallEnded => new CallEnded('deadline_exceeded')
  if (timeoutMs === undefined || timeoutMs >= maxUnaryMs) return unaryTime.within(running, late)
  const { promise: over, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), timeoutMs)
  return Promise.race([running, over]).finally(() => clearTimeout(timer))
}

/** Longest time for the reply of a call that answers once, in milliseconds, whatever its handler or the caller's deadline says. */
const maxUnaryMs = 30_000

/** The time of all calls that answer once. They are ended up to a second late. */
const unaryTime = new TimeLimit(maxUnaryMs, 1000)

/** The end of a stream's time: the caller's own signal, or the caller's deadline. */
class Deadline {
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
