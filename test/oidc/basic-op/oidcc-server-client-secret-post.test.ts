import { expect, test } from 'vitest'
import { metadata, newRequest, postClient, signIn } from './support.ts'

test('a client may send its secret in the form', async () => {
  expect(metadata.token_endpoint_auth_methods_supported).toContain('client_secret_post')
  const { claims } = await signIn({ config: postClient, request: newRequest({}, postClient) })
  expect(claims.aud).toBe('post')
})
