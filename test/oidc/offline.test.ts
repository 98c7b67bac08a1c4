import * as client from 'openid-client'
import { describe, expect, test, vi } from 'vitest'
import { type AuditEvent, openStore } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { administrationOn } from '../core/users/support.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'
import {
  allow,
  Browser,
  bearer,
  contentOf,
  discover,
  elsewhere,
  open,
  pass,
  refusalOf,
  sessionsOf,
  shop,
  signedIn,
  signInByOrder,
  startIssuer,
} from './support.ts'

const offline = { scope: 'openid offline_access', prompt: 'consent' }
const day = 86_400

/** A user with tokens bound to a session, and with others for offline access that began in it. */
async function connected(options: CountersignOptions = {}) {
  const store = await openStore('sqlite::memory:')
  const { url } = await startIssuer([shop], { store, ...options })
  const user = await signedIn(url)
  const { config } = user
  const [bound, free] = [await allow(user, { scope: 'openid profile' }), await allow(user, offline)]
  const refreshed = (tokens: client.TokenEndpointResponse) =>
    client.refreshTokenGrant(config, tokens.refresh_token ?? '')
  const { userId } = user.session
  return {
    url,
    store,
    ...user,
    /** What becomes of both: `alive`, or how a refresh is refused. */
    async fates() {
      const fate = async (tokens: client.TokenEndpointResponse) => (await refusalOf(refreshed(tokens))) ?? 'alive'
      const fates = { bound: await fate(bound), offline: await fate(free) }
      const isAlive = fates.offline === 'alive'
      // An access token lasts 15 minutes.
      if (vi.isFakeTimers()) return fates
      const seen = await refusalOf(client.fetchUserInfo(config, free.access_token, userId))
      expect(seen).toBe(isAlive ? undefined : 401)
      expect((await client.tokenIntrospection(config, free.access_token)).active).toBe(isAlive)
      return fates
    },
  }
}

type Connected = Awaited<ReturnType<typeof connected>>

function linkOf(wallet: TestWallet, challenge: { readonly nonceId: string; readonly message: string }) {
  const { nonceId, ...proof } = proofOf(wallet, challenge)
  return { nonceId, proof }
}

function identityOf(wallet: TestWallet) {
  const { publicKeyHex, address } = wallet
  return { adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address }
}

