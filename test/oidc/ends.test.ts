import * as client from 'openid-client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { administrationOn } from '../core/users/support.ts'
import { rest } from '../support/rest.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'
import {
  Browser,
  bearer,
  connect,
  contentOf,
  decide,
  discover,
  elsewhere,
  pass,
  refusalOf,
  request,
  sessionsOf,
  shop,
  signInByOrder,
  startIssuer,
} from './support.ts'

const secret = 'a secret of the service '.repeat(2)

/** A user with a session that an order made, tokens that are bound to it, and an open code. */
async function connected() {
  const store = await openStore('sqlite::memory:')
  // Shorter than an access token's life, so that the session is what ends it.
  const { url, service } = await startIssuer([shop], { store, secret, sessionTtlSeconds: 600 })
  const [browser, config, wallet] = [new Browser(url), await discover(url), makeWallet()]
  const { takeBack } = await signInByOrder(browser, wallet)
  const { address, redeem } = await request(config)
  const tokens = await redeem(await decide(browser, await browser.open(address)))
  const next = await request(config)
  const code = (await browser.open(next.address)).address
  const { json } = await rest(url, '/session', undefined, { cookie: browser.cookie('/') })
  return {
    url,
    service,
    store,
    browser,
    config,
    wallet,
    takeBack,
    tokens,
    session: json.session,
    redeemLater: () => next.redeem(code),
  }
}

type Connected = Awaited<ReturnType<typeof connected>>

function identityOf({ publicKeyHex, address }: TestWallet) {
  return { adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address }
}

test.each<[string, (user: Connected) => Promise<unknown>]>([
  ['sign-out', async ({ browser }) => expect((await browser.post('/api/auth/sign-out', {})).status).toBe(200)],
  [
    'revoking it in itself',
    async (user) => {
      const headers = { cookie: user.browser.cookie('/'), origin: user.url }
      await sessionsOf(user).revokeSession({ sessionId: user.session.id }, { headers })
    },
  ],
  [
    'revoking it in another session',
    async (user) =>
      await sessionsOf(user).revokeSession({ sessionId: user.session.id }, { headers: await elsewhere(user) }),
  ],
  [
    'revoking all other sessions',
    async (user) => await sessionsOf(user).revokeOtherSessions({}, { headers: await elsewhere(user) }),
  ],
  ['taking its order back', ({ takeBack }) => takeBack()],
  [
    'unlinking its wallet',
    async (user) => {
      const [{ url, wallet }, headers, other] = [user, await elsewhere(user), makeWallet()]
      const { json } = await rest(url, '/wallet/nonce', { purpose: 'link' }, headers)
      const { nonceId, ...proof } = proofOf(other, json)
      expect((await rest(url, '/wallet/link', { nonceId, proof }, headers)).status).toBe(200)
      const second = bearer((await new Browser(url).signIn(other)).token)
      const { address } = wallet
      expect((await rest(url, '/wallet/unlink', { adapterId: 'nimiq', address }, second)).status).toBe(200)
    },
  ],
  [
    'an operator’s end of it',
    async ({ store, session }) => await administrationOn(store).endSession(session.userId, session.id),
  ],
  [
    'an operator’s end of all sessions',
    async ({ store, session }) => await administrationOn(store).endSessions(session.userId),
  ],
  ['deleting the user', async ({ store, session }) => await administrationOn(store).delete(session.userId)],
  ['blocking the wallet', async ({ store, wallet }) => await administrationOn(store).block(identityOf(wallet))],
  [
    'an application’s sign-out',
    async ({ browser, config }) => {
      const page = await browser.open(client.buildEndSessionUrl(config).href)
      await browser.post(page.address.pathname, { ticket: contentOf(page.text).ticket })
    },
  ],
  ['its expiry', async ({ session }) => pass((session.expiresAt + 1 - Date.now()) / 1000)],
])('what is bound to a session is dead at the next call after %s', async (_name, end) => {
  const user = await connected()
  const { config, tokens, session, redeemLater } = user
  expect(await client.tokenIntrospection(config, tokens.access_token)).toMatchObject({ active: true })
  await end(user)
  expect({
    userinfo: await refusalOf(client.fetchUserInfo(config, tokens.access_token, session.userId)),
    introspection: await client.tokenIntrospection(config, tokens.access_token),
    ofRefreshToken: await client.tokenIntrospection(config, tokens.refresh_token ?? ''),
    refresh: await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? '')),
    code: await refusalOf(redeemLater()),
  }).toEqual({
    userinfo: 401,
    introspection: { active: false },
    ofRefreshToken: { active: false },
    refresh: 'invalid_grant',
    code: 'invalid_grant',
  })
})

test('what is bound to a session stays its user’s when another user signs in in the same browser', async () => {
  const { url, browser, config, tokens, session, redeemLater } = await connected()
  const { json } = await rest(url, '/wallet/nonce', {})
  const { status } = await browser.post('/api/auth/wallet/verify', proofOf(makeWallet(), json))
  expect(status).toBe(200)
  const other = await request(config)
  const page = await browser.open(other.address)
  expect(contentOf(page.text)).toMatchObject({ kind: 'consent' })
  const second = await other.redeem(await decide(browser, page))
  expect(second.claims()?.sub).not.toBe(session.userId)
  expect((await redeemLater()).claims()?.sub).toBe(session.userId)
  expect(await client.fetchUserInfo(config, tokens.access_token, session.userId)).toMatchObject({ sub: session.userId })
})

describe('a refresh, however long no page of the service is opened,', () => {
  /** Tokens of a session that lives for 1,000 seconds unused, and for 2,500 in all. */
  async function start(parameters: Record<string, string>) {
    const store = await openStore('sqlite::memory:')
    const { url } = await startIssuer([shop], { store, sessionTtlSeconds: 1000, sessionAbsoluteTtlSeconds: 2500 })
    const user = await connect(url, parameters)
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    let { tokens } = user
    const refresh = async (seconds: number) => {
      vi.setSystemTime(user.session.createdAt + seconds * 1000)
      tokens = await client.refreshTokenGrant(user.config, String(tokens.refresh_token))
    }
    const statusAt = async (seconds: number) => {
      vi.setSystemTime(user.session.createdAt + seconds * 1000)
      return (await rest(url, '/session', undefined, bearer(user.token))).status
    }
    return { refresh, statusAt }
  }

  test('is a use of its session, up to the absolute limit', async () => {
    const { refresh, statusAt } = await start({})
    for (const seconds of [500, 1400, 2300]) await refresh(seconds)
    expect(await statusAt(2499)).toBe(200)
    expect(await refusalOf(refresh(2501))).toBe('invalid_grant')
  })

  test('is no use of its session with offline access', async () => {
    const { refresh, statusAt } = await start({ scope: 'openid offline_access', prompt: 'consent' })
    await refresh(900)
    expect(await statusAt(1001)).toBe(401)
    await refresh(1002)
  })
})
