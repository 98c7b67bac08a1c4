import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as client from 'openid-client'
import { expect, onTestFinished, test } from 'vitest'
import { hasPart, systemPython } from '../support/optional.ts'
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

test.skipIf(!hasPart('python3-authlib'))('Authlib signs a terminal in, and refreshes with rotation', async () => {
  const { url } = await startDevices()
  const file = fileURLToPath(new URL('device-terminal.py', import.meta.url))
  const env = { ...process.env, AUTHLIB_INSECURE_TRANSPORT: '1' }
  const child = spawn(systemPython, [file, url], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill())
  const errors = text(child.stderr)
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const { value: userCode } = await lines.next()
  if (userCode === undefined) throw new Error(await errors)
  const { session } = await allowCode(url, userCode)
  const { value: answer } = await lines.next()
  if (answer === undefined) throw new Error(await errors)
  expect(JSON.parse(answer)).toEqual({ sub: session.userId, isRotated: true })
  if (child.exitCode === null) await once(child, 'close')
})
