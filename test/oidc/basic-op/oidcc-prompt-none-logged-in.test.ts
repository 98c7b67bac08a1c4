import { expect, test } from 'vitest'
import { newPerson, newRequest, signIn } from './support.ts'

test('prompt=none in a session gives the same user and the time of the same sign-in, and shows nothing', async () => {
  const person = newPerson()
  const { claims: before } = await signIn({ person })
  const { claims, shown } = await signIn({ person, request: newRequest({ prompt: 'none' }) })
  expect(claims).toMatchObject({ sub: before.sub, auth_time: before.auth_time })
  expect(shown).toEqual([])
})
