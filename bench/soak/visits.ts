import { randomInt } from 'node:crypto'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { enveloped, pathOf } from '../grpc.ts'
import { publicUrl } from '../servers.ts'
import type { Wallet } from '../wallets.ts'
import {
  type Answer,
  type Caller,
  CallFailed,
  type CallName,
  type Clients,
  type Holder,
  type Protocol,
} from './calls.ts'

/** An instance as its clients see it. */
export interface Door {
  readonly port: number
  readonly clients: Clients
  /** Whether a load balancer sends requests there. */
  inService: boolean
}

/** What a visit is made with. */
export interface VisitParts {
  readonly protocol: Protocol
  readonly doors: readonly Door[]
  readonly wallet: Wallet
  /** Is told how long something took, ms. */
  readonly took: (kind: string, startedAt: number, ms: number) => void
}

/** Kinds of times that are told. Order calls are all but watches. */
const timedKinds = ['IssueNonce', 'VerifySignIn', 'session check', 'sign-out', 'order call', 'event'] as const

const kindOf: Readonly<Partial<Record<CallName, (typeof timedKinds)[number]>>> = {
  nonce: 'IssueNonce',
  verify: 'VerifySignIn',
  session: 'session check',
  signOut: 'sign-out',
}

/** Longest wait for an event, ms: a wake-up that was lost is made good by the next heartbeat, within 15 s. */
const eventMs = 20_000
/** Time between tries of a watcher that lost its stream, ms. */
const comeBackMs = 300

/**
 * Where people come from. So few that the limits, which remember up to 50,000 addresses, soon know all of them: what
 * they remember of new ones would be a heap that grows.
 */
const addresses = Array.from({ length: 256 }, (_, index) => `10.${randomInt(256)}.${randomInt(256)}.${index}`)

/** One person's visit. Every call goes to an instance of its own, as behind a load balancer. */
class Visit {
  readonly protocol: Protocol
  readonly wallet: Wallet
  readonly #doors: readonly Door[]
  readonly #took: VisitParts['took']
  readonly address = addresses[randomInt(addresses.length)] as string

  constructor({ protocol, doors, wallet, took }: VisitParts) {
    this.protocol = protocol
    this.wallet = wallet
    this.#doors = doors
    this.#took = took
  }

  /** An instance that is in service; any if none is. */
  door(): Door {
    const serving = this.#doors.filter(({ inService }) => inService)
    const among = serving.length === 0 ? this.#doors : serving
    return among[randomInt(among.length)] as Door
  }

  async call(name: CallName, fields: object, caller: Partial<Caller> = {}): Promise<Answer> {
    const startedAt = performance.now()
    const { clients } = this.door()
    const answer = await clients.call(this.protocol, name, { ...fields }, { address: this.address, ...caller })
    this.#took(kindOf[name] ?? 'order call', startedAt, performance.now() - startedAt)
    return answer
  }

  /** Makes a call that is to be refused with a reason. */
  async refused(reason: string, name: CallName, fields: object, caller: Partial<Caller> = {}): Promise<void> {
    try {
      await this.door().clients.call(this.protocol, name, { ...fields }, { address: this.address, ...caller })
    } catch (error) {
      if (error instanceof CallFailed && error.reason === reason) return
      throw error
    }
    throw new CallFailed('accepted', `${name} was to be refused with ${reason}`)
  }

  watch(holder: Holder): Watch {
    return new Watch(this, holder, this.#took)
  }

  async signIn(): Promise<string> {
    const { nonceId, message } = await this.call('nonce', {})
    return (await this.call('verify', { nonceId, ...this.wallet.prove(message) })).token
  }

  async startOrder(): Promise<Answer> {
    return await this.call('start', { kind: 'login' })
  }

  /** Goes to the point at which the phone has read what it is to sign. */
  async claimed({ orderId, claimToken }: { readonly orderId: string; readonly claimToken: string }) {
    const { challengeToken } = await this.call('claim', { orderId, claimToken })
    const { message } = await this.call('challenge', { orderId, challengeToken })
    const { publicKeyHex, signatureHex, adapterId } = this.wallet.prove(message)
    return { orderId, challengeToken, proof: { publicKeyHex, signatureHex, adapterId } }
  }

  /** Ends a session, and sees that it has ended. */
  async leave(token: string): Promise<void> {
    await this.call('signOut', {}, { token })
    await this.refused('SESSION_INVALID', 'session', {}, { token })
  }
}

/**
 * Watches an order as a client does: comes back if the server asks for it or the stream breaks, at whichever instance
 * is in service.
 */
class Watch {
  readonly #visit: Visit
  readonly #holder: Holder
  readonly #took: VisitParts['took']
  readonly #left = new AbortController()
  readonly #seen = new Map<string, number>()
  readonly #waiting = new Map<string, () => void>()
  readonly #ended: Promise<void>
  #failure: CallFailed | undefined

