import { expect, test } from 'vitest'
import { contentOf, redirectUri } from '../support.ts'
import { newPerson, newRequest, url } from './support.ts'

test('an address that is not registered gets no answer: the user sees an error here', async () => {
  const { address } = newRequest({ redirect_uri: `${redirectUri}/x7` })
  const opened = await newPerson().browser.open(address.href)
  expect(opened.address.origin).toBe(url)
  expect(opened.response.status).toBe(400)
  expect(contentOf(opened.text)).toMatchObject({ kind: 'error', error: 'invalid_redirect_uri' })
})