describe('offline access', () => {
  test.each<[string, (user: Connected) => Promise<unknown>]>([
    ['sign-out', ({ url, token }) => rest(url, '/sign-out', {}, bearer(token))],
    ['the session’s expiry', async ({ session }) => pass((session.expiresAt + 1 - Date.now()) / 1000)],
    [
      'an application’s sign-out',
      async ({ config, browser }) => {
        const page = await browser.open(client.buildEndSessionUrl(config).href)
        await browser.post(page.address.pathname, { ticket: contentOf(page.text).ticket })
      },
    ],
  ])('outlives %s, and what is bound to the session does not', async (_, end) => {
    const user = await connected()
    await end(user)
    expect(await user.fates()).toEqual({ bound: 'invalid_grant', offline: 'alive' })
  })

  test.each<[string, (user: Connected) => Promise<unknown>]>([
    [
      'revoking its session from another one',
      async (user) =>
        await sessionsOf(user).revokeSession({ sessionId: user.session.id }, { headers: await elsewhere(user) }),
    ],
    [
      'revoking all other sessions',
      async (user) => await sessionsOf(user).revokeOtherSessions({}, { headers: await elsewhere(user) }),
    ],
    [
      'revoking all other sessions after its own has ended',
      async (user) => {
        await rest(user.url, '/sign-out', {}, bearer(user.token))
        await sessionsOf(user).revokeOtherSessions({}, { headers: await elsewhere(user) })
      },
    ],
    [
      'revoking all other sessions at an instance without the clients file',
      async (user) => {
        const { url } = await startService({ store: user.store })
        const headers = await elsewhere(user)
        expect((await rest(url, '/sessions/revoke-others', {}, headers)).status).toBe(200)
      },
    ],
    [
      'disconnecting the application',
      async (user) =>
        expect((await rest(user.url, '/apps/disconnect', { clientId: 'shop' }, bearer(user.token))).status).toBe(200),
    ],
    [
      'disconnecting the application after sign-out',
      async (user) => {
        await rest(user.url, '/sign-out', {}, bearer(user.token))
        await rest(user.url, '/apps/disconnect', { clientId: 'shop' }, await elsewhere(user))
      },
    ],
    ['blocking the wallet', async ({ store, wallet }) => await administrationOn(store).block(identityOf(wallet))],
    [
      'blocking the wallet after sign-out, and unblocking it',
      async ({ url, token, store, wallet }) => {
        await rest(url, '/sign-out', {}, bearer(token))
        await administrationOn(store).block(identityOf(wallet))
        await administrationOn(store).unblock(identityOf(wallet))
      },
    ],
    [
      'an operator’s end of all sessions, after sign-out',
      async ({ url, token, store, session }) => {
        await rest(url, '/sign-out', {}, bearer(token))
        await administrationOn(store).endSessions(session.userId)
      },
    ],
    [
      'an operator’s end of its session',
      async ({ store, session }) => await administrationOn(store).endSession(session.userId, session.id),
    ],
    [
      'deleting the user after sign-out',
      async ({ url, token, store, session }) => {
        await rest(url, '/sign-out', {}, bearer(token))
        await administrationOn(store).delete(session.userId)
      },
    ],
    [
      'unlinking its wallet',
      async ({ url, token, wallet }) => {
        const other = makeWallet()
        const challenge = (await rest(url, '/wallet/nonce', { purpose: 'link' }, bearer(token))).json
        expect((await rest(url, '/wallet/link', linkOf(other, challenge), bearer(token))).status).toBe(200)
        const second = (await new Browser(url).signIn(other)).token
        const { address } = wallet
        expect((await rest(url, '/wallet/unlink', { adapterId: 'nimiq', address }, bearer(second))).status).toBe(200)
      },
    ],
  ])('ends by %s', async (_, end) => {
    const user = await connected()
    await end(user)
    expect(await user.fates()).toMatchObject({ offline: 'invalid_grant', bound: 'invalid_grant' })
  })

  test('ends 90 days after it began, however often it is refreshed', async () => {
    const { config, browser } = await connected()
    let tokens: client.TokenEndpointResponse = await allow({ browser, config }, offline)
    for (let days = 10; days <= 80; days += 10) {
      pass(10 * day)
      tokens = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    }
    pass(10 * day + 1)
    expect(await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? ''))).toBe('invalid_grant')
  })

  test('begins anew with each consent', async () => {
    const { config, browser } = await connected()
    await allow({ browser, config }, offline)
    pass(day)
    let tokens: client.TokenEndpointResponse = await allow({ browser, config }, offline)
    // The last is later than 90 days after the first consent.
    for (const days of [9, 10, 10, 10, 10, 10, 10, 10, 10.5]) {
      pass(days * day)
      tokens = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    }
  })

  test('is asked for each time, and never given without prompt=consent', async () => {
    const user = await connected()
    const again = await open(user, offline)
    expect(again.content).toMatchObject({ kind: 'consent', scopes: ['openid', 'offline_access'] })
    const { address, redeem } = await open(user, { scope: 'openid offline_access' })
    expect((await redeem(address)).scope).toBe('openid')
  })
})

async function revokeOthers({ url }: Browser, wallet: TestWallet): Promise<void> {
  expect(
    (await rest(url, '/sessions/revoke-others', {}, bearer((await new Browser(url).signIn(wallet)).token))).status,
  ).toBe(200)
}

describe('a relayed order with offline access', () => {
  test.each<[string, (attacker: Browser, victim: TestWallet, takeBack: () => Promise<void>) => Promise<unknown>]>([
    ['taken back', (_attacker, _victim, takeBack) => takeBack()],
    [
      'taken back after its session was signed out',
      async (attacker, _victim, takeBack) => {
        expect((await attacker.post('/api/auth/sign-out', {})).status).toBe(200)
        await takeBack()
      },
    ],
    [
      'taken back, and all other sessions revoked',
      async (attacker, victim, takeBack) => {
        await takeBack()
        await revokeOthers(attacker, victim)
      },
    ],
    [
      'revoked with all other sessions after it was signed out',
      async (attacker, victim) => {
        await attacker.post('/api/auth/sign-out', {})
        await revokeOthers(attacker, victim)
      },
    ],
  ])('is dead once it is %s', async (_name, end) => {
    const { url } = await startIssuer()
    const [victim, attacker, config] = [makeWallet(), new Browser(url), await discover(url)]
    const { takeBack } = await signInByOrder(attacker, victim)
    const tokens = await allow({ browser: attacker, config }, offline)
    const next = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    await end(attacker, victim, takeBack)
    expect(await client.tokenIntrospection(config, next.access_token)).toEqual({ active: false })
    expect(await refusalOf(client.refreshTokenGrant(config, next.refresh_token ?? ''))).toBe('invalid_grant')
  })
})

