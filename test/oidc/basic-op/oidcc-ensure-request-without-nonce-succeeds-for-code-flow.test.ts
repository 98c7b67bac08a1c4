import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

test('a request without a nonce gets an ID token without one', async () => {
  const { address, checks } = newRequest()
  address.searchParams.delete('nonce')
  const request = { address, checks: { expectedState: checks.expectedState as string } }
  expect((await signIn({ request })).claims).not.toHaveProperty('nonce')
})
