import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { tokenFromBytes } from '../../../src/base/token.ts'
import type { CurrentSession } from '../../../src/core/users/host.ts'
import { orderSessionEnded } from '../../../src/core/users/sessions.ts'
import { nimiq } from '../../../src/core/wallet/nimiq.ts'
import { solana } from '../../../src/core/wallet/solana.ts'
import type { Host, Proof, Session, SignInForm, Store, WalletAdapter } from '../../../src/index.ts'
import { CountersignError, openStore } from '../../../src/index.ts'
import {
  describeAdapterContract,
  describeHostContract,
  describeStoreContract,
  makeTestWallet,
} from '../../../src/integrations/testing/index.ts'
import { desktop } from '../../core/order/support.ts'
import { makeSolanaWallet } from '../../support/solana.ts'
import { TestHost, trustedOrigin } from '../../support/standalone.ts'
import { altered, collect } from './collect.ts'

// Each suite has to find what is wrong with a part that breaks one promise, and nothing wrong with the part as it is.

/** A defect: the test that finds it, and how the part is changed. */
interface Defect<T> {
  readonly fact: string
  readonly change: (part: T) => Partial<T>
}

/** The type of the part is that of its suite, not what a change returns. */
function breaks<T>(fact: string, change: (part: NoInfer<T>) => Partial<NoInfer<T>>): Defect<T> {
  return { fact, change }
}

type Tests = ReadonlyMap<string, () => Promise<void>>

function describeDefects<T>(
  what: string,
  suite: (change: (part: T) => Partial<T>) => Tests,
  defects: Readonly<Record<string, Defect<T>>>,
): void {
  describe(`the suite for ${what} finds`, () => {
    test.each(Object.entries(defects))('%s', async (_, { fact, change }) => {
      await expect(suite(() => ({})).get(fact)?.(), `without the defect: ${fact}`).resolves.toBeUndefined()
      await expect(suite(change).get(fact)?.()).rejects.toThrow()
    })
  })
}

const storeSuite = (change: (store: Store) => Partial<Store>): Tests =>
  collect((runner) =>
    describeStoreContract(runner, {
      name: 'SQLite',
      async open() {
        const store = await openStore('sqlite::memory:')
        const handle = altered(store, change(store))
        return [handle, handle]
      },
    }),
  )

