import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { RequestContext } from '../../base/request.ts'
import type { Host, HostUser, IssuedSession, OrderGrant, OrderSession } from '../../core/users/host.ts'
import type { ProvenIdentity } from '../../core/wallet/wallet.ts'
import { assertRefused, race, type TestRunner } from './runner.ts'
import { makeTestWallet } from './wallet.ts'

/** What {@link describeHostContract} tests. */
export interface HostContractOptions {
  /** The host's name in the names of the tests. */
  readonly name: string
  /** Opens a host. Called once for each test. */
  readonly open: () => Promise<OpenedHost>
  /** An origin, such as `https://app.example`, from which the host accepts its session cookie. */
  readonly trustedOrigin: string
  /** An origin from which the host does not accept its session cookie. Default `https://untrusted.example`. */
  readonly untrustedOrigin?: string
}

/** A host that is open for one test. It lets every wallet sign in. */
export interface OpenedHost {
  /** Two handles of the same users and sessions, as two processes would have them; or the same handle twice. */
  readonly hosts: readonly [Host, Host]
  /** Called when the test is over, whether it passed or not. */
  readonly close?: () => Promise<void>
}

/** Sessions are told apart by the time they were made, in milliseconds. */
const nextMillisecondMs = 5

/** Moments of a createSession at which its order is taken back, evenly spread. */
const moments = 20

/**
 * Declares tests of what the contract of a {@link Host} says: who is one user, what finds a session, what ends it, and
 * that nothing brings it back. How long sessions live is the host's own decision, and for tests of your own.
 */