describe('connected applications', () => {
  test('are listed with what the user allowed, and none is left after it is disconnected', async () => {
    const told: AuditEvent[] = []
    const { url, token, session } = await connected({ onAuditEvent: (event) => void told.push(event) })
    const { json } = await rest(url, '/apps', undefined, bearer(token))
    expect(json.apps).toEqual([
      {
        clientId: 'shop',
        name: 'Tulip Shop',
        host: 'shop.example',
        scopes: ['openid', 'profile', 'offline_access'],
        connectedAt: expect.any(Number),
        lastUsedAt: expect.any(Number),
      },
    ])
    await rest(url, '/apps/disconnect', { clientId: 'shop' }, bearer(token))
    expect((await rest(url, '/apps', undefined, bearer(token))).json).toEqual({ apps: [] })
    const by = { userId: session.userId, sessionId: session.id, clientId: 'shop' }
    expect(told.filter(({ type }) => type.startsWith('app.'))).toEqual([
      expect.objectContaining({ type: 'app.connected', ...by, scope: 'openid profile' }),
      expect.objectContaining({ type: 'app.connected', ...by, scope: 'openid offline_access' }),
      expect.objectContaining({ type: 'app.disconnected', ...by }),
    ])
  })

  test('are used when their tokens are renewed, also after a sign-out', async () => {
    const user = await connected()
    await rest(user.url, '/sign-out', {}, bearer(user.token))
    const usedAt = async () => {
      const { token } = await new Browser(user.url).signIn(user.wallet)
      const { json } = await rest(user.url, '/apps', undefined, bearer(token))
      return Number(json.apps[0].lastUsedAt)
    }
    const before = await usedAt()
    pass(7200)
    expect((await user.fates()).offline).toBe('alive')
    expect(await usedAt()).toBeGreaterThanOrEqual(before + 7_200_000)
  })

  test('are disconnected from the service’s own pages only, also without enforceOrigin', async () => {
    const app = 'https://app.example'
    const user = await connected({ enforceOrigin: false, trustedOrigins: [app] })
    const disconnect = (origin: string) =>
      rest(user.url, '/apps/disconnect', { clientId: 'shop' }, { origin, cookie: user.browser.cookie('/') })
    const refused = await disconnect(app)
    expect([refused.status, refused.json.code]).toEqual([403, 'ORIGIN_NOT_TRUSTED'])
    expect((await user.fates()).offline).toBe('alive')
    expect((await disconnect(user.url)).status).toBe(200)
  })

  test('ask again once they are disconnected', async () => {
    const { url, token, config, browser, fates } = await connected()
    const scope = { scope: 'openid' }
    expect((await open({ browser, config }, scope)).address.searchParams.has('code')).toBe(true)
    await rest(url, '/apps/disconnect', { clientId: 'shop' }, bearer(token))
    expect((await open({ browser, config }, scope)).content.kind).toBe('consent')
    // Tokens that ended with the disconnection stay dead, also once their application gets others in the same session.
    const tokens = await allow({ browser, config }, offline)
    expect(await fates()).toEqual({ bound: 'invalid_grant', offline: 'invalid_grant' })
    expect((await client.tokenIntrospection(config, tokens.access_token)).active).toBe(true)
  })

  test('connected applications that were connected directly are out of reach of a session that an order made, which ends its own', async () => {
    const user = await connected()
    const { url, config, wallet } = user
    const relayed = new Browser(url)
    await signInByOrder(relayed, wallet)
    const disconnect = () => relayed.post('/api/auth/apps/disconnect', { clientId: 'shop' })
    expect(await disconnect()).toMatchObject({ status: 403, json: { code: 'SESSION_NOT_FRESH' } })
    const redeemed = async () => {
      // The user is not asked: the application is connected.
      const { address, redeem } = await open({ browser: relayed, config }, { scope: 'openid profile' })
      return await redeem(address)
    }
    const tokens = await redeemed()
    expect(tokens.scope).toBe('openid profile')
    expect((await disconnect()).status).toBe(200)
    expect(await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? ''))).toBe('invalid_grant')
    expect(await user.fates()).toEqual({ bound: 'alive', offline: 'alive' })
    const { json } = await rest(url, '/apps', undefined, bearer(user.token))
    expect(json.apps).toMatchObject([{ clientId: 'shop', scopes: ['openid', 'profile', 'offline_access'] }])
    // The other way round, a session of a direct sign-in ends both.
    const later = await redeemed()
    expect((await rest(url, '/apps/disconnect', { clientId: 'shop' }, bearer(user.token))).status).toBe(200)
    expect(await refusalOf(client.refreshTokenGrant(config, later.refresh_token ?? ''))).toBe('invalid_grant')
    expect((await rest(url, '/apps', undefined, bearer(user.token))).json.apps).toEqual([])
  })

  test('are remembered in the user’s other sessions', async () => {
    const { url, config, wallet } = await connected()
    const other = await Browser.signedIn(url, wallet)
    const { address } = await open({ browser: other, config }, { scope: 'openid profile' })
    expect(address.searchParams.has('code')).toBe(true)
  })
})
