import { Ceiling, type CeilingLimits, type CeilingUse } from '../ceiling.ts'
import { serverBusy } from '../errors.ts'
import type { HeldPlaces } from '../limits/held-places.ts'
import type { Logger } from '../log.ts'
import { networkOf } from '../networks.ts'
import type { Call } from './call.ts'
import { type AnyMethod, type BidiMethod, isBidi, isUnary, type StreamMethod, type UnaryMethod } from './methods.ts'

/** RPCs with ceilings on what is in progress. */
export interface AdmittedMethods {
  readonly methods: readonly AnyMethod[]
  /** What the ceilings are at. */
  readonly ceilingUses: () => readonly CeilingUse[]
}

/**
 * The same RPCs with ceilings on what is in progress: `maxStoreCalls` calls that wait for the store, and `maxStreams` streams.
 * Beyond them a call is refused with SERVER_BUSY at once, before it has asked the store for anything.
 *
 * Whole calls are counted, not single steps of the store: a refusal between two steps would leave a nonce consumed without a
 * session, or an order finalized without one, although SERVER_BUSY promises that nothing was done. All RPCs need the store, and
 * do next to nothing else that takes time, unless a hook of the application does, which can hang in the same way, but for five
 * seconds in each step only. A call that was given up at its deadline counts until its handler ends, because its step still waits
 * in the store's queue.
 *
 * A stream counts as a call until its first event. Later it reads its order again only if that was changed, and every 15 s; there
 * are as many such reads as streams at most, and to refuse one would end a stream that works. A bidirectional stream, which is
 * gRPC's reflection, asks the store for nothing. `watchers` limits the streams of each client address; without it, nothing does.
 */
export function withAdmission(
  methods: readonly AnyMethod[],
  limits: CeilingLimits,
  log: Logger,
  watchers?: HeldPlaces,
): AdmittedMethods {
  const calls = new Places(new Ceiling('maxStoreCalls', limits, log))
  const streams = new Places(new Ceiling('maxStreams', limits, log))
  const admitted = (method: AnyMethod): AnyMethod => {
    if (isUnary(method)) return admittedUnary(method, calls)
    return isBidi(method) ? admittedBidi(method, streams) : admittedStream(method, calls, streams, watchers)
  }
  return { methods: methods.map(admitted), ceilingUses: () => [calls.use(), streams.use()] }
}

function admittedUnary(method: UnaryMethod, calls: Places): UnaryMethod {
  return {
    ...method,
    // Throws if there is no place.
    handle(input, call) {
      calls.take(call)
      const handling = method.handle(input, call)
      const leave = (): void => calls.leave()
      handling.then(leave, leave)
      return handling
    },
  }
}

function admittedStream(
  method: StreamMethod,
  calls: Places,
  streams: Places,
  watchers: HeldPlaces | undefined,
): StreamMethod {
  return {
    ...method,
    async *handle(input, call) {
      streams.take(call)
      let opening = false
      let leave: (() => void) | undefined
      const opened = (): void => {
        if (opening) calls.leave()
        opening = false
      }
      try {
        leave = await watchers?.enter(call.request.ip)
        calls.take(call)
        opening = true
        for await (const message of method.handle(input, call)) {
          opened()
          yield message
        }
      } finally {
        opened()
        leave?.()
        streams.leave()
      }
    },
  }
}

function admittedBidi(method: BidiMethod, streams: Places): BidiMethod {
  return {
    ...method,
    async *handle(inputs, call) {
      streams.take(call)
      try {
        yield* method.handle(inputs, call)
      } finally {
        streams.leave()
      }
    },
  }
}

/** Places for what is in progress, as many as a ceiling says. */
class Places {
  readonly #ceiling: Ceiling
  #taken = 0

  constructor(ceiling: Ceiling) {
    this.#ceiling = ceiling
  }

  /** Takes a place for a call. Throws SERVER_BUSY if there is none. */
  take({ request: { ip } }: Call): void {
    if (this.#taken >= this.#ceiling.most) {
      this.#ceiling.refused(ip === undefined ? undefined : networkOf(ip))
      throw serverBusy()
    }
    this.#taken++
  }

  leave(): void {
    this.#taken--
  }

  use(): CeilingUse {
    return this.#ceiling.use(this.#taken)
  }
}
