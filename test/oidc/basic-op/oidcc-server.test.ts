import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { metadata, signIn, url } from './support.ts'

test('signs a user in with code, ID token and access token, and says no more than was asked for', async () => {
  const { answer, tokens, claims, shown } = await signIn()
  expect(shown).toEqual(['sign-in', 'consent'])
  expect(answer.searchParams.get('iss')).toBe(url)
  expect(answer.searchParams.get('code')).toMatch(/^[\w-]{43,}$/)
  expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 900 })
  const half = hash('sha256', tokens.access_token, 'buffer').subarray(0, 16).toString('base64url')
  expect(claims.at_hash ?? half).toBe(half)
  expect(Object.keys(claims).sort()).toEqual(
    ['amr', 'at_hash', 'aud', 'auth_time', 'exp', 'iat', 'iss', 'nonce', 'sub'].filter((name) => name in claims),
  )
})

test('publishes keys, each with an id of its own and none with a private part', async () => {
  const { keys } = await (await fetch(String(metadata.jwks_uri))).json()
  const kids = keys.map(({ kid }: { kid: string }) => kid)
  expect(new Set(kids).size).toBe(keys.length)
  for (const key of keys) expect(key).not.toHaveProperty('d')
})
