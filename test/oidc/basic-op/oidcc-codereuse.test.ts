import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { refusalOf } from '../support.ts'
import { firstClient, newRequest, signIn } from './support.ts'

test('a code is good once', async () => {
  const request = newRequest()
  const { answer } = await signIn({ request })
  const again = client.authorizationCodeGrant(firstClient, answer, request.checks)
  expect(await refusalOf(again)).toBe('invalid_grant')
})
