import { expect, test } from 'vitest'
import { newPerson, newRequest, signIn, wait } from './support.ts'

test('prompt=login asks for another sign-in, which the ID token tells', async () => {
  const person = newPerson()
  const before = await signIn({ person })
  wait(1)
  const after = await signIn({ person, request: newRequest({ prompt: 'login' }) })
  expect(after.shown).toContain('sign-in')
  expect(after.claims.sub).toBe(before.claims.sub)
  expect(Number(after.claims.auth_time)).toBeGreaterThan(Number(before.claims.auth_time))
})
