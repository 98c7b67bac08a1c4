import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { stores } from '../support/stores.ts'
import { type Browser, contentOf, decide, refusalOf, request, shop, startTwo, times } from './support.ts'

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

  test('nothing is left of a session that ends while 10 codes are redeemed and 10 are asked for', async () => {
    const { url, discoverBoth, newBrowser } = await startTwo(await open(), [{ ...shop, first_party: true }])
    const config = await discoverBoth()
    const browser = newBrowser()
    const { session, token } = await browser.signIn()
    const requests = await times(20, () => request(config))
    const early = await Promise.all(requests.slice(0, 10).map(({ address }) => allow(browser, address)))
    const redeem = (index: number) => requests[index]!.redeem(early[index]!)
    // Five begin before the end, which is faster than any redemption, and five beside it.
    const first = [0, 1, 2, 3, 4].map(redeem)
    await Promise.any(first)
    const [answers, given] = await Promise.all([
      Promise.all(requests.slice(10).map(({ address }) => browser.open(address))),
      Promise.allSettled([...first, ...[5, 6, 7, 8, 9].map(redeem)]),
      rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` }),
    ])
    const late = await times(10, (index) => refusalOf(requests[index + 10]!.redeem(answers[index]!.address)))
    expect(late.filter((refusal) => refusal === undefined)).toEqual([])
    for (const each of given) {
      if (each.status === 'fulfilled') expect(await refusalsOf(config, each.value, session.userId)).toEqual(dead)
    }
  })
})
