import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose'
import * as client from 'openid-client'
import { describe, expect, test } from 'vitest'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { allowCode, askCode, deviceGrant, poll, startDevices, terminal } from './devices.ts'
import {
  connect,
  decide,
  fileWith,
  pass,
  postForm,
  redirectUri,
  refusalOf,
  request,
  shop,
  signedIn,
} from './support.ts'

const orders = { resource: 'https://orders.example', scopes: ['orders:read'] }
const other = { resource: 'https://other.example', scopes: ['orders:read'] }
const forOrders = { scope: 'openid orders:read', resource: orders.resource }

describe('a request that is refused uses nothing up, so that the right one may follow', () => {
  const start = async () =>
    await startService({ oidc: { clients: fileWith({ clients: [shop], resources: [orders, other] }) } })

  /** A code of a signed-in user, and what redeems it with further parameters. */
  async function codeFor(url: string, parameters: Record<string, string> = {}) {
    const { config, browser, tokens } = await connect(url, forOrders)
    const verifier = client.randomPKCECodeVerifier()
    const code_challenge = await client.calculatePKCECodeChallenge(verifier)
    const { address } = await request(config, { ...forOrders, ...parameters, code_challenge })
    const code = (await browser.open(address)).address.searchParams.get('code') ?? ''
    const redeem = async (changes: Record<string, string> = {}, options?: client.DPoPOptions) => {
      const sent = { code, redirect_uri: redirectUri, code_verifier: verifier, ...changes }
      return await client.genericGrantRequest(config, 'authorization_code', sent, options)
    }
    return { config, redeem, earlier: tokens.refresh_token ?? '' }
  }

  test.each([
    ['another resource of the issuer', { resource: other.resource }, 'invalid_target'],
    ['an unknown resource', { resource: 'https://unknown.example' }, 'invalid_target'],
    ['another verifier', { code_verifier: 'x'.repeat(43) }, 'invalid_grant'],
    ['another redirect URI', { redirect_uri: `${redirectUri}/` }, 'invalid_grant'],
  ])('a code with %s', async (_name, changes, error) => {
    const { url } = await start()
    const { config, redeem, earlier } = await codeFor(url)
    expect(await refusalOf(redeem(changes))).toBe(error)
    expect((await redeem()).access_token).toBeDefined()
    expect((await client.refreshTokenGrant(config, earlier)).access_token).toBeDefined()
  })

  test('a code that is bound to a key, with another key or none', async () => {
    const { url } = await start()
    const [own, foreign] = [await client.randomDPoPKeyPair(), await client.randomDPoPKeyPair()]
    const { config, redeem } = await codeFor(url, {
      dpop_jkt: await calculateJwkThumbprint(await exportJWK(own.publicKey)),
    })
    const by = (pair: client.CryptoKeyPair) => ({ DPoP: client.getDPoPHandle(config, pair) })
    expect(await refusalOf(redeem({}, by(foreign)))).toBe('invalid_grant')
    expect(await refusalOf(redeem())).toBe('invalid_grant')
    expect((await redeem({}, by(own))).token_type).toBe('dpop')
  })

  test('a code of a user who is in none of the groups for a moment', async () => {
    const wallet = makeWallet()
    const people = (groups: readonly string[]) => ({ [`nimiq:${wallet.address}`]: { groups } })
    const file = fileWith(people(['staff']))
    const clients = fileWith({ clients: [{ ...shop, groups: ['staff'] }] })
    const { url, service } = await startService({ people: file, oidc: { clients } })
    const { browser, config } = await signedIn(url, wallet)
    const { address, redeem } = await request(config)
    const answer = await decide(browser, await browser.open(address))
    const put = async (groups: readonly string[]) => {
      writeFileSync(file, JSON.stringify(people(groups)))
      await service.reload()
    }
    await put(['guests'])
    expect(await refusalOf(redeem(answer))).toBe('access_denied')
    await put(['staff'])
    expect((await redeem(answer)).access_token).toBeDefined()
  })

  test('a refresh token with a resource that it is not for', async () => {
    const { url } = await start()
    const { config, tokens } = await connect(url, forOrders)
    const refresh = tokens.refresh_token ?? ''
    for (const resource of [other.resource, 'https://unknown.example', 'x']) {
      expect(await refusalOf(client.refreshTokenGrant(config, refresh, { resource }))).toBe('invalid_target')
    }
    const next = await client.refreshTokenGrant(config, refresh, { resource: orders.resource })
    expect(next.scope).toBe('orders:read')
  })

  test('a refresh token that is for two resources, without saying which one', async () => {
    const { url } = await start()
    const { config, browser } = await connect(url, forOrders)
    const { address, redeem } = await request(config, forOrders)
    const both = await decide(browser, await browser.open(`${address}&resource=${encodeURIComponent(other.resource)}`))
    expect(await refusalOf(redeem(both))).toBe('invalid_target')
    // It would be invalid_grant for a code that was used.
    expect(await refusalOf(redeem(both))).toBe('invalid_target')
  })

  test('a code of a device with a resource that it is not for', async () => {
    const clients = fileWith({ clients: [terminal], resources: [orders, other] })
    const { url } = await startDevices({ oidc: { clients } })
    const { userCode, deviceCode } = await askCode(url, forOrders)
    await allowCode(url, userCode)
    const form = { grant_type: deviceGrant, device_code: deviceCode, client_id: 'tulip-cli' }
    const wrong = await postForm(url, 'token', { ...form, resource: other.resource })
    expect([wrong.status, wrong.json.error]).toEqual([400, 'invalid_target'])
    pass(5)
    expect((await poll(url, deviceCode)).json.scope).toBe('orders:read')
  })
})

test('a code is used up by a proof that was sent before, which the library sees last', async () => {
  const { url } = await startService({ oidc: { clients: fileWith({ clients: [shop] }) } })
  const { config, browser } = await connect(url, { scope: 'openid' })
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  const makeProof = async () =>
    await new SignJWT({ htm: 'POST', htu: `${url}/api/auth/oidc/token`, jti: randomUUID() })
      .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk })
      .setIssuedAt()
      .sign(privateKey)
  const newCode = async () => {
    const code_verifier = client.randomPKCECodeVerifier()
    const code_challenge = await client.calculatePKCECodeChallenge(code_verifier)
    const { address } = await request(config, { scope: 'openid', code_challenge })
    const code = (await browser.open(address)).address.searchParams.get('code') ?? ''
    return { grant_type: 'authorization_code', redirect_uri: redirectUri, code, code_verifier }
  }
  const redeem = async (form: Record<string, string>, DPoP: string) => {
    const { client_id, client_secret } = shop.metadata
    const authorization = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`
    const init = { method: 'POST', headers: { authorization, DPoP }, body: new URLSearchParams(form) }
    const { token_type, error } = await (await fetch(`${url}/api/auth/oidc/token`, init)).json()
    return token_type ?? error
  }
  const proof = await makeProof()
  expect(await redeem(await newCode(), proof)).toBe('DPoP')
  const second = await newCode()
  expect(await redeem(second, proof)).toBe('invalid_grant')
  expect(await redeem(second, await makeProof())).toBe('invalid_grant')
})