describeDefects<Store>('stores', storeSuite, {
  'a clock that tells seconds': breaks(
    'now is epoch milliseconds, whole, on the clock that lives are counted on',
    () => ({ now: () => Math.floor(Date.now() / 1000) }),
  ),
  'a clock that stands still': breaks(
    'now is epoch milliseconds, whole, on the clock that lives are counted on',
    (store) => {
      const openedAt = store.now()
      return { now: () => openedAt }
    },
  ),
  'a take in two steps': breaks('take gives the value to one of 200 concurrent calls', (store) => ({
    async take(key) {
      const found = await store.get(key)
      await store.take(key)
      return found?.value
    },
  })),
  'a create that looks first': breaks('create lets one of 200 concurrent calls win', (store) => ({
    async create(key, value, life) {
      if ((await store.get(key)) !== undefined) return false
      await store.take(key)
      await store.create(key, value, life)
      return true
    },
  })),
  'a create that replaces': breaks(
    'create changes nothing and resolves with false if the key has a value',
    (store) => ({
      async create(key, value, life) {
        await store.take(key)
        return await store.create(key, value, life)
      },
    }),
  ),
  'a compareAndSet that ignores the version': breaks(
    'compareAndSet changes nothing and resolves with false if version 1 is called 2',
    (store) => ({
      async compareAndSet(key, _version, value, life, options) {
        return await store.compareAndSet(key, (await store.get(key))?.version ?? 0, value, life, options)
      },
    }),
  ),
  'a compareAndSet that compares in a step of its own': breaks(
    'compareAndSet lets one of 200 concurrent calls with the same version win',
    (store) => ({
      async compareAndSet(key, version, value, life, options) {
        if ((await store.get(key))?.version !== version) return false
        await store.compareAndSet(key, version, value, life, options)
        return true
      },
    }),
  ),
  'a life that is kept at a change': breaks('compareAndSet gives the value a new life, shorter or longer', (store) => ({
    compareAndSet: (key, version, value, _life, options) =>
      store.compareAndSet(key, version, value, 'forever', options),
  })),
  'values that never expire': breaks(
    'an expired value is absent for get, take and compareAndSet, and its key is free',
    (store) => ({ create: (key, value) => store.create(key, value, 'forever') }),
  ),
  'a life of 0 that means forever': breaks('a life of 0 milliseconds is a TypeError and changes nothing', (store) => ({
    create: (key, value, life) => store.create(key, value, life !== 'forever' && life.ttlMs === 0 ? 'forever' : life),
  })),
  'text that loses what stands behind a NUL': breaks('get returns exactly control characters and NUL', (store) => ({
    create: (key, value, life) => store.create(key, value.split('\0')[0] ?? '', life),
  })),
  'watchers that are called at every change': breaks(
    'watch calls for no compareAndSet without wake, none that fails, and no other change',
    (store) => ({
      compareAndSet: (key, version, value, life) => store.compareAndSet(key, version, value, life, { wake: true }),
    }),
  ),
  'a watcher that is called within the change': breaks(
    'watch calls after the change can be read, and not from within the call that made it',
    (store) => {
      const watchers = new Map<string, () => void>()
      return {
        async watch(key, onWake) {
          watchers.set(key, onWake)
          return await store.watch(key, onWake)
        },
        compareAndSet(key, version, value, life, options) {
          watchers.get(key)?.()
          return store.compareAndSet(key, version, value, life, options)
        },
      }
    },
  ),
  'watches that are the same function': breaks(
    'watch calls every watcher of the key, also if two are the same function',
    (store) => {
      const watched = new Set<() => void>()
      return {
        async watch(key, onWake) {
          if (watched.has(onWake)) return () => undefined
          watched.add(onWake)
          return await store.watch(key, onWake)
        },
      }
    },
  ),
  'a watch that cannot be ended': breaks(
    'watch is ended by its own function, which may be called twice and ends no other watch',
    (store) => ({
      async watch(key, onWake) {
        await store.watch(key, onWake)
        return () => undefined
      },
    }),
  ),
  'members that are listed after their life': breaks(
    'a set gives each member a life of its own, which begins anew when it is added again',
    (store) => ({ addMember: (set, member) => store.addMember(set, member, 'forever') }),
  ),
  'sets that grow without end': breaks(
    'a set has no more than twice the most of 200 members that are added at once',
    (store) => ({ addMember: (set, member, life) => store.addMember(set, member, life) }),
  ),
  'members that are named latest first': breaks(
    'a set names and keeps, soonest first, those beyond the most that expire soonest',
    (store) => ({
      addMember: async (set, member, life, most) => (await store.addMember(set, member, life, most)).reverse(),
    }),
  ),
  'members that are removed as they are named': breaks(
    'a set names and keeps, soonest first, those beyond the most that expire soonest',
    (store) => ({
      async addMember(set, member, life, most) {
        const named = await store.addMember(set, member, life, most)
        for (const each of named) await store.removeMember(set, each)
        return named
      },
    }),
  ),
  'a member that is named as it is added': breaks(
    'a set never names or drops the member that is added, however soon it expires',
    (store) => ({
      async addMember(set, member, life, most) {
        const named = await store.addMember(set, member, life, most)
        return named.length === 0 ? [] : [member]
      },
    }),
  ),
  'more members than ten at a time': breaks(
    'a set names no more than ten members, and none without a most',
    (store) => ({
      async addMember(set, member, life, most) {
        const named = await store.addMember(set, member, life, most)
        return named.length < 10 ? named : [...named, 'm10']
      },
    }),
  ),
  'a bound that expired members count against': breaks(
    'a set counts no expired member as one beyond the most',
    (store) => ({ addMember: (set, member, _life, most) => store.addMember(set, member, 'forever', most) }),
  ),
  'any members that are dropped': breaks(
    'a set drops beyond twice the most those that expire soonest, and no other',
    (store) => ({
      async addMember(set, member, life, most) {
        const named = await store.addMember(set, member, life)
        const members = await store.members(set)
        if (most !== undefined) {
          for (const each of members.slice(0, members.length - 2 * most)) await store.removeMember(set, each)
        }
        return named
      },
    }),
  ),
  'a handle that still answers when it is closed': breaks(
    'close may be called twice; later calls reject, and watches are over',
    () => ({ close: async () => undefined }),
  ),
  'a store that does not say whether it is shared': breaks(
    'it has a description and says whether it is shared',
    () => ({ shared: undefined as never }),
  ),
})

