import { UnsecuredJWT } from 'jose'
import { expect, test } from 'vitest'
import { answer, errorOf, metadata, newPerson, newRequest } from './support.ts'

test('a request object is refused as not supported', async () => {
  expect(metadata.request_parameter_supported ?? false).toBe(false)
  const request = newRequest()
  const object = new UnsecuredJWT(Object.fromEntries(request.address.searchParams)).encode()
  request.address.searchParams.set('request', object)
  expect(errorOf((await answer(request.address, newPerson())).answer, request)).toBe('request_not_supported')
})
