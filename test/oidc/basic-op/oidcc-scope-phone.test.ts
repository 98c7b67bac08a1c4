import { expect, test } from 'vitest'
import { metadata, newRequest, signIn } from './support.ts'

test('the scope phone is not offered, and a request with it gets the others', async () => {
  expect(metadata.scopes_supported).not.toContain('phone')
  const { tokens, userinfo } = await signIn({ request: newRequest({ scope: 'openid phone' }) })
  expect(tokens.scope).toBe('openid')
  expect(userinfo).not.toHaveProperty('phone_number')
})
