import { expect, test } from 'vitest'
import { answer, errorOf, newPerson, newRequest } from './support.ts'

test('a request without a response type is an error that the client gets', async () => {
  const request = newRequest()
  request.address.searchParams.delete('response_type')
  expect(errorOf((await answer(request.address, newPerson())).answer, request)).toBe('invalid_request')
})
