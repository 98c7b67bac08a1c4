import { expect, test } from 'vitest'
import { newPerson, newRequest, signIn } from './support.ts'

test('a request may come as a form', async () => {
  const { address, checks } = newRequest()
  const person = newPerson()
  const posted = await person.browser.fetch(address.pathname, { method: 'POST', body: address.searchParams })
  expect(posted.status).toBe(303)
  const next = new URL(posted.headers.get('location') ?? '', address)
  expect((await signIn({ person, request: { address: next, checks } })).shown).toEqual(['sign-in', 'consent'])
})