export function describeHostContract({ describe, test }: TestRunner, options: HostContractOptions): void {
  const { name, open, trustedOrigin, untrustedOrigin = 'https://untrusted.example' } = options

  const request = (headers: Record<string, string> = {}, origin = trustedOrigin): RequestContext => ({
    origin,
    originSource: 'Origin header',
    ip: '192.0.2.7',
    behindUnknownProxy: false,
    userAgent: 'contract suite',
    headers: new Headers({ origin, 'user-agent': 'contract suite', ...headers }),
  })
  const withBearer = (token: string, origin?: string): RequestContext =>
    request({ authorization: `Bearer ${token}` }, origin)
  const withCookie = (issued: IssuedSession, origin?: string): RequestContext =>
    request({ cookie: cookieHeader(issued.cookies) }, origin)

  const check = (fact: string, run: (host: Host, other: Host) => Promise<void>): void => {
    test(fact, async () => {
      const opened = await open()
      try {
        await run(...opened.hosts)
      } finally {
        await opened.close?.()
      }
    })
  }

  const newHolder = async (host: Host, identity = newIdentity(), order = newOrder()): Promise<OrderHolder> => ({
    user: await host.resolveUser(identity, request()),
    identity,
    order,
  })

  /** Makes the session of an order that is finalized. */
  const makeSession = (host: Host, { user, identity, order }: OrderHolder): Promise<IssuedSession> =>
    host.createSession(user, identity, request(), order)

  const finalize = async (host: Host, identity?: ProvenIdentity, order?: OrderGrant) => {
    const holder = await newHolder(host, identity, order)
    return { ...holder, ...(await makeSession(host, holder)) }
  }

  const signIn = async (host: Host, identity = newIdentity()): Promise<SignedIn> => {
    const user = await host.resolveUser(identity, request())
    return { user, identity, ...(await host.createSession(user, identity, request())) }
  }

  /** The session that an order has or will have, as the order keeps it. */
  const sessionOf = async (host: Host, { order, user }: OrderHolder): Promise<OrderSession> => ({
    orderId: order.orderId,
    userId: user.id,
    sessionId: await host.orderSessionId(order),
  })

  const assertLive = async (host: Host, { session, token }: IssuedSession): Promise<void> => {
    assert.equal((await host.introspect(token))?.id, session.id)
    assert.equal((await host.currentSession(withBearer(token))).session.id, session.id)
  }

  const assertOver = async (host: Host, issued: IssuedSession): Promise<void> => {
    assert.equal(await host.introspect(issued.token), undefined)
    await assertRefused(host.currentSession(withBearer(issued.token)), 'SESSION_INVALID')
    await assertRefused(host.currentSession(withCookie(issued)), 'SESSION_INVALID')
    const listed = await host.listSessions(issued.session.userId, request())
    assert.ok(!listed.some(({ id }) => id === issued.session.id), 'a session that is over is listed')
  }

  /** The ways in which a user ends a session. */
  const endings: readonly (readonly [how: string, end: (host: Host, issued: SignedIn) => Promise<unknown>])[] = [
    ['revoked', (host, { session }) => host.revokeSession(session.userId, session.id, request())],
    ['signed out', (host, { token }) => host.signOut(withBearer(token))],
  ]

  describe(`${name} keeps the contract of a host:`, () => {
    describe('resolveUser', () => {
      check('finds the same user for the same identity, on any instance', async (host, other) => {
        const identity = newIdentity()
        const first = await host.resolveUser(identity, request())
        assert.match(first.id, /\S/)
        assert.equal((await host.resolveUser(identity, request())).id, first.id)
        assert.equal((await other.resolveUser({ ...identity }, request())).id, first.id)
      })

      check('makes one user of 20 concurrent first sign-ins', async (host, other) => {
        const identity = newIdentity()
        const users = await race(20, (i) => (i % 2 ? host : other).resolveUser(identity, request()))
        assert.equal(new Set(users.map(({ id }) => id)).size, 1)
      })

      check('makes another user of another subject, and of the same subject under another adapter', async (host) => {
        const [identity, another] = [newIdentity(), newIdentity()]
        const identities = [identity, another, { ...identity, adapterId: 'ed25519' }]
        const ids = new Set<string>()
        for (const each of identities) ids.add((await host.resolveUser(each, request())).id)
        assert.equal(ids.size, 3)
      })

      check('tells wallets without a public key apart by their subjects', async (host, other) => {
        const [identity, another] = [newKeylessIdentity(), newKeylessIdentity()]
        const { id } = await host.resolveUser(identity, request())
        assert.equal((await other.resolveUser({ ...identity }, request())).id, id)
        assert.notEqual((await host.resolveUser(another, request())).id, id)
      })
    })

    describe('createSession', () => {
      check('makes a session of the user with the identity that was proven', async (host) => {
        const before = Date.now()
        const { user, identity, session, token } = await signIn(host)
        const { id, createdAt, expiresAt, subject = identity.subject, ...details } = session
        assert.deepEqual(details, {
          userId: user.id,
          adapterId: identity.adapterId,
          publicKeyHex: identity.publicKeyHex,
          address: identity.address,
          ip: '192.0.2.7',
          userAgent: 'contract suite',
        })
        assert.equal(subject, identity.subject, 'a session keeps another subject')
        assert.match(id, /\S/)
        assert.ok(createdAt >= before - 1000 && createdAt <= Date.now() + 1000, 'createdAt is not now')
        assert.ok(expiresAt > createdAt, 'a session ends before it begins')
        assert.ok(!token.includes(id) && !JSON.stringify(session).includes(token), 'a session shows its token')
      })

      check('makes a session that is found on any instance, by its token or its cookie', async (host, other) => {
        const issued = await signIn(host)
        const { session, token } = issued
        for (const each of [host, other]) {
          assert.deepEqual(await each.introspect(token), session)
          assert.deepEqual((await each.currentSession(withBearer(token))).session, session)
          assert.deepEqual((await each.currentSession(withCookie(issued))).session, session)
          assert.deepEqual(await each.listSessions(session.userId, request()), [session])
        }
      })

      check('makes a session of a wallet without a public key as of any other', async (host, other) => {
        const issued = await signIn(host, newKeylessIdentity())
        const { adapterId, publicKeyHex, address } = issued.identity
        const { session } = await other.currentSession(withBearer(issued.token))
        assert.deepEqual([session.adapterId, session.publicKeyHex, session.address], [adapterId, publicKeyHex, address])
        assert.deepEqual(await other.introspect(issued.token), session)
        assert.deepEqual(await host.listSessions(session.userId, request()), [session])
      })

      check('makes another session each time', async (host) => {
        const first = await signIn(host)
        const second = await signIn(host, first.identity)
        assert.notEqual(second.session.id, first.session.id)
        assert.notEqual(second.token, first.token)
        await assertLive(host, first)
        await assertLive(host, second)
      })
    })

    describe('createSession for an order', () => {
      check('returns the session that is there for the same seed, on any instance', async (host, other) => {
        const first = await finalize(host)
        assert.equal(first.session.orderId, first.order.orderId)
        for (const each of [host, other]) {
          const again = await finalize(each, first.identity, first.order)
          assert.equal(again.token, first.token)
          assert.deepEqual(again.session, first.session)
          await assertLive(each, again)
          assert.equal((await each.currentSession(withCookie(again))).session.id, first.session.id)
        }
        assert.equal((await host.listSessions(first.user.id, request())).length, 1)
      })

      check('makes one session of 20 concurrent calls with the same seed', async (host, other) => {
        const holder = await newHolder(host)
        const made = await race(20, (i) => makeSession(i % 2 ? host : other, holder))
        assert.equal(new Set(made.map(({ token }) => token)).size, 1)
        assert.equal(new Set(made.map(({ session }) => session.id)).size, 1)
        assert.equal((await host.listSessions(holder.user.id, request())).length, 1)
      })

      check('makes another session for another seed', async (host) => {
        const first = await finalize(host)
        const second = await finalize(host, first.identity)
        assert.notEqual(second.token, first.token)
        assert.notEqual(second.session.id, first.session.id)
      })

      check('keeps the id of the known computer, if the order has one', async (host, other) => {
        const [identity, order] = [newIdentity(), { ...newOrder(), computerId: 'computer-1' }]
        const issued = await finalize(host, identity, order)
        const unknown = await finalize(host, identity)
        for (const each of [host, other]) {
          const found = [
            (await each.introspect(issued.token))?.computerId,
            (await each.currentSession(withBearer(issued.token))).session.computerId,
            (await finalize(each, identity, order)).session.computerId,
            (await each.listSessions(issued.user.id, request())).find(({ id }) => id === issued.session.id)?.computerId,
          ]
          assert.deepEqual(new Set(found), new Set(['computer-1']))
          assert.equal((await each.introspect(unknown.token))?.computerId, undefined)
        }
      })

      for (const [how, end] of endings) {
        check(`does not bring back a session that was ${how}`, async (host, other) => {
          const issued = await finalize(host)
          await end(other, issued)
          for (const each of [host, other]) {
            await assertRefused(makeSession(each, issued), 'ORDER_FINALIZED')
            await assertOver(each, issued)
          }
        })
      }
    })

    describe('orderSessionId', () => {
      check('is the same for a seed, on any instance, also once the session is made', async (host, other) => {
        const order = newOrder()
        const id = await host.orderSessionId(order)
        assert.ok(id.length >= 1 && id.length <= 200, `it has ${id.length} characters`)
        await finalize(host, undefined, order)
        for (const each of [host, other]) {
          assert.equal(await each.orderSessionId({ ...order, seed: Uint8Array.from(order.seed) }), id)
          assert.equal(await each.orderSessionId({ ...order, computerId: 'computer-1' }), id)
        }
      })

      check('is another for another order, and opens no session', async (host) => {
        const { token, order } = await finalize(host)
        const id = await host.orderSessionId(order)
        assert.notEqual(await host.orderSessionId(newOrder()), id)
        assert.ok(!token.includes(id), 'a token shows it')
        assert.equal(await host.introspect(id), undefined)
        await assertRefused(host.currentSession(withBearer(id)), 'SESSION_INVALID')
      })
    })

    describe('endOrderSession', () => {
      const assertNeverMade = async (host: Host, holder: OrderHolder) => {
        await assertRefused(makeSession(host, holder), 'ORDER_FINALIZED')
        const listed = await host.listSessions(holder.user.id, request())
        assert.ok(!listed.some(({ orderId }) => orderId === holder.order.orderId), 'the session of the order is listed')
      }

      check('ends the session of the order at once, on every instance, for good', async (host, other) => {
        const issued = await finalize(host)
        for (const each of [host, other]) await assertLive(each, issued)
        assert.equal(await other.endOrderSession(await sessionOf(other, issued)), true)
        for (const each of [host, other]) {
          await assertOver(each, issued)
          await assertNeverMade(each, issued)
          await assertOver(each, issued)
        }
      })

      check('keeps a session that is not made yet from being made, on every instance', async (host, other) => {
        const holder = await newHolder(host)
        assert.equal(await other.endOrderSession(await sessionOf(host, holder)), false)
        for (const each of [host, other]) await assertNeverMade(each, holder)
        assert.deepEqual(await host.listSessions(holder.user.id, request()), [])
      })

      check('resolves with the same if it is called again, on any instance', async (host, other) => {
        const issued = await finalize(host)
        const unmade = { ...issued, order: newOrder() }
        for (const each of [host, other, host]) {
          assert.equal(await each.endOrderSession(await sessionOf(each, issued)), true)
          assert.equal(await each.endOrderSession(await sessionOf(each, unmade)), false)
          await assertNeverMade(each, issued)
          await assertNeverMade(each, unmade)
        }
      })

      for (const [how, end] of endings) {
        check(`resolves with false for a session that was ${how} before, which stays over`, async (host, other) => {
          const issued = await finalize(host)
          await end(host, issued)
          for (const each of [other, host]) {
            assert.equal(await each.endOrderSession(await sessionOf(each, issued)), false)
            await assertNeverMade(each, issued)
            await assertOver(each, issued)
          }
        })
      }

      check('ends no other session, and keeps none of another order from being made', async (host, other) => {
        const later = newOrder()
        const direct = await signIn(host)
        const { identity } = direct
        const others = [direct, await finalize(host, identity), await finalize(other)]
        const issued = await finalize(host, identity)
        await host.endOrderSession(await sessionOf(host, issued))
        await host.endOrderSession(await sessionOf(host, { ...issued, order: newOrder() }))
        for (const each of [host, other]) {
          for (const one of others) await assertLive(each, one)
          await assertLive(each, await finalize(each, identity, later))
          assert.equal((await each.listSessions(direct.user.id, request())).length, 3)
        }
      })

      check('called 20 times at once resolves with the same each time', async (host, other) => {
        const issued = await finalize(host)
        for (const order of [issued.order, newOrder()]) {
          const wasLive = order === issued.order
          const session = await sessionOf(host, { ...issued, order })
          const ended = await race(20, (i) => (i % 2 ? host : other).endOrderSession(session))
          assert.deepEqual(new Set(ended), new Set([wasLive]))
        }
      })

      check('at any moment of a createSession on another instance leaves no session', async (host, other) => {
        const { user, identity } = await newHolder(host)
        // How long a createSession takes tells how late an end still meets it.
        const begun = performance.now()
        await host.createSession(user, identity, request(), newOrder())
        const takesMs = performance.now() - begun
        for (let moment = 0; moment < moments; moment++) {
          const holder = { user, identity, order: newOrder() }
          const session = await sessionOf(host, holder)
          const creating = makeSession(host, holder)
          const settled = Promise.allSettled([creating])
          await passMs((takesMs * moment) / moments)
          const wasLive = await other.endOrderSession(session)
          const [made] = await settled
          if (made.status === 'fulfilled') {
            await assertOver(other, made.value)
            assert.equal(wasLive, true, 'the session was made before, and is said not to have been live')
          } else await assertRefused(creating, 'ORDER_FINALIZED')
          await assertNeverMade(host, holder)
          assert.equal(await host.endOrderSession(session), wasLive)
        }
      })

      check('is not undone by a request that uses the session meanwhile', async (host, other) => {
        for (let round = 0; round < 5; round++) {
          const issued = await finalize(host)
          const session = await sessionOf(other, issued)
          const [wasLive] = await Promise.all([
            other.endOrderSession(session),
            ...Array.from({ length: 10 }, (_, i) =>
              (i % 2 ? host : other).currentSession(withBearer(issued.token)).catch(() => undefined),
            ),
          ])
          assert.equal(wasLive, true)
          await assertOver(host, issued)
          await assertNeverMade(host, issued)
        }
      })
    })

    describe('currentSession', () => {
      check('needs a token or a cookie', async (host) => {
        await assertRefused(host.currentSession(request()), 'SESSION_REQUIRED')
      })

      check('refuses a token that the host did not issue', async (host) => {
        const { token } = await signIn(host)
        for (const wrong of variationsOf(token)) {
          await assertRefused(host.currentSession(withBearer(wrong)), 'SESSION_INVALID')
        }
      })

      check('uses the bearer token if there is a cookie too', async (host) => {
        const [one, two] = [await signIn(host), await signIn(host)]
        const both = (token: string): RequestContext =>
          request({ authorization: `Bearer ${token}`, cookie: cookieHeader(two.cookies) })
        assert.equal((await host.currentSession(both(one.token))).session.id, one.session.id)
        await assertRefused(host.currentSession(both('unknown')), 'SESSION_INVALID')
      })

      check('refuses a cookie from an origin that is not trusted, and no bearer token', async (host) => {
        const issued = await signIn(host)
        await assertRefused(host.currentSession(withCookie(issued, untrustedOrigin)), 'ORIGIN_NOT_TRUSTED')
        const { session } = await host.currentSession(withBearer(issued.token, untrustedOrigin))
        assert.equal(session.id, issued.session.id)
      })
    })

    describe('signOut', () => {
      check('ends the session of the cookie and no other, and clears the cookie', async (host, other) => {
        const one = await signIn(host)
        const two = await signIn(host, one.identity)
        const cleared = await host.signOut(withCookie(one))
        assert.ok(cleared.length > 0, 'no cookie is cleared')
        assert.equal(cookieHeader(cleared), '')
        for (const each of [host, other]) {
          await assertOver(each, one)
          await assertLive(each, two)
        }
      })

      check('ends the session of the bearer token, and leaves the cookie of another alone', async (host) => {
        const [one, two] = [await signIn(host), await signIn(host)]
        const headers = { authorization: `Bearer ${one.token}`, cookie: cookieHeader(two.cookies) }
        assert.deepEqual(await host.signOut(request(headers)), [])
        await assertOver(host, one)
        await assertLive(host, two)
      })

      check('does nothing without a session, or for one that is over', async (host) => {
        assert.deepEqual(await host.signOut(request()), [])
        const issued = await signIn(host)
        await host.signOut(withBearer(issued.token))
        await host.signOut(withBearer(issued.token))
        await host.signOut(withCookie(issued))
        await host.signOut(withBearer('unknown'))
      })

      check('by a cookie from an origin that is not trusted is refused and ends nothing', async (host) => {
        const issued = await signIn(host)
        await assertRefused(host.signOut(withCookie(issued, untrustedOrigin)), 'ORIGIN_NOT_TRUSTED')
        await assertLive(host, issued)
      })

      check('by a token that was altered ends nothing', async (host) => {
        const issued = await signIn(host)
        for (const wrong of variationsOf(issued.token)) await host.signOut(withBearer(wrong))
        await assertLive(host, issued)
      })
    })

    describe('listSessions', () => {
      check('lists the live sessions of the user, newest first, and no other user’s', async (host, other) => {
        const one = await signIn(host)
        await sleep(nextMillisecondMs)
        const two = await signIn(other, one.identity)
        await sleep(nextMillisecondMs)
        const three = await signIn(host, one.identity)
        await signIn(host)
        const idsOf = async (): Promise<string[]> =>
          (await other.listSessions(one.user.id, request())).map(({ id }) => id)
        assert.deepEqual(await idsOf(), [three.session.id, two.session.id, one.session.id])
        await host.revokeSession(one.user.id, two.session.id, request())
        assert.deepEqual(await idsOf(), [three.session.id, one.session.id])
      })

      check('lists none for an unknown user', async (host) => {
        assert.deepEqual(await host.listSessions('unknown', request()), [])
      })

      check('shows no token', async (host) => {
        const { user, token } = await signIn(host)
        const listed = JSON.stringify(await host.listSessions(user.id, request()))
        for (const part of token.split('.')) assert.ok(!listed.includes(part), 'a list shows a part of a token')
      })
    })

    describe('revokeSession', () => {
      check('ends that session of the user, once, on every instance', async (host, other) => {
        const one = await signIn(host)
        const two = await signIn(host, one.identity)
        assert.equal(await other.revokeSession(one.user.id, one.session.id, request()), true)
        assert.equal(await host.revokeSession(one.user.id, one.session.id, request()), false)
        for (const each of [host, other]) {
          await assertOver(each, one)
          await assertLive(each, two)
        }
      })

      check("resolves with false for an unknown session, and for another user's, which lives on", async (host) => {
        const [one, two] = [await signIn(host), await signIn(host)]
        assert.equal(await host.revokeSession(one.user.id, 'unknown', request()), false)
        assert.equal(await host.revokeSession(one.user.id, two.session.id, request()), false)
        assert.equal(await host.revokeSession('unknown', two.session.id, request()), false)
        await assertLive(host, two)
      })

      check('ends the session if it is called 20 times at once', async (host, other) => {
        const { user, session } = await signIn(host)
        const ended = await race(20, (i) => (i % 2 ? host : other).revokeSession(user.id, session.id, request()))
        assert.ok(ended.includes(true))
        assert.equal(await host.revokeSession(user.id, session.id, request()), false)
      })
    })

    describe('introspect', () => {
      check('knows no token but those it issued', async (host) => {
        const { token, session } = await signIn(host)
        for (const wrong of [...variationsOf(token), session.id, '', '.', '..', '\0', 'x'.repeat(10_000)]) {
          assert.equal(await host.introspect(wrong), undefined, JSON.stringify(wrong.slice(0, 100)))
        }
      })

      check('extends nothing', async (host) => {
        const { token, session } = await signIn(host)
        await sleep(nextMillisecondMs)
        assert.deepEqual(await host.introspect(token), session)
        assert.deepEqual(await host.introspect(token), session)
      })
    })
  })
}

