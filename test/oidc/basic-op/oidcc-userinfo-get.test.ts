import { expect, test } from 'vitest'
import { metadata, signIn } from './support.ts'

test('userinfo answers GET with a token in the header', async () => {
  const { tokens, claims } = await signIn()
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  const response = await fetch(String(metadata.userinfo_endpoint), { headers })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^application\/json\b/)
  expect(await response.json()).toMatchObject({ sub: claims.sub })
})
