import { expect, test } from 'vitest'
import { answer, errorOf, metadata, newPerson, newRequest } from './support.ts'

test('a request by reference is refused as not supported, and nothing is fetched', async () => {
  expect(metadata.request_uri_parameter_supported).toBe(false)
  const request = newRequest({ request_uri: 'https://shop.example/request.jwt' })
  expect(errorOf((await answer(request.address, newPerson())).answer, request)).toBe('request_uri_not_supported')
})
