import { createServer } from 'node:http'
import express from 'express'
import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { mountService } from '../support/mounted.ts'
import { Browser, clientsFile, connect, discover, redirectUri, request, shop } from './support.ts'

/** An application with the issuer in it, whose requests a body parser has read before. */
async function mountBehind(...parsers: express.RequestHandler[]): Promise<string> {
  const { url } = await mountService(
    (service) => createServer(express().use(...parsers, (...args) => service().handler(...args))),
    { oidc: { clients: clientsFile(shop) } },
  )
  return url
}

describe.each([
  ['express.json() and express.urlencoded()', [express.json(), express.urlencoded()]],
  ['express.urlencoded({ extended: true })', [express.json(), express.urlencoded({ extended: true })]],
  ['express.text() for everything', [express.text({ type: () => true })]],
  ['express.raw() for everything', [express.raw({ type: () => true })]],
])('behind %s', (_, parsers) => {
  test('a client gets its tokens, refreshes, looks them up and revokes them', async () => {
    const { config, tokens, session } = await connect(await mountBehind(...parsers))
    const { access_token, refresh_token } = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(await client.fetchUserInfo(config, access_token, session.userId)).toMatchObject({ sub: session.userId })
    expect(await client.tokenIntrospection(config, access_token)).toMatchObject({ active: true })
    await client.tokenRevocation(config, refresh_token ?? '')
    expect(await client.tokenIntrospection(config, access_token)).toEqual({ active: false })
  })

  test('a request that comes as a form of another site goes on as a navigation, with all its values', async () => {
    const url = await mountBehind(...parsers)
    const { address } = await request(await discover(url), { ui_locales: 'de en', state: 'a+b&c=d ü' })
    const { origin, pathname, searchParams } = new URL(address)
    const answer = await new Browser(url).fetch(origin + pathname, { method: 'POST', body: searchParams })
    expect(answer.status).toBe(303)
    expect(new URL(answer.headers.get('location') ?? '').searchParams.toString()).toBe(searchParams.toString())
  })

  test('a parameter that comes twice is refused, as it is without a parser', async () => {
    const { config } = await connect(await mountBehind(...parsers))
    const { client_id, client_secret } = shop.metadata
    const body = new URLSearchParams({ client_id, client_secret, grant_type: 'refresh_token' })
    for (const token of ['one', 'two']) body.append('refresh_token', token)
    const answer = await fetch(config.serverMetadata().token_endpoint ?? '', { method: 'POST', body })
    expect([answer.status, await answer.json()]).toMatchObject([400, { error: 'invalid_request' }])
  })
})

test('a form that a parser has nested says what to change, and names no value', async () => {
  const url = await mountBehind(express.urlencoded({ extended: true }))
  const body = new URLSearchParams({ 'client_secret[a]': 'hidden', redirect_uri: redirectUri })
  const answer = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })
  expect([answer.status, await answer.json()]).toEqual([
    400,
    { code: 'INVALID_REQUEST', message: 'Send a form whose parameters have plain names, without brackets' },
  ])
})