const hostSuite = (change: (host: Host) => Partial<Host>): Tests =>
  collect((runner) =>
    describeHostContract(runner, {
      name: 'the standalone host',
      trustedOrigin,
      async open() {
        const store = await openStore('sqlite::memory:')
        const host = new TestHost(store)
        const one = altered<Host>(host, change(host))
        return { hosts: [one, one], close: () => store.close() }
      },
    }),
  )

describeDefects<Host>('hosts', hostSuite, {
  'users by their public keys': breaks(
    'resolveUser tells wallets without a public key apart by their subjects',
    (host) => ({
      resolveUser: (identity, request) => host.resolveUser({ ...identity, subject: identity.publicKeyHex }, request),
    }),
  ),
  'an address in lower case': breaks(
    'createSession makes a session of a wallet without a public key as of any other',
    (host) => ({
      createSession: (user, identity, request, order) =>
        host.createSession(user, { ...identity, address: identity.address.toLowerCase() }, request, order),
    }),
  ),
  'users by key alone': breaks(
    'resolveUser makes another user of another subject, and of the same subject under another adapter',
    (host) => ({ resolveUser: (identity, request) => host.resolveUser({ ...identity, adapterId: 'any' }, request) }),
  ),
  'a new user each time': breaks('resolveUser finds the same user for the same identity, on any instance', () => ({
    resolveUser: async () => ({ id: crypto.randomUUID() }),
  })),
  'a session for each attempt to finalize': breaks(
    'createSession for an order returns the session that is there for the same seed, on any instance',
    (host) => ({ createSession: (user, identity, request) => host.createSession(user, identity, request) }),
  ),
  'a session that is brought back': breaks(
    'createSession for an order does not bring back a session that was revoked',
    (host) => ({
      async createSession(user, identity, request, order) {
        try {
          return await host.createSession(user, identity, request, order)
        } catch {
          return await host.createSession(user, identity, request)
        }
      },
    }),
  ),
  'a computer that is forgotten': breaks(
    'createSession for an order keeps the id of the known computer, if the order has one',
    (host) => ({
      createSession: (user, identity, request, order) =>
        host.createSession(user, identity, request, order && { ...order, computerId: undefined }),
    }),
  ),
  'a new id each time': breaks(
    'orderSessionId is the same for a seed, on any instance, also once the session is made',
    () => ({ orderSessionId: () => crypto.randomUUID() }),
  ),
  'an id that is too long': breaks(
    'orderSessionId is the same for a seed, on any instance, also once the session is made',
    () => ({ orderSessionId: ({ orderId }) => orderId.padEnd(201) }),
  ),
  'an id that all orders share': breaks('orderSessionId is another for another order, and opens no session', () => ({
    orderSessionId: () => 'session',
  })),
  'an id that is a part of the token': breaks(
    'orderSessionId is another for another order, and opens no session',
    () => ({ orderSessionId: ({ seed }) => tokenFromBytes('session', seed) }),
  ),
  'a take-back that nobody remembers': breaks(
    'endOrderSession keeps a session that is not made yet from being made, on every instance',
    (host) => ({ endOrderSession: ({ userId, sessionId }) => host.revokeSession(userId, sessionId, desktop) }),
  ),
  'a take-back that looks no further than the list': breaks(
    'endOrderSession resolves with the same if it is called again, on any instance',
    (host) => ({
      async endOrderSession(session) {
        const listed = await host.listSessions(session.userId, desktop)
        await host.endOrderSession(session)
        return listed.some(({ orderId }) => orderId === session.orderId)
      },
    }),
  ),
  'a take-back that answers each of several calls as the first': breaks(
    'endOrderSession called 20 times at once resolves with the same each time',
    (host) => {
      const known = new Set<string>()
      return {
        async endOrderSession(session) {
          const wasLive = await host.endOrderSession(session)
          const isFirst = !known.has(session.sessionId)
          known.add(session.sessionId)
          return wasLive && isFirst
        },
      }
    },
  ),
  'a take-back that counts a session that its user ended': breaks(
    'endOrderSession resolves with false for a session that was revoked before, which stays over',
    (host) => {
      const made = new Set<string | undefined>()
      return {
        async createSession(user, identity, request, order) {
          const issued = await host.createSession(user, identity, request, order)
          made.add(order?.orderId)
          return issued
        },
        async endOrderSession(session) {
          await host.endOrderSession(session)
          return made.has(session.orderId)
        },
      }
    },
  ),
  'a take-back that ends all sessions': breaks(
    'endOrderSession ends no other session, and keeps none of another order from being made',
    (host) => ({
      async endOrderSession(session) {
        const wasLive = await host.endOrderSession(session)
        for (const { id } of await host.listSessions(session.userId, desktop)) {
          await host.revokeSession(session.userId, id, desktop)
        }
        return wasLive
      },
    }),
  ),
  'a token that is good for a while after the take-back': breaks(
    'endOrderSession ends the session of the order at once, on every instance, for good',
    (host) => {
      const cached = new Map<string, Session>()
      return {
        async introspect(token) {
          const session = cached.get(token) ?? (await host.introspect(token))
          if (session !== undefined) cached.set(token, session)
          return session
        },
      }
    },
  ),
  'a session that is made after it was looked for a take-back': breaks(
    'endOrderSession at any moment of a createSession on another instance leaves no session',
    (host) => {
      const takenBack = new Set<string>()
      return {
        async createSession(user, identity, request, order) {
          if (order !== undefined && takenBack.has(order.orderId)) throw orderSessionEnded()
          await sleep(5)
          return await host.createSession(user, identity, request, order)
        },
        async endOrderSession({ orderId, userId, sessionId }) {
          takenBack.add(orderId)
          return await host.revokeSession(userId, sessionId, desktop)
        },
      }
    },
  ),
  'a session that its own use brings back': breaks(
    'endOrderSession is not undone by a request that uses the session meanwhile',
    (host) => {
      const cached = new Map<string, CurrentSession>()
      return {
        async currentSession(request) {
          const key = request.headers.get('authorization') ?? ''
          const current = cached.get(key) ?? (await host.currentSession(request))
          await sleep(1)
          cached.set(key, current)
          return current
        },
      }
    },
  ),
  'a cookie that counts from everywhere': breaks(
    'currentSession refuses a cookie from an origin that is not trusted, and no bearer token',
    (host) => ({
      currentSession: (request) => host.currentSession({ ...request, origin: trustedOrigin }),
    }),
  ),
  'a sign-out from everywhere': breaks(
    'signOut by a cookie from an origin that is not trusted is refused and ends nothing',
    (host) => ({ signOut: (request) => host.signOut({ ...request, origin: trustedOrigin }) }),
  ),
  'a bearer token that falls back on the cookie': breaks(
    'currentSession uses the bearer token if there is a cookie too',
    (host) => ({
      async currentSession(request) {
        try {
          return await host.currentSession(request)
        } catch {
          const headers = new Headers(request.headers)
          headers.delete('authorization')
          return await host.currentSession({ ...request, headers })
        }
      },
    }),
  ),
  'a sign-out that ends all sessions': breaks(
    'signOut ends the session of the cookie and no other, and clears the cookie',
    (host) => ({
      async signOut(request) {
        const { session } = await host.currentSession(request)
        for (const { id } of await host.listSessions(session.userId, request)) {
          if (id !== session.id) await host.revokeSession(session.userId, id, request)
        }
        return await host.signOut(request)
      },
    }),
  ),
  'a cookie that is not cleared': breaks(
    'signOut ends the session of the cookie and no other, and clears the cookie',
    (host) => ({
      async signOut(request) {
        await host.signOut(request)
        return []
      },
    }),
  ),
  "another user's session that is revoked": breaks(
    "revokeSession resolves with false for an unknown session, and for another user's, which lives on",
    (host) => {
      const owners = new Map<string, string>()
      return {
        async createSession(user, identity, request, order) {
          const issued = await host.createSession(user, identity, request, order)
          owners.set(issued.session.id, user.id)
          return issued
        },
        revokeSession: (userId, id, request) => host.revokeSession(owners.get(id) ?? userId, id, request),
      }
    },
  ),
  'a list in no order': breaks(
    'listSessions lists the live sessions of the user, newest first, and no other user’s',
    (host) => ({ listSessions: async (userId, request) => (await host.listSessions(userId, request)).reverse() }),
  ),
  'a token that is good without its end': breaks('introspect knows no token but those it issued', (host) => {
    const tokens: string[] = []
    return {
      async createSession(user, identity, request, order) {
        const issued = await host.createSession(user, identity, request, order)
        tokens.push(issued.token)
        return issued
      },
      introspect: (token) => host.introspect(tokens.find((each) => token && each.startsWith(token)) ?? token),
    }
  }),
})

