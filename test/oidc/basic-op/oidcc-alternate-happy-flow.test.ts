import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

// Formerly oidcc-ensure-other-scope-order-succeeds.
test('the order of scopes and of parameters does not matter', async () => {
  const { address, checks } = newRequest({ scope: 'email openid' })
  address.search = String(new URLSearchParams([...address.searchParams].reverse()))
  const { userinfo } = await signIn({ request: { address, checks } })
  expect(userinfo).toMatchObject({ email: expect.any(String) })
})
