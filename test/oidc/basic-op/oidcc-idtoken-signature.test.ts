import { decodeProtectedHeader } from 'jose'
import { expect, test } from 'vitest'
import { metadata, signIn } from './support.ts'

test('an ID token is signed with RS256 by a key of the key set, if the client names no other algorithm', async () => {
  const { tokens } = await signIn()
  const { alg, kid } = decodeProtectedHeader(tokens.id_token ?? '')
  const { keys } = await (await fetch(String(metadata.jwks_uri))).json()
  expect(alg).toBe('RS256')
  expect(keys).toContainEqual(expect.objectContaining({ kid, alg: 'RS256', use: 'sig' }))
})
