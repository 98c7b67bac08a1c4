import { expect, test } from 'vitest'
import { newPerson, newRequest, signIn } from './support.ts'

test('max_age=10000 shows nothing in a new session, and the ID token tells when the sign-in was', async () => {
  const person = newPerson()
  const { claims: before } = await signIn({ person, request: newRequest({ max_age: '15000' }) })
  const { claims, shown } = await signIn({ person, request: newRequest({ max_age: '10000' }) })
  expect(before.auth_time).toEqual(expect.any(Number))
  expect(claims).toMatchObject({ sub: before.sub, auth_time: before.auth_time })
  expect(shown).toEqual([])
})
