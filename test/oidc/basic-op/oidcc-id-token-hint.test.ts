import { expect, test } from 'vitest'
import { answer, errorOf, newPerson, newRequest, signIn } from './support.ts'

const hinted = (hint: string | undefined) => newRequest({ prompt: 'none', id_token_hint: hint ?? '' })

test('an ID token as a hint gives the same user, and shows nothing', async () => {
  const person = newPerson()
  const { tokens, claims: before } = await signIn({ person })
  const { claims, shown } = await signIn({ person, request: hinted(tokens.id_token) })
  expect(claims).toMatchObject({ sub: before.sub, auth_time: before.auth_time })
  expect(shown).toEqual([])
})

test('an ID token of another user as a hint gives no one', async () => {
  const person = newPerson()
  await signIn({ person })
  const request = hinted((await signIn()).tokens.id_token)
  expect(errorOf((await answer(request.address, person)).answer, request)).toBe('login_required')
})
