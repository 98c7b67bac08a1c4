import { writeFileSync } from 'node:fs'
import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { makeWallet } from '../support/wallet.ts'
import {
  Browser,
  contentOf,
  decide,
  discover,
  fileWith,
  redirectUri,
  refusalOf,
  request,
  shop,
  startIssuer,
} from './support.ts'

const [ada, bob] = [makeWallet(), makeWallet()]
const key = `nimiq:${ada.address}`
const offline = { scope: 'openid offline_access', prompt: 'consent' }

/** An issuer with a client for some groups, and a browser. */
async function start(of = {}) {
  const people = fileWith({ [key]: { groups: ['staff'] } })
  const { url, service } = await startIssuer([{ ...shop, groups: ['admins', 'staff'], ...of }], { people })
  const group = async (name: string) => {
    writeFileSync(people, JSON.stringify({ [key]: { groups: [name] } }))
    await service.reload()
  }
  const [browser, config] = [new Browser(url), await discover(url)]
  const open = async (parameters: Record<string, string> = {}) => {
    const { address, redeem } = await request(config, parameters)
    return { ...(await browser.open(address)), redeem }
  }
  return { url, browser, config, group, open }
}

test.each([{}, { first_party: true }])(
  'a client for groups is for their people: others get a page, and nothing of it (%o)',
  async (of) => {
    const { url, browser, open, group } = await start(of)
    const { token } = await browser.signIn(bob)
    const opened = await open()
    expect(opened.response.status).toBe(403)
    const shown = contentOf(opened.text)
    expect(shown).toMatchObject({
      kind: 'not-for-account',
      client: { name: 'Tulip Shop' },
      wallet: `nimiq:${bob.address}`,
    })
    expect(shown.signIn).toMatch(/^\/api\/auth\/sign-in\?.*again=1/)
    expect((await open({ prompt: 'none' })).address.searchParams.get('error')).toBe('access_denied')
    const { sessionId } = shown
    const scopes = ['openid', 'profile', 'wallet']
    expect((await browser.post(opened.address.pathname, { allow: true, sessionId, scopes })).status).toBe(400)
    const back = await browser.post(opened.address.pathname, { allow: false, sessionId })
    const answer = (await browser.open(back.json.redirectTo)).address
    expect([answer.origin + answer.pathname, answer.searchParams.get('error')]).toEqual([redirectUri, 'access_denied'])
    expect((await rest(url, '/apps', undefined, { authorization: `Bearer ${token}` })).json.apps).toEqual([])
    // With another wallet, the same request goes on.
    const again = await open()
    await browser.signIn(ada)
    const resumed = await browser.open(`${again.address.pathname}?back=1`)
    const isAsked = contentOf(resumed.text).kind === 'consent'
    const { claims, ...tokens } = await again.redeem(isAsked ? await decide(browser, resumed) : resumed.address)
    expect(claims.call(tokens)?.sub).toMatch(/^usr_/)
    await group('other')
    expect(contentOf((await open()).text).kind).toBe('not-for-account')
    await group('admins')
    expect((await open()).address.href).toMatch(`${redirectUri}?code=`)
  },
)

test('a user who has left the group gets no code redeemed, no refresh and no claims, and all of it once back', async () => {
  const { browser, config, open, group } = await start()
  await browser.signIn(ada)
  const tokensOf = async (parameters?: Record<string, string>) => {
    const { redeem, ...opened } = await open(parameters)
    return await redeem(contentOf(opened.text).kind === 'consent' ? await decide(browser, opened) : opened.address)
  }
  const [bound, free] = [await tokensOf(), await tokensOf(offline)]
  const halfway = await open({ prompt: 'consent' })
  const { redeem, address: code } = await open()
  await group('other')
  await expect(decide(browser, halfway)).rejects.toThrow(/load the page again/)
  const again = await browser.open(halfway.address.href)
  expect([again.response.status, contentOf(again.text).kind]).toEqual([403, 'not-for-account'])
  expect(await refusalOf(redeem(code))).toBe('access_denied')
  for (const { refresh_token: refreshToken, access_token: accessToken } of [bound, free]) {
    expect(await refusalOf(client.refreshTokenGrant(config, String(refreshToken)))).toBe('access_denied')
    expect(await refusalOf(client.fetchUserInfo(config, accessToken, client.skipSubjectCheck))).toBe(401)
  }
  await group('staff')
  for (const { refresh_token: refreshToken } of [bound, free]) {
    expect((await client.refreshTokenGrant(config, String(refreshToken))).access_token).toBeDefined()
  }
})

test('groups of the claims function let no one in', async () => {
  const { url } = await startIssuer([{ ...shop, groups: ['staff'] }], {
    oidc: { claims: async () => ({ groups: ['staff'] }) },
  })
  const browser = new Browser(url)
  await browser.signIn(ada)
  const { address } = await request(await discover(url))
  expect(contentOf((await browser.open(address)).text).kind).toBe('not-for-account')
})

test.each([[[]], ['staff'], [['a b']], [['x'.repeat(65)]], [Array(33).fill('x')], [[1]], [null]])(
  'groups of a client cannot be %j',
  async (groups) => {
    await expect(startIssuer([{ ...shop, groups }])).rejects.toThrow(/groups must be a list of at most 32 names/)
  },
)
