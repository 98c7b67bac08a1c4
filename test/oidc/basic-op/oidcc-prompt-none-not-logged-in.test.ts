import { expect, test } from 'vitest'
import { answer, errorOf, newPerson, newRequest } from './support.ts'

test('prompt=none without a session is an error that the client gets, with the whole of a long state', async () => {
  const request = newRequest({ prompt: 'none', state: 'x7'.repeat(64) })
  const answered = await answer(request.address, newPerson())
  expect(errorOf(answered.answer, request)).toBe('login_required')
  expect(answered.shown).toEqual([])
})
