import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { refusalOf } from '../support.ts'
import { firstClient, newRequest, signIn, wait } from './support.ts'

test('a code that comes again 30 seconds later ends the access token that it gave', async () => {
  const request = newRequest()
  const { answer, tokens, claims } = await signIn({ request })
  wait(30)
  const again = client.authorizationCodeGrant(firstClient, answer, request.checks)
  expect(await refusalOf(again)).toBe('invalid_grant')
  expect(await refusalOf(client.fetchUserInfo(firstClient, tokens.access_token, claims.sub))).toBe(401)
})
