import type { Logger } from '../base/log.ts'
import { siteOf } from '../base/request.ts'
import { type CeilingLimits, type CeilingUse, Concurrency, Watchers } from '../limits/concurrency.ts'
import type { Limits } from '../limits/limits.ts'
import { serverBusy } from '../shared/errors.ts'
import { type Call, isUnary, type Method, type StreamMethod, type UnaryMethod } from './methods.ts'

/** RPCs with ceilings on calls and streams in progress. */
export interface AdmittedMethods {
  readonly methods: readonly Method[]
  /** Present use of each ceiling. */
  readonly ceilingUses: () => readonly CeilingUse[]
}

/** What calls in progress are held to. */
export interface AdmissionParts {
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
export function withAdmission(methods: readonly Method[], { ceilings, limits, log }: AdmissionParts): AdmittedMethods {
  const calls = new Concurrency('maxStoreCalls', ceilings, log)
  const streams = new Concurrency('maxStreams', ceilings, log)
  const watchers = limits && new Watchers(limits)
  const admitted = (method: Method): Method =>
    isUnary(method) ? admittedUnary(method, calls) : admittedStream(method, calls, streams, watchers)
  return { methods: methods.map(admitted), ceilingUses: () => [calls.use(), streams.use()] }
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
  watchers: Watchers | undefined,
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
