import type { ServiceDomain } from '../../src/service/domain.ts'
import { wrongCode } from './order-actors.ts'
import type { Random } from './random.ts'
import { Caller, type KnownOrder, recent } from './scene.ts'
import { appOrigin, foreignOrigin, otherOrigin, ownOrigin, request } from './service.ts'

/** A use of a token, and whether it is what the token is for. */
type Use = readonly [what: string, fits: boolean, run: (domain: ServiceDomain) => Promise<unknown>]

/** Has every token, and uses each for what it is not for. */
export class Thief extends Caller {
  protected begin(random: Random): unknown {
    const order = recent(this.scene, random)
    const choice = random.below(100)
    if (choice < 30) return this.#misuseSession(random)
    if (choice < 40) return this.#comeFromElsewhere(random)
    if (order === undefined) return
    return choice < 60 ? this.#guess(order, random) : this.#misuseToken(order, random)
  }

  #misuseToken(order: KnownOrder, random: Random): void {
    const { orderId, claimToken, desktopToken, tokens, tickets } = order
    const sessions = this.scene.sessions.map(({ token }) => token)
    const token = random.pick(
      [claimToken, desktopToken, ...tokens.keys(), ...tickets.keys(), ...sessions].filter((each) => each !== ''),
    )
    const [isPhone, isDesktop] = [tokens.has(token), token === desktopToken]
    const from = request(ownOrigin)
    const uses: readonly Use[] = [
      ['look at', token === claimToken, ({ orders }) => orders.preview({ orderId, claimToken: token }, from)],
      ['read', isPhone, ({ orders }) => orders.readChallenge({ orderId, challengeToken: token }, from)],
      ['reject', isPhone, ({ orders }) => orders.reject({ orderId, challengeToken: token }, from)],
      ['hand over', isPhone, ({ orders }) => orders.handOver({ orderId, challengeToken: token }, from)],
      ['cancel', isDesktop, ({ orders }) => orders.cancel({ orderId, desktopToken: token }, from)],
      ['finalize', isDesktop, ({ orders }) => orders.finalize({ orderId, desktopToken: token }, from)],
      ['cancel from a page', false, ({ orders }) => orders.cancel({ orderId, desktopToken }, request(otherOrigin))],
    ]
    const [what, , run] = random.pick(uses.filter(([, fits]) => !fits))
    this.#try(random, `${what} ${order.name} with another token or of another origin`, run)
  }

  /** With the computer's token, the return code is still missing. */
  #guess(order: KnownOrder, random: Random): void {
    const { orderId, desktopToken, computerNumber, name } = order
    const takesCode = this.scene.facts.wasStored(orderId, ({ returnCodes }) => returnCodes === true)
    if (!takesCode || computerNumber !== undefined) return
    this.#try(random, `finalize ${name} by a guess`, ({ orders }) =>
      orders.finalize({ orderId, desktopToken, returnCode: wrongCode(order) }, request(appOrigin)),
    )
  }

  /** A cookie is no token, a token no cookie, and neither is what this service has not signed. */
  #misuseSession(random: Random): void {
    const { sessions } = this.scene
    const held = sessions.length === 0 ? undefined : random.pick(sessions)
    if (held?.cookie === undefined) return
    const { token, cookie } = held
    const [name = '', value] = cookie.split('=')
    const forged = `${token.slice(0, -2)}${token.endsWith('AA') ? 'EE' : 'AA'}`
    const requests = [
      ['by a cookie as a token', request(appOrigin, value)],
      ['by a token as a cookie', { ...request(appOrigin), headers: new Headers({ cookie: `${name}=${token}` }) }],
      ['by a token that is forged', request(appOrigin, forged)],
    ] as const
    const [words, from] = random.pick(requests)
    this.#try(random, `use a session ${words}`, ({ host }) => host.currentSession(from))
  }

  /** A page that is not trusted gets nothing; nor does one without a start key, if the service asks for one. */
  #comeFromElsewhere(random: Random): void {
    const { service, sessions } = this.scene
    const cookie = sessions.at(-1)?.cookie
    const headers = new Headers(cookie === undefined ? {} : { cookie })
    const withOrigin = new Headers({ origin: foreignOrigin, ...(cookie === undefined ? {} : { cookie }) })
    const login = { kind: 'login' } as const
    const tries: [words: string, run: Use[2]][] = [
      ['start an order from a foreign page', ({ orders }) => orders.start(login, request(foreignOrigin))],
      ['get a nonce for a foreign page', ({ signIn }) => signIn.issueNonce(undefined, {}, request(foreignOrigin))],
      [
        "use a session's cookie from a foreign page",
        ({ host }) => host.currentSession({ ...request(foreignOrigin), headers }),
      ],
      [
        "pass a proxy by a session's cookie from a foreign page",
        ({ standalone }) => standalone.peekSession({ ...request(foreignOrigin), headers: withOrigin }, true),
      ],
      [
        "change something behind a proxy by a session's cookie from any page",
        ({ standalone }) => standalone.peekSession({ ...request(foreignOrigin), headers }, false),
      ],
      [
        "read an inbox by a session's cookie from another page than the service's",
        ({ orders }) => orders.listInbox({ ...request(appOrigin), headers }),
      ],
    ]
    if (service.kind.takesStartKey) {
      const title = { ...login, displayTitle: 'Pay' }
      tries.push(
        ['start an order without a key', ({ orders }) => orders.start(login, request(appOrigin))],
        ['ask for a signature without a key', ({ orders }) => orders.start({ kind: 'sign' }, request(ownOrigin))],
        ['write a title without a key', ({ orders }) => orders.start(title, request(ownOrigin))],
      )
    }
    const [words, run] = random.pick(tries)
    this.#try(random, words, run)
  }

  #try(random: Random, words: string, run: (domain: ServiceDomain) => Promise<unknown>): void {
    this.do(random, `tries to ${words}`, run, ({ kind }) => {
      this.scene.facts.require(kind === 'refused', `a thief can ${words}`)
    })
  }
}
