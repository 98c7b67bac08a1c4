import * as client from 'openid-client'
import { expect, onTestFinished, test } from 'vitest'
import { refusalOf } from '../support.ts'
import { firstClient, metadata, newRequest, secondClient, signIn, wait } from './support.ts'

const parameters = { scope: 'openid offline_access', prompt: 'consent' }

test('a refresh token gives new tokens of the same sign-in, to its own client alone', async () => {
  expect(metadata.grant_types_supported).toContain('refresh_token')
  const { tokens, claims } = await signIn({ request: newRequest(parameters) })
  const request = newRequest(parameters, secondClient)
  const { tokens: others } = await signIn({ config: secondClient, request })
  wait(1)
  const answers: Response[] = []
  firstClient[client.customFetch] = async (address, init) => {
    const answer = await fetch(address, init as RequestInit)
    answers.push(answer)
    return answer
  }
  onTestFinished(() => {
    firstClient[client.customFetch] = (address, init) => fetch(address, init as RequestInit)
  })
  const next = await client.refreshTokenGrant(firstClient, tokens.refresh_token ?? '', { scope: parameters.scope })
  expect(answers[0]?.headers.get('cache-control')).toBe('no-store')
  expect(answers[0]?.headers.get('content-type')).toMatch(/^application\/json\b/)
  expect(next).toMatchObject({ token_type: 'bearer', expires_in: 900 })
  expect(next.access_token).not.toBe(tokens.access_token)
  expect(next.refresh_token).toMatch(/^[\w-]{43,}$/)
  const { iss, sub, aud, auth_time } = claims
  expect(next.claims()).toMatchObject({ iss, sub, aud, auth_time })
  expect(next.claims()?.iat).toBeGreaterThan(claims.iat)
  expect(await client.fetchUserInfo(firstClient, next.access_token, sub)).toMatchObject({ sub })

  const foreign = client.refreshTokenGrant(firstClient, others.refresh_token ?? '')
  expect(await refusalOf(foreign)).toBe('invalid_grant')
  const own = await client.refreshTokenGrant(secondClient, others.refresh_token ?? '')
  expect(own.claims()?.aud).toBe('second')
})
