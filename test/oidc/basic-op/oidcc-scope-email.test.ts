import { expect, test } from 'vitest'
import { metadata, newRequest, signIn } from './support.ts'

test('the scope email gives the address and whether it is verified, and no name', async () => {
  expect(metadata.scopes_supported).toContain('email')
  const { claims, userinfo } = await signIn({ request: newRequest({ scope: 'openid email' }) })
  const email = { email: `${claims.sub}@users.example`, email_verified: false }
  expect(userinfo).toMatchObject(email)
  expect(userinfo).not.toHaveProperty('name')
  // The suite warns of it. Applications that read no userinfo need it.
  expect(claims).toMatchObject(email)
})
