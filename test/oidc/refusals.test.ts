import * as client from 'openid-client'
import { expect, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { Browser, connect, contentOf, redirectUri, refusalOf, request, shop, startIssuer } from './support.ts'

/** An issuer, a client with tokens, and the lines of its log. */
async function start() {
  const lines: { level: string; text: string; fields: Record<string, unknown> | undefined }[] = []
  const level = (name: string) => (text: string, fields?: object) => {
    if (text.includes('OpenID Connect')) lines.push({ level: name, text, fields: { ...fields } })
  }
  const logger = { ...silentLogger, debug: level('debug'), info: level('info'), error: level('error') }
  const { url } = await startIssuer([shop], { logger })
  return { url, lines, ...(await connect(url)) }
}

test('a refusal is one line of the log, with client, error, cause and redirect URI, and without a secret', async () => {
  const { url, lines, config, browser, tokens } = await start()
  const { address, redeem } = await request(config)
  const wrong = new URL(address)
  wrong.searchParams.set('redirect_uri', 'https://shop.example/calback?a b')
  const { text } = await browser.open(wrong.href)
  const sent = 'https://shop.example/calback?a%20b'
  expect(contentOf(text)).toMatchObject({ kind: 'error', error: 'invalid_redirect_uri', sent })

  const answer = (await browser.open(address)).address
  await redeem(answer)
  expect(await refusalOf(redeem(answer))).toBe('invalid_grant')
  const secret = 'a-secret-that-is-not-the-one-of-the-shop'
  const token = (input: Record<string, string>) =>
    fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body: new URLSearchParams(input) })
  const refresh_token = String(tokens.refresh_token)
  await token({ grant_type: 'refresh_token', client_id: 'shop', client_secret: secret, refresh_token })
  await browser.open((await request(config, { prompt: 'none', max_age: '0' })).address)

  const at = (path: string) => ({ path: `/api/auth/oidc/${path}`, ip: expect.any(String) })
  const line = (level: string, fields: object) => ({
    level,
    text: 'the OpenID Connect issuer refused a request',
    fields: expect.objectContaining(fields),
  })
  expect(lines).toEqual([
    line('info', { ...at('authorize'), error: 'invalid_redirect_uri', clientId: 'shop', redirectUri: sent }),
    line('info', { ...at('token'), error: 'invalid_grant', clientId: 'shop', redirectUri, cause: expect.any(String) }),
    line('info', { ...at('token'), error: 'invalid_client', clientId: 'shop' }),
    line('debug', { ...at('authorize'), error: 'login_required', clientId: 'shop', redirectUri }),
  ])
  const written = JSON.stringify(lines)
  for (const hidden of [secret, shop.metadata.client_secret, refresh_token, String(answer.searchParams.get('code'))]) {
    expect(written).not.toContain(hidden)
  }
})

test('many refusals of one address and error at once are few lines, which have their number', async () => {
  const { url, lines } = await start()
  const open = (id: number) => new Browser(url).open(`/api/auth/oidc/authorize?client_id=unknown-${id}`)
  await Promise.all(Array.from({ length: 30 }, (_, id) => open(id)))
  const counted = () => lines.reduce((sum, { fields }) => sum + Number(fields?.repeated ?? 1), 0)
  await expect.poll(counted, { timeout: 15_000 }).toBe(30)
  expect(lines.length).toBeLessThan(30)
  expect(lines[0]?.fields).toMatchObject({ error: 'invalid_client', clientId: expect.stringMatching(/^unknown-/) })
})

test('a revocation is answered with an empty object, whether there was a token or not: clients differ in what else they take', async () => {
  const { config, tokens } = await start()
  const revoked: unknown[] = []
  config[client.customFetch] = async (address, init) => {
    const response = await fetch(address, init as RequestInit)
    revoked.push([response.status, response.headers.get('content-type'), await response.clone().text()])
    return response
  }
  await client.tokenRevocation(config, tokens.access_token)
  await client.tokenRevocation(config, 'unknown')
  expect(revoked).toEqual(Array(2).fill([200, expect.stringMatching(/^application\/json\b/), '{}']))
})