interface OrderHolder {
  readonly user: HostUser
  readonly identity: ProvenIdentity
  readonly order: OrderGrant
}

type SignedIn = IssuedSession & Omit<OrderHolder, 'order'>

function newIdentity(): ProvenIdentity {
  const { adapterId, publicKeyHex, address } = makeTestWallet()
  return { adapterId, subject: publicKeyHex, publicKeyHex, address }
}

/** As of a contract wallet, which its CAIP-10 identifier stands for. */
function newKeylessIdentity(): ProvenIdentity {
  const address = `eip155:1:0x${randomBytes(20).toString('hex').replace(/^.{4}/, 'AbCd')}`
  return { adapterId: 'ethereum', subject: address.toLowerCase(), publicKeyHex: '', address }
}

function newOrder(): OrderGrant {
  return { orderId: randomBytes(16).toString('base64url'), seed: randomBytes(32) }
}

/** Lets other work go on for so long, in ms; less than a timer can wait, too. */
async function passMs(ms: number): Promise<void> {
  const until = performance.now() + ms
  while (performance.now() < until) await nextTurn()
}

/** Tokens that are not this one, though alike. */
function variationsOf(token: string): string[] {
  const last = token.length - 1
  const altered = (i: number): string => token.slice(0, i) + (token[i] === 'A' ? 'B' : 'A') + token.slice(i + 1)
  const unsigned = token.split('.')[0] ?? token
  return [
    'unknown',
    altered(0),
    altered(Math.floor(token.length / 3)),
    altered(Math.floor((token.length * 3) / 4)),
    token.slice(0, last),
    token.slice(1),
    `${token}A`,
    `${token}.A`,
    unsigned,
    createHash('sha256').update(token).digest('base64url'),
  ].filter((each) => each !== token)
}

/** What a browser sends back: the cookies that were set and not cleared. */
function cookieHeader(setCookies: readonly string[]): string {
  return setCookies
    .filter((cookie) => !/;\s*max-age=0\b/i.test(cookie))
    .map((cookie) => cookie.split(';', 1)[0])
    .join('; ')
}
