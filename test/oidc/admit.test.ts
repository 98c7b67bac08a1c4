import { writeFileSync } from 'node:fs'
import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { makeWallet } from '../support/wallet.ts'
import { contentOf, decide, fileWith, redirectUri, refusalOf, request, shop, signedIn, startIssuer } from './support.ts'

const [ada, bob] = [makeWallet(), makeWallet()]
const both = { [`nimiq:${ada.address}`]: {}, [`nimiq:${bob.address}`]: {} }
const withoutBob = { [`nimiq:${ada.address}`]: {} }
const offline = { scope: 'openid offline_access', prompt: 'consent' }

/** An issuer for the people of a file, and one of them who is signed in. */
async function start() {
  const people = fileWith(both)
  const { url, service } = await startIssuer([shop], { people, admit: 'people' })
  const list = async (content: object) => {
    writeFileSync(people, JSON.stringify(content))
    await service.reload()
  }
  const { browser, config, token } = await signedIn(url, bob)
  const open = async (parameters: Record<string, string> = {}) => {
    const { address, redeem } = await request(config, parameters)
    return { ...(await browser.open(address)), redeem }
  }
  return { url, list, browser, config, token, open }
}

test('a user who has left the people file is asked to sign in, and an application that asks for no page is told so', async () => {
  const { list, open, browser } = await start()
  const { redeem, ...asked } = await open()
  await redeem(await decide(browser, asked))
  // Without a question, by the consent of before.
  expect((await open()).address.href).toMatch(`${redirectUri}?code=`)
  const halfway = await open({ prompt: 'consent' })
  await list(withoutBob)
  const { sessionId } = contentOf(halfway.text)
  expect((await browser.post(halfway.address.pathname, { allow: true, sessionId })).status).toBe(400)
  expect((await open()).address.pathname).toBe('/api/auth/sign-in')
  expect((await open({ prompt: 'none' })).address.searchParams.get('error')).toBe('login_required')
  await list(both)
  expect((await open()).address.href).toMatch(`${redirectUri}?code=`)
})

test('what an application holds of a user counts no longer than the people file says, and again once it does', async () => {
  const { list, open, browser, config, token, url } = await start()
  const tokensOf = async (parameters?: Record<string, string>) => {
    const { redeem, ...opened } = await open(parameters)
    return await redeem(contentOf(opened.text).kind === 'consent' ? await decide(browser, opened) : opened.address)
  }
  const [bound, free] = [await tokensOf(), await tokensOf(offline)]
  const { redeem, address: code } = await open()
  await list(withoutBob)
  for (const { refresh_token: refreshToken, access_token: accessToken } of [bound, free]) {
    expect(await refusalOf(client.refreshTokenGrant(config, String(refreshToken)))).toBe('invalid_grant')
    expect((await client.tokenIntrospection(config, accessToken)).active).toBe(false)
    expect(await refusalOf(client.fetchUserInfo(config, accessToken, client.skipSubjectCheck))).toBe(401)
  }
  expect(await refusalOf(redeem(code))).toBe('invalid_grant')
  await list(both)
  // The grant has stayed.
  for (const { refresh_token: refreshToken } of [bound, free]) {
    expect((await client.refreshTokenGrant(config, String(refreshToken))).access_token).toBeDefined()
  }
  expect((await rest(url, '/session', undefined, { authorization: `Bearer ${token}` })).status).toBe(200)
})
