import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { inMemory } from '../support/ordinary-store.ts'
import { rest } from '../support/rest.ts'
import { connect, discover, pass, refusalOf, shop, startIssuer } from './support.ts'

const keeper = { ...shop, refresh_rotation: false }
const days = 86_400

test.each([
  ['with offline access, for the 90 days of that', { scope: 'openid offline_access', prompt: 'consent' }, 89, 91],
  ['as long as the session', { scope: 'openid' }, 29, 31],
])('a client that keeps its first refresh token uses it again and again, %s', async (_name, asked, last, over) => {
  const { url } = await startIssuer([keeper], {
    ...inMemory,
    sessionTtlSeconds: 30 * days,
    sessionAbsoluteTtlSeconds: 30 * days,
  })
  const { config, tokens, token } = await connect(url, asked)
  const refresh = tokens.refresh_token ?? ''
  const use = () => client.refreshTokenGrant(config, refresh)
  for (let time = 0; time < 3; time++) {
    const next = await use()
    // Programs that read it each time find the same.
    expect(next.refresh_token ?? refresh).toBe(refresh)
  }
  const both = await Promise.all([use(), use()])
  expect(new Set(both.map(({ access_token }) => access_token)).size).toBe(2)
  const before = (await rest(url, '/apps', undefined, { authorization: `Bearer ${token}` })).json.apps[0].lastUsedAt
  pass(2 * 3600)
  await use()
  const after = (await rest(url, '/apps', undefined, { authorization: `Bearer ${token}` })).json.apps[0].lastUsedAt
  expect(Number(after)).toBeGreaterThan(Number(before))
  pass(last * days - 3 * 3600)
  expect((await use()).access_token).toBeDefined()
  pass((over - last) * days)
  expect(await refusalOf(use())).toBe('invalid_grant')
})

test('such a token ends as any other, and is of no use without the secret of its client', async () => {
  const { url } = await startIssuer([keeper])
  const { config, tokens, token } = await connect(url)
  const refresh = tokens.refresh_token ?? ''
  const stranger = await discover(url, { ...shop.metadata, client_secret: 'another secret, as long as the right one' })
  expect(await refusalOf(client.refreshTokenGrant(stranger, refresh))).toBe(401)
  expect((await client.refreshTokenGrant(config, refresh)).access_token).toBeDefined()
  await rest(url, '/sign-out', {}, { authorization: `Bearer ${token}` })
  expect(await refusalOf(client.refreshTokenGrant(config, refresh))).toBe('invalid_grant')
})