const adapterSuite = (change: (adapter: WalletAdapter) => Partial<WalletAdapter>): Tests =>
  collect((runner) =>
    describeAdapterContract(runner, {
      adapter: altered<WalletAdapter>(nimiq, change(nimiq)),
      makeWallet: makeTestWallet,
    }),
  )

/** As {@link adapterSuite}, of an adapter that has a sign-in form and names accounts. */
const formSuite = (change: (adapter: WalletAdapter) => Partial<WalletAdapter>): Tests =>
  collect((runner) =>
    describeAdapterContract(runner, {
      adapter: altered<WalletAdapter>(solana, change(solana)),
      makeWallet: () => ({ adapterId: 'solana', ...makeSolanaWallet() }),
      cutAddressIsMalformed: false,
      chainId: 'mainnet',
    }),
  )

/** The form that an adapter sees if it forgets a part. */
const formWithout =
  (part: (form: SignInForm) => Partial<SignInForm>) =>
  (adapter: WalletAdapter): Partial<WalletAdapter> => ({
    signInText: (form, account) => adapter.signInText?.({ ...form, ...part(form) }, account) ?? '',
  })

const saysAll = 'its sign-in text says what the form says, and is the same each time'
const differs = 'its sign-in text is another one for another form or another wallet'

describeDefects<WalletAdapter>('the texts of wallet adapters', formSuite, {
  'a page that is left out': breaks(
    saysAll,
    formWithout(() => ({ uri: 'https://other.example' })),
  ),
  'a host without its port': breaks(
    differs,
    formWithout(({ domain }) => ({ domain: domain.split(':')[0] ?? '' })),
  ),
  'a resource that is left out': breaks(
    saysAll,
    formWithout(({ resources }) => ({ resources: resources.slice(1) })),
  ),
  'a nonce that is cut': breaks(
    saysAll,
    formWithout(({ nonce }) => ({ nonce: nonce.slice(0, 17) })),
  ),
  'a text that is made by the clock': breaks(
    saysAll,
    formWithout(() => ({ issuedAt: performance.timeOrigin + Math.round(performance.now() * 1000) })),
  ),
  'a life that is left out': breaks(
    differs,
    formWithout(({ issuedAt }) => ({ expiresAt: issuedAt })),
  ),
  'an address that is left out': breaks(differs, (adapter) => ({
    signInText: (form) => adapter.signInText?.(form, { address: undefined }) ?? '',
  })),
  'one that believes every signature': breaks(
    'a signature over its sign-in text proves the wallet for that text only',
    (adapter) => ({
      verify: (message, proof) => adapter.verify(message, proof, { kind: 'portable', verify: () => true }),
    }),
  ),
  'an address that is taken as it comes': breaks('its sign-in text is for no malformed account', (adapter) => ({
    signInText: (form, { address = '' }) =>
      (adapter.signInText?.(form, {}) ?? '').replace('\n\n', () => `\n${address}\n`),
  })),
  'a chain that is taken as it comes': breaks('its sign-in text is for no malformed account', (adapter) => ({
    signInText: (form, { address, chainId }) => `${adapter.signInText?.(form, { address })}\nChain ID: ${chainId}`,
  })),
  'an account id of no chain': breaks(
    'its account id is that of CAIP-10, the same each time and another one for another wallet',
    () => ({ accountId: (address) => address }),
  ),
  'an account id that many share': breaks(
    'its account id is that of CAIP-10, the same each time and another one for another wallet',
    (adapter) => ({
      accountId: () => adapter.accountId?.(makeSolanaWallet(new Uint8Array(32)).address, 'mainnet') ?? '',
    }),
  ),
  'an account id of whatever is named': breaks('its account id is for no malformed account', () => ({
    accountId: (address, chainId) => `solana:${chainId}:${address}`,
  })),
  'an outage that is taken for an answer': breaks(
    'a question to another server that is refused is refused, and is no answer',
    (adapter) => ({
      async verify(message, proof, ed25519, remote) {
        const held = await remote?.ask(async () => true).catch(() => false)
        return held === false ? undefined : await adapter.verify(message, proof, ed25519)
      },
    }),
  ),
})

