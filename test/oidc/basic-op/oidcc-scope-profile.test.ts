import { expect, test } from 'vitest'
import { metadata, newPerson, newRequest, signIn } from './support.ts'

test('the scope profile gives the claims of a profile that a wallet has', async () => {
  expect(metadata.scopes_supported).toContain('profile')
  const person = newPerson()
  const { tokens, userinfo } = await signIn({ person, request: newRequest({ scope: 'openid profile' }) })
  const name = person.wallet.address.replaceAll(' ', '')
  expect(tokens.scope).toBe('openid profile')
  expect(userinfo).toMatchObject({ name, preferred_username: name, nickname: name.slice(0, 8) })
})
