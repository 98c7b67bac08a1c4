import { expect, test } from 'vitest'
import { metadata, signIn } from './support.ts'

test('userinfo answers POST with a token in a form', async () => {
  const { tokens, claims } = await signIn()
  const body = new URLSearchParams({ access_token: tokens.access_token })
  const response = await fetch(String(metadata.userinfo_endpoint), { method: 'POST', body })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^application\/json\b/)
  expect(await response.json()).toMatchObject({ sub: claims.sub })
})
