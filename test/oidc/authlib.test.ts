import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hasPart, systemPython } from '../support/optional.ts'
import { Browser, decide, redirectUri, shop, startIssuer } from './support.ts'

/** The application: writes an address, waits for the answer to it, and writes what it got as JSON. */
async function startApplication(url: string) {
  const { client_id, client_secret } = shop.metadata
  const file = fileURLToPath(new URL('authlib-client.py', import.meta.url))
  const child = spawn(systemPython, [file, url, client_id, client_secret, redirectUri], {
    env: { ...process.env, AUTHLIB_INSECURE_TRANSPORT: '1' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  onTestFinished(() => void child.kill())
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  const lines = on(createInterface(child.stdout), 'line', { close: ['close'] })
  const readLine = async (): Promise<string> => {
    const { value, done } = await lines.next()
    if (done !== true) return value[0]
    await closed
    throw new Error(errors)
  }
  return { readLine, write: (line: string) => void child.stdin.write(`${line}\n`) }
}

describe.skipIf(!hasPart('python3-authlib'))('Authlib', () => {
  test('signs a user in with PKCE and nonce, checks the ID token, refreshes with rotation, looks up and revokes', async () => {
    const { url } = await startIssuer()
    const [browser, application] = [new Browser(url), await startApplication(url)]
    const { session, wallet } = await browser.signIn()
    const answer = await decide(browser, await browser.open(await application.readLine()))
    application.write(answer.href)
    const name = wallet.address.replaceAll(' ', '')
    expect(JSON.parse(await application.readLine())).toMatchObject({
      claims: { iss: url, aud: 'shop', sub: session.userId, name, amr: ['swk'] },
      userinfo: { sub: session.userId, name },
      isRotated: true,
      introspected: { active: true, client_id: 'shop', sub: session.userId, scope: 'openid profile' },
      revoked: { active: false },
      refused: 'invalid_grant',
    })
  })
})