  constructor(visit: Visit, holder: Holder, took: VisitParts['took']) {
    this.#visit = visit
    this.#holder = holder
    this.#took = took
    this.#ended = this.#follow()
  }

  /**
   * Resolves once the watcher knows of a status. `sinceMs`: when whoever changed it got the answer, if that is timed.
   */
  async saw(status: string, sinceMs?: number): Promise<void> {
    if (!this.#seen.has(status)) {
      const arrived = new Promise<void>((resolve) => this.#waiting.set(status, resolve))
      const given = new AbortController()
      const late = pause(eventMs, undefined, { signal: given.signal }).catch(() => {})
      await Promise.race([arrived, this.#ended, late])
      given.abort()
    }
    const at = this.#seen.get(status)
    if (at === undefined) throw this.#failure ?? new CallFailed('event missing', `${status} was not told`)
    if (sinceMs !== undefined) this.#took('event', sinceMs, Math.max(0, at - sinceMs))
  }

  /** Resolves once the server has ended the stream for good. */
  async ended(): Promise<void> {
    const given = new AbortController()
    const late = pause(eventMs, 'late', { signal: given.signal }).catch(() => {})
    if ((await Promise.race([this.#ended, late])) === 'late') throw new CallFailed('not ended', 'the stream goes on')
    given.abort()
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Leaves without a word. */
  leave(): void {
    this.#left.abort()
  }

  async #follow(): Promise<void> {
    const { signal } = this.#left
    let sequence: number | undefined
    for (const givenUpAt = performance.now() + 2 * eventMs; performance.now() < givenUpAt; ) {
      try {
        const { clients } = this.#visit.door()
        let comesBack = false
        const caller = { address: this.#visit.address, signal }
        for await (const event of clients.watch(this.#visit.protocol, this.#holder, sequence, caller)) {
          sequence = event.sequence
          comesBack = event.reconnect
          if (event.heartbeat || event.reconnect) continue
          this.#seen.set(event.status, performance.now())
          this.#waiting.get(event.status)?.()
        }
        if (!comesBack) return
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof CallFailed)) throw error
        if (!/^(cut|STORE_UNAVAILABLE|SERVER_BUSY)$/.test(error.reason)) {
          this.#failure = error
          return
        }
        this.#took('watch broken', performance.now(), 0)
      }
      await pause(comeBackMs)
    }
    this.#failure = new CallFailed('watch lost', 'the watcher could not come back')
  }
}

/** A kind of visit, and its share among all. */
export interface Kind {
  readonly name: string
  readonly share: number
  readonly make: (visit: Visit) => Promise<void>
}

/** A visit about one order, which its computer watches from the beginning. */
function watched(make: (visit: Visit, order: Answer, watch: Watch) => Promise<void>): Kind['make'] {
  return async (visit) => {
    const order = await visit.startOrder()
    const watch = visit.watch(order)
    try {
      await make(visit, order, watch)
    } finally {
      watch.leave()
    }
  }
}

/** All that people do, and that goes wrong with them. */
export const visitKinds: readonly Kind[] = [
  {
    name: 'sign-in',
    share: 30,
    async make(visit) {
      const token = await visit.signIn()
      for (let checks = randomInt(1, 5); checks > 0; checks--) {
        await visit.call('session', {}, { token })
        await pause(randomInt(200))
      }
      // Others leave their session to its end.
      if (randomInt(10) < 7) await visit.leave(token)
    },
  },
  {
    name: 'wrong proof',
    share: 8,
    async make(visit) {
      const { nonceId, message } = await visit.call('nonce', {})
      await visit.refused('SIGNATURE_INVALID', 'verify', { nonceId, ...visit.wallet.prove(`${message} `) })
      // A nonce is good once, whatever came of it.
      await visit.refused('NONCE_NOT_FOUND', 'verify', { nonceId, ...visit.wallet.prove(message) })
    },
  },
  {
    name: 'wrong token',
    share: 5,
    async make(visit) {
      await visit.refused('SESSION_REQUIRED', 'session', {})
      // Tokens that no session ever had are told from those whose session has ended.
      await visit.refused('SESSION_REQUIRED', 'session', {}, { token: 'a token that was never issued' })
    },
  },
  {
    name: 'approved order',
    share: 16,
    make: watched(async (visit, order, watch) => {
      await watch.saw('created')
      const approval = await visit.claimed(order)
      const { returnCode } = await visit.call('approve', approval)
      await watch.saw('approved', performance.now())
      const { orderId, desktopToken } = order
      const { token } = await visit.call('finalize', { orderId, desktopToken, returnCode })
      await watch.saw('finalized', performance.now())
      await watch.ended()
      await visit.call('session', {}, { token })
      await visit.leave(token)
    }),
  },
  {
    name: 'order with a wrong code',
    share: 6,
    make: watched(async (visit, order, watch) => {
      await watch.saw('created')
      const approval = await visit.claimed(order)
      const { returnCode } = await visit.call('approve', approval)
      await watch.saw('approved', performance.now())
      const { orderId, desktopToken } = order
      const wrong = returnCode.replace(/.$/, (last) => String((Number(last) + 1) % 10))
      await visit.refused('RETURN_CODE_WRONG', 'finalize', { orderId, desktopToken, returnCode: wrong })
      const { token } = await visit.call('finalize', { orderId, desktopToken, returnCode })
      await visit.leave(token)
    }),
  },
  {
    name: 'rejected order',
    share: 8,
    make: watched(async (visit, order, watch) => {
      await watch.saw('created')
      const { orderId, challengeToken } = await visit.claimed(order)
      await visit.call('reject', { orderId, challengeToken })
      await watch.saw('rejected', performance.now())
      await watch.ended()
    }),
  },
  {
    name: 'cancelled order',
    share: 8,
    make: watched(async (visit, order, watch) => {
      await watch.saw('created')
      const { orderId, desktopToken } = order
      await visit.call('cancel', { orderId, desktopToken })
      await watch.saw('cancelled', performance.now())
      await watch.ended()
    }),
  },
  {
    name: 'expired order',
    share: 3,
    make: watched(async (_visit, _order, watch) => {
      await watch.saw('expired')
      await watch.ended()
    }),
  },
  {
    name: 'abandoned order',
    share: 6,
    async make(visit) {
      const order = await visit.startOrder()
      const watch = visit.watch(order)
      if (randomInt(2) === 0) await visit.claimed(order)
      await pause(randomInt(2000))
      watch.leave()
    },
  },
  {
    name: 'aborted calls',
    share: 4,
    async make(visit) {
      for (const name of ['nonce', 'start', 'session'] as const) {
        const leaving = new AbortController()
        const fields = name === 'start' ? { kind: 'login' } : {}
        const made = visit
          .call(name, fields, { signal: leaving.signal, token: 'a token that was never issued' })
          .catch(expected('aborted', 'SESSION_REQUIRED'))
        const [result] = await Promise.allSettled([made, pause(randomInt(4)).then(() => leaving.abort())])
        if (result.status === 'rejected') throw result.reason
      }
    },
  },
  { name: 'cut connection', share: 6, make: cutConnection },
]

function expected(...reasons: string[]) {
  return (error: unknown): void => {
    if (!(error instanceof CallFailed && reasons.includes(error.reason))) throw error
  }
}

/** Begins something on a connection of its own, and cuts it. */
async function cutConnection(visit: Visit): Promise<void> {
  const { port } = visit.door()
  const head = (start: string, headers: string): string =>
    `${start} HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: ${publicUrl}\r\nx-forwarded-for: ${visit.address}\r\n${headers}\r\n`
  const which = randomInt(5)
  if (which === 0) return await cut(port, 'POST /api/auth/wallet/nonce HTTP/1.1\r\nhost: 127.')
  if (which === 1) {
    const headers = 'content-type: application/json\r\ncontent-length: 500\r\n'
    return await cut(port, `${head('POST /api/auth/wallet/nonce', headers)}{"purpose": `)
  }
  if (which === 2) return await cut(port, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const { orderId, desktopToken } = await visit.startOrder()
  if (which === 3) {
    const headers = `accept: text/event-stream\r\nauthorization: Bearer ${desktopToken}\r\n`
    return await cut(port, head(`GET /api/auth/cross-device/events?orderId=${orderId}`, headers))
  }
  const { watchOrder } = OrderService.method
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  const stream = session.request({
    ':method': 'POST',
    ':path': pathOf(watchOrder),
    'content-type': 'application/grpc+proto',
    te: 'trailers',
    origin: publicUrl,
    'x-forwarded-for': visit.address,
  })
  stream.on('error', () => {})
  stream.end(enveloped(toBinary(watchOrder.input, create(watchOrder.input, { orderId, desktopToken }))))
  await pause(randomInt(1000))
  // Half of them reset the stream before, and half say nothing at all.
  if (randomInt(2) === 0) stream.close(8)
  session.destroy()
}

/** Sends a text and cuts the connection within a second: with a reset, or as if the client had said all. */
async function cut(port: number, text: string): Promise<void> {
  const socket: Socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.resume()
  socket.write(text)
  await pause(randomInt(1000))
  if (randomInt(2) === 0) socket.resetAndDestroy()
  else socket.destroy()
}

/** Makes one visit. Rejects with {@link CallFailed} if it does not go as it should. */
export async function makeVisit(kind: Kind, parts: VisitParts): Promise<void> {
  await kind.make(new Visit(parts))
}
