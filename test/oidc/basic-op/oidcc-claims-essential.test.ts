import { expect, test } from 'vitest'
import { metadata, newRequest, signIn } from './support.ts'

test('claims that are asked for one by one are no error, and come with their scope only', async () => {
  expect(metadata.claims_parameter_supported).toBe(false)
  const claims = JSON.stringify({ userinfo: { name: { essential: true } } })
  const { userinfo } = await signIn({ request: newRequest({ claims }) })
  // The suite warns of it.
  expect(userinfo).not.toHaveProperty('name')
})
