import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { allowCode, discoverDevice, startDevices } from './devices.ts'
import { refusalOf } from './support.ts'

test('openid-client signs a terminal in, and keeps it signed in after the sign-out of the browser', async () => {
  const { url } = await startDevices()
  const config = await discoverDevice(url)
  const asked = await client.initiateDeviceAuthorization(config, { scope: 'openid profile offline_access' })
  const polled = client.pollDeviceAuthorizationGrant(config, asked)
  const { browser, session } = await allowCode(url, asked.user_code)
  const tokens = await polled
  expect(tokens.claims()).toMatchObject({ sub: session.userId, aud: 'tulip-cli' })
  await browser.post('/api/auth/sign-out', {})
  const refreshed = await client.refreshTokenGrant(config, String(tokens.refresh_token))
  expect(await client.fetchUserInfo(config, refreshed.access_token, session.userId)).toMatchObject({
    sub: session.userId,
  })
  await client.tokenRevocation(config, String(refreshed.refresh_token))
  expect(await refusalOf(client.refreshTokenGrant(config, String(refreshed.refresh_token)))).toBe('invalid_grant')
})
