import { UnsecuredJWT } from 'jose'
import { expect, test } from 'vitest'
import { contentOf, redirectUri } from '../support.ts'
import { newPerson, newRequest, url } from './support.ts'

test('a registered address in a request object does not make up for another outside it', async () => {
  const { address } = newRequest()
  const object = new UnsecuredJWT(Object.fromEntries(address.searchParams)).encode()
  address.searchParams.set('request', object)
  address.searchParams.set('redirect_uri', `${redirectUri}/x7`)
  const opened = await newPerson().browser.open(address.href)
  expect(opened.address.origin).toBe(url)
  expect(contentOf(opened.text)).toMatchObject({ kind: 'error', error: 'invalid_redirect_uri' })
})
