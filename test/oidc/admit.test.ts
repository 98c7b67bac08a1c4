import { writeFileSync } from 'node:fs'
import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { rest } from '../support/rest.ts'
import { makeWallet } from '../support/wallet.ts'
import {
  allow,
  bearer,
  decide,
  fileWith,
  open,
  redirectUri,
  refusalOf,
  shop,
  signedIn,
  startIssuer,
} from './support.ts'

const [ada, bob] = [makeWallet(), makeWallet()]
const both = { [`nimiq:${ada.address}`]: {}, [`nimiq:${bob.address}`]: {} }
const withoutBob = { [`nimiq:${ada.address}`]: {} }

/** An issuer for the people of a file, and one of them who is signed in. */
async function start() {
  const people = fileWith(both)
  const { url, service } = await startIssuer([shop], { people, admit: 'people' })
  const list = async (content: object) => {
    writeFileSync(people, JSON.stringify(content))
    await service.reload()
  }
  const user = await signedIn(url, bob)
  return { url, list, user }
}

test('a user who has left the people file is asked to sign in, and an application that asks for no page gets login_required', async () => {
  const { list, user } = await start()
  await allow(user)
  // Without a question, by the consent of before.
  expect((await open(user)).address.href).toMatch(`${redirectUri}?code=`)
  const halfway = await open(user, { prompt: 'consent' })
  await list(withoutBob)
  await expect(decide(user.browser, halfway)).rejects.toThrow(/load the page again/)
  expect((await open(user)).address.pathname).toBe('/api/auth/sign-in')
  expect((await open(user, { prompt: 'none' })).address.searchParams.get('error')).toBe('login_required')
  await list(both)
  expect((await open(user)).address.href).toMatch(`${redirectUri}?code=`)
})

test('what an application holds of a user counts no longer than the people file says, and again once it does', async () => {
  const { url, list, user } = await start()
  const { config, session, token } = user
  const [bound, free] = [await allow(user), await allow(user, { scope: 'openid offline_access', prompt: 'consent' })]
  const { redeem, address: code } = await open(user)
  await list(withoutBob)
  for (const { refresh_token: refreshToken = '', access_token: accessToken } of [bound, free]) {
    expect(await refusalOf(client.refreshTokenGrant(config, refreshToken))).toBe('invalid_grant')
    expect(await client.tokenIntrospection(config, accessToken)).toEqual({ active: false })
    expect(await refusalOf(client.fetchUserInfo(config, accessToken, client.skipSubjectCheck))).toBe(401)
  }
  expect(await refusalOf(redeem(code))).toBe('invalid_grant')
  await list(both)
  // The grants have stayed.
  for (const { refresh_token: refreshToken = '', access_token: accessToken } of [bound, free]) {
    expect((await client.tokenIntrospection(config, accessToken)).active).toBe(true)
    expect((await client.fetchUserInfo(config, accessToken, session.userId)).sub).toBe(session.userId)
    expect((await client.refreshTokenGrant(config, refreshToken)).access_token).toBeDefined()
  }
  expect((await rest(url, '/session', undefined, bearer(token))).status).toBe(200)
})
