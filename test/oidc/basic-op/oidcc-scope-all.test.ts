import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

test('a request for all standard scopes gets those that there are', async () => {
  const request = newRequest({ scope: 'openid email phone address profile' })
  const { tokens, userinfo } = await signIn({ request })
  expect(tokens.scope).toBe('openid email profile')
  expect(userinfo).toMatchObject({ name: expect.any(String), email: expect.any(String) })
})
