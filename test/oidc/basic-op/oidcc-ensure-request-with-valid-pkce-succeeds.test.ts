import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { newRequest, signIn } from './support.ts'

test('a client may use PKCE, also if it need not', async () => {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const code_challenge = await client.calculatePKCECodeChallenge(pkceCodeVerifier)
  const { address, checks } = newRequest({ code_challenge, code_challenge_method: 'S256' })
  const { claims } = await signIn({ request: { address, checks: { ...checks, pkceCodeVerifier } } })
  expect(claims.aud).toBe('first')
})
