import { expect, test } from 'vitest'
import { newPerson, newRequest, signIn } from './support.ts'

test('a hint that is no user of the issuer changes nothing for a user who signs in', async () => {
  const person = newPerson()
  const login_hint = 'buffy@localhost'
  const { claims } = await signIn({ person, request: newRequest({ login_hint }) })
  // In a session of another user the sign-in page asks once, and takes any wallet.
  const again = await signIn({ person, request: newRequest({ login_hint }) })
  expect(again.shown).toEqual(['sign-in'])
  expect(again.claims.sub).toBe(claims.sub)
})
