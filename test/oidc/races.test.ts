import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { stores } from '../support/stores.ts'
import { type Browser, connect, contentOf, decide, refusalOf, request, shop, startTwo } from './support.ts'

const times = <Result>(count: number, make: (index: number) => Promise<Result>): Promise<Result[]> =>
  Promise.all(Array.from({ length: count }, (_unused, index) => make(index)))

/** Opens a request and allows it. Resolves with the answer. */
async function allow(browser: Browser, address: string): Promise<URL> {
  const opened = await browser.open(address)
  return contentOf(opened.text).kind === 'consent' ? await decide(browser, opened) : opened.address
}

/** How userinfo and a refresh are refused; `undefined` for what works. */
async function refusalsOf(
  config: client.Configuration,
  tokens: client.TokenEndpointResponse,
  userId: string,
): Promise<unknown[]> {
  return [
    await refusalOf(client.fetchUserInfo(config, tokens.access_token, userId)),
    await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? '')),
  ]
}

const alive = [undefined, undefined]
const dead = [401, 'invalid_grant']

describe.each(stores)('on $name, over two instances', ({ open }) => {
  test('of 50 redemptions of a code one succeeds, and what it got is dead afterwards', async () => {
    const { discoverBoth, newBrowser } = await startTwo(await open())
    const [browser, config] = [newBrowser(), await discoverBoth()]
    const { session } = await browser.signIn()
    const { address, redeem } = await request(config)
    const answer = await allow(browser, address)
    const all = await Promise.allSettled(Array.from({ length: 50 }, () => redeem(new URL(answer))))
    const won = all.filter((each) => each.status === 'fulfilled').map(({ value }) => value)
    expect(won).toHaveLength(1)
    for (const tokens of won) {
      expect(await refusalOf(client.refreshTokenGrant(config, tokens.refresh_token ?? ''))).toBe('invalid_grant')
      expect(await refusalOf(client.fetchUserInfo(config, tokens.access_token, session.userId))).toBe(401)
      expect(await client.tokenIntrospection(config, tokens.access_token)).toEqual({ active: false })
    }
    // What the user has allowed still holds, and the next code works.
    const next = await request(config)
    const again = await next.redeem((await browser.open(next.address)).address)
    expect(again.claims()?.sub).toBe(session.userId)
  })

  test('of 50 uses of a refresh token one succeeds, and the grant is dead afterwards', async () => {
    const { url, discoverBoth } = await startTwo(await open())
    const [{ tokens }, config] = [await connect(url), await discoverBoth()]
    const refresh = () => client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    const all = await Promise.allSettled(Array.from({ length: 50 }, refresh))
    const won = all.filter((each) => each.status === 'fulfilled').map(({ value }) => value)
    expect(won).toHaveLength(1)
    for (const { refresh_token: next = '' } of won) {
      expect(await refusalOf(client.refreshTokenGrant(config, next))).toBe('invalid_grant')
    }
  })

  test('20 clients that are allowed at once in one session all work', async () => {
    const many = Array.from({ length: 20 }, (_unused, index) => ({
      metadata: { ...shop.metadata, client_id: `client-${index}` },
    }))
    const { discoverBoth, newBrowser } = await startTwo(await open(), many)
    const browser = newBrowser()
    const { session } = await browser.signIn()
    const configs = await times(20, (index) => discoverBoth(many[index]?.metadata))
    const requests = await Promise.all(configs.map((config) => request(config)))
    const answers = await Promise.all(requests.map(({ address }) => allow(browser, address)))
    const tokens = await times(20, (index) => requests[index]!.redeem(answers[index]!))
    const refusals = await times(20, (index) => refusalsOf(configs[index]!, tokens[index]!, session.userId))
    expect(refusals).toEqual(refusals.map(() => alive))
  })

  test.each([
    ['asks', false],
    ['does not ask', true],
  ])('in two tabs of a client that %s, 20 times, no code is dead', async (_, isFirstParty) => {
    const { discoverBoth, newBrowser } = await startTwo(await open(), [{ ...shop, first_party: isFirstParty }])
    const config = await discoverBoth()
    for (let time = 0; time < 20; time++) {
      const browser = newBrowser()
      const { session } = await browser.signIn()
      const tabs = await times(2, () => request(config))
      const answers = await Promise.all(tabs.map(({ address }) => allow(browser, address)))
      const tokens = await times(2, (index) => tabs[index]!.redeem(answers[index]!))
      const refusals = await times(2, (index) => refusalsOf(config, tokens[index]!, session.userId))
      expect(refusals, `time ${time}`).toEqual([alive, alive])
    }
  })

  test('two applications that are opened at once, before a sign-in, both work after it', async () => {
    const other = { metadata: { ...shop.metadata, client_id: 'other' } }
    const { discoverBoth, newBrowser } = await startTwo(await open(), [shop, other])
    const configs = [await discoverBoth(), await discoverBoth(other.metadata)]
    const browser = newBrowser()
    const tabs = await Promise.all(configs.map((config) => request(config)))
    const pages = await Promise.all(tabs.map(({ address }) => browser.open(address)))
    expect(pages.map(({ address }) => address.pathname)).toEqual(['/api/auth/sign-in', '/api/auth/sign-in'])
    const { session } = await browser.signIn()
    const back = pages.map(({ address }) => address.searchParams.get('returnTo') ?? '')
    const answers = await Promise.all(back.map((address) => allow(browser, address)))
    const tokens = await times(2, (index) => tabs[index]!.redeem(answers[index]!))
    const refusals = await times(2, (index) => refusalsOf(configs[index]!, tokens[index]!, session.userId))
    expect(refusals).toEqual([alive, alive])
  })

  test('nothing is left of a code that comes again, of whatever is being refreshed beside it', async () => {
    const { discoverBoth, newBrowser } = await startTwo(await open())
    const config = await discoverBoth()
    for (let time = 0; time < 10; time++) {
      const browser = newBrowser()
      const { session } = await browser.signIn()
      const { address, redeem } = await request(config)
      const answer = await allow(browser, address)
      const tokens = await redeem(answer)
      const [refreshed, replayed] = await Promise.all([
        client.refreshTokenGrant(config, tokens.refresh_token ?? '').catch(() => undefined),
        refusalOf(redeem(answer)),
      ])
      expect(replayed).toBe('invalid_grant')
      expect(await refusalsOf(config, tokens, session.userId), `time ${time}`).toEqual(dead)
      if (refreshed !== undefined) expect(await refusalsOf(config, refreshed, session.userId)).toEqual(dead)
    }
  })

  test('nothing is left of a session that ends while 10 codes are redeemed and 10 are asked for', async () => {
    const { url, discoverBoth, newBrowser } = await startTwo(await open(), [{ ...shop, first_party: true }])
    const config = await discoverBoth()
    const browser = newBrowser()
    const { session, token } = await browser.signIn()
    const requests = await times(20, () => request(config))
    const early = await Promise.all(requests.slice(0, 10).map(({ address }) => allow(browser, address)))
    const [answers, given] = await Promise.all([
      Promise.all(requests.slice(10).map(({ address }) => browser.open(address))),
      times(10, (index) => requests[index]!.redeem(early[index]!).catch(() => undefined)),
      rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` }),
    ])
    const late = await times(10, (index) => refusalOf(requests[index + 10]!.redeem(answers[index]!.address)))
    expect(late.filter((refusal) => refusal === undefined)).toEqual([])
    for (const tokens of given) {
      if (tokens !== undefined) expect(await refusalsOf(config, tokens, session.userId)).toEqual(dead)
    }
  })
})
