import { expect, test } from 'vitest'
import { metadata, newRequest, signIn } from './support.ts'

test('classes of sign-ins, of which there are none, are no error', async () => {
  expect(metadata).not.toHaveProperty('acr_values_supported')
  // The suite warns of it.
  expect((await signIn({ request: newRequest({ acr_values: '1 2' }) })).claims).not.toHaveProperty('acr')
})
