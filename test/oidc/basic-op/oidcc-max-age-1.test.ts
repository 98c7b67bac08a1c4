import { expect, test } from 'vitest'
import { newPerson, newRequest, signIn, wait } from './support.ts'

test('max_age=1 asks for another sign-in after two seconds, and the ID token tells when that was', async () => {
  const person = newPerson()
  const before = await signIn({ person })
  wait(2)
  const after = await signIn({ person, request: newRequest({ max_age: '1' }) })
  expect(after.shown).toContain('sign-in')
  expect(Number(after.claims.auth_time)).toBeGreaterThan(Number(before.claims.auth_time))
  expect(after.claims.auth_time).toBeGreaterThanOrEqual(Math.floor(Date.now() / 1000) - 1)
})