/** What nimiq says of a claim without looking at a part of it. */
const blindTo =
  (part: (proof: Proof) => Partial<Proof>) =>
  (adapter: WalletAdapter): Partial<WalletAdapter> => ({
    verify: (message, proof, ed25519) => adapter.verify(message, { ...proof, ...part(proof) }, ed25519),
  })

describeDefects<WalletAdapter>('wallet adapters', adapterSuite, {
  'one that cannot start': breaks('its check at the start, if it has one, finds nothing wrong', () => ({
    checkAtStart: async () => Promise.reject(new TypeError('the directory must be a URL')),
  })),
  'one that warns at the start': breaks('its check at the start, if it has one, finds nothing wrong', () => ({
    checkAtStart: async (warn) => warn('the directory does not answer'),
  })),
  'one that believes every signature': breaks(
    'one bit changed in any byte of the signature proves nothing',
    (adapter) => ({
      verify: (message, proof) => adapter.verify(message, proof, { kind: 'portable', verify: () => true }),
    }),
  ),
  'one that ignores the address': breaks(
    "another wallet's address is refused, and is ADDRESS_MISMATCH if the proof has the key",
    blindTo(() => ({ address: undefined })),
  ),
  'one that ignores an empty address': breaks(
    'an address that is empty, cut or misspelt is refused',
    blindTo(({ address }) => ({ address: address || undefined })),
  ),
  'one that trims the message': breaks(
    'one letter changed, added or removed in the message proves nothing',
    (adapter) => ({ verify: (message, proof, ed25519) => adapter.verify(message.trim(), proof, ed25519) }),
  ),
  'one that reads the first bytes of a key': breaks(
    'a key or signature of another length proves nothing',
    blindTo(({ publicKeyHex }) => ({ publicKeyHex: publicKeyHex.slice(0, 64) })),
  ),
  'one that reads the first bytes of a signature': breaks(
    'a key or signature of another length proves nothing',
    blindTo(({ signatureHex }) => ({ signatureHex: signatureHex.slice(0, 128) })),
  ),
  'a subject that changes': breaks(
    'a wallet has one subject for all texts that it signs, and no other wallet has the same',
    (adapter) => ({
      async verify(...claim) {
        const proven = await adapter.verify(...claim)
        return proven && { ...proven, subject: crypto.randomUUID() }
      },
    }),
  ),
  'a subject that many share': breaks(
    'a wallet has one subject for all texts that it signs, and no other wallet has the same',
    (adapter) => ({
      async verify(...claim) {
        const proven = await adapter.verify(...claim)
        return proven && { ...proven, subject: 'wallet' }
      },
    }),
  ),
  'a key in upper case': breaks('a valid proof proves its wallet, with its address or without', (adapter) => ({
    async verify(...claim) {
      const proven = await adapter.verify(...claim)
      return proven && { ...proven, publicKeyHex: proven.publicKeyHex.toUpperCase() }
    },
  })),
  'an error of another kind': breaks(
    'bytes and text of any kind are refused, and nothing but a CountersignError is thrown',
    (adapter) => ({
      async verify(message, proof, ed25519) {
        if (proof.publicKeyHex.length !== 64) throw new RangeError('32 bytes')
        return await adapter.verify(message, proof, ed25519)
      },
    }),
  ),
  "a reason that is not an adapter's": breaks(
    'bytes and text of any kind are refused, and nothing but a CountersignError is thrown',
    (adapter) => ({
      async verify(message, proof, ed25519) {
        await sleep(0)
        if (proof.publicKeyHex.length !== 64) throw new CountersignError('INTERNAL', 'no key')
        return await adapter.verify(message, proof, ed25519)
      },
    }),
  ),
  'addresses that are any text': breaks('readAddress finds no address in malformed text', () => ({
    readAddress: (text) => text,
  })),
  'addresses of which only the end counts': breaks(
    'readAddress makes every spelling of an address the one that identities have',
    () => ({ readAddress: (text) => (text.length > 30 ? text.slice(4) : undefined) }),
  ),
  'an id that cannot be in an identity': breaks(
    'its id is of the form that identities need, and it has a name',
    () => ({ id: 'Nimiq 1' }),
  ),
  'an identity of another adapter': breaks(
    'a valid proof proves its wallet, with its address or without',
    (adapter) => ({
      async verify(...claim) {
        const proven = await adapter.verify(...claim)
        return proven && { ...proven, adapterId: 'ed25519' }
      },
    }),
  ),
})
