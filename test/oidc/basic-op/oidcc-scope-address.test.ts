import { expect, test } from 'vitest'
import { metadata, newRequest, signIn } from './support.ts'

test('the scope address is not offered, and a request with it gets the others', async () => {
  expect(metadata.scopes_supported).not.toContain('address')
  const { tokens, userinfo } = await signIn({ request: newRequest({ scope: 'openid address' }) })
  expect(tokens.scope).toBe('openid')
  expect(userinfo).not.toHaveProperty('address')
})
