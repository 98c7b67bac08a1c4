import { readFile, writeFile } from 'node:fs/promises'
import { compactVerify, createLocalJWKSet } from 'jose'
import * as client from 'openid-client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Keyring } from '../../src/base/token.ts'
import { rotationKey } from '../../src/oidc/commands.ts'
import { publicKeys, signingKeys } from '../../src/oidc/keys.ts'
import { SealedRecords } from '../../src/oidc/sealed-records.ts'
import { decoded } from '../integrations/backend/forge.ts'
import { memoryStore } from '../support/memory-store.ts'
import { hasPart } from '../support/optional.ts'
import { trustedAuthority } from '../support/tls.ts'
import { connect, fileWith, startIssuer } from './support.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())
const pass = (seconds: number) => void vi.setSystemTime(Date.now() + seconds * 1000)

async function open() {
  const store = await memoryStore()
  const kidsUnder = async (secret: string) => {
    const keyring = new Keyring([secret])
    const keys = await signingKeys({ records: new SealedRecords(store, keyring), keyring, store }, 1_800_000)
    return keys.filter(({ kty }) => kty === 'RSA').map(({ kid }) => kid)
  }
  const kids = () => kidsUnder('a secret for tests of the keys, long enough')
  return { store, kids, kidsUnder }
}

test('a new RSA key is published for half an hour before it signs, and the old one for as long afterwards', async () => {
  const { store, kids } = await open()
  const [first] = await kids()
  await store.create(rotationKey, 'wanted', 'forever')
  // Of instances that look at once, one makes it.
  const looks = await Promise.all([kids(), kids(), kids()])
  const published = await kids()
  const [, second] = published
  expect([published, ...looks].every((each) => each[0] === first)).toBe(true)
  expect([published.length, second]).toEqual([2, expect.any(String)])
  // Asked again meanwhile, it stays at one.
  await store.create(rotationKey, 'wanted', 'forever')
  expect(await kids()).toEqual([first, second])
  expect(await store.get(rotationKey)).toBeUndefined()
  pass(1_799)
  expect(await kids()).toEqual([first, second])
  pass(2)
  expect(await kids()).toEqual([second, first])
  pass(1_797)
  expect(await kids()).toEqual([second, first])
  pass(3)
  expect(await kids()).toEqual([second])
})

test('a key that no secret opens stops the start, until an operator asks for another, which signs at once', async () => {
  const { store, kids, kidsUnder } = await open()
  const [first] = await kids()
  const later = () => kidsUnder('the secret after a leak of the other one')
  await expect(later()).rejects.toThrow(/^[^\n]*run countersign admin oidc rotate-key[^\n]*$/)
  expect(await kids()).toEqual([first])
  await store.create(rotationKey, 'wanted', 'forever')
  const [second] = await later()
  expect(second).not.toBe(first)
  expect(await later()).toEqual([second])
  expect(await store.get(rotationKey)).toBeUndefined()
})

test('a reload with secrets that open no stored key is refused, and the secrets before stay in force', async () => {
  const { url, service } = await startIssuer(undefined, { secret: 'the secret of the start, long enough' })
  const { config, tokens } = await connect(url)
  const reload = service.reload({ secret: ['another secret, which opens no key'] })
  await expect(reload).rejects.toThrow(/^the RSA key [^\n]*COUNTERSIGN_SECRET[^\n]*$/)
  expect((await client.refreshTokenGrant(config, tokens.refresh_token ?? '')).access_token).toBeDefined()
})

test.skipIf(!hasPart('openssl'))(
  'a reload that fails by the certificate leaves the key under the secret before',
  async () => {
    const { store, kidsUnder } = await open()
    const secret = 'the secret of the start and long enough'
    const { cert, key: issued } = await (await trustedAuthority()).issue('localhost', 2)
    const key = fileWith(await readFile(issued, 'utf8'))
    const { service } = await startIssuer(undefined, { store, secret, tls: { cert, key } })
    const kids = await kidsUnder(secret)
    await writeFile(key, 'no key')
    await expect(service.reload({ secret: ['the next secret, which is long enough', secret] })).rejects.toThrow(
      /COUNTERSIGN_TLS_/,
    )
    expect(await kidsUnder(secret)).toEqual(kids)
  },
)

test('while the key is rotated over two instances, no refresh fails and each ID token verifies by the keys of its moment', async () => {
  const store = await memoryStore()
  const secret = 'one secret for both of the instances'
  const { url, service } = await startIssuer(undefined, { store, secret })
  const second = await startIssuer(undefined, { store, secret, publicUrl: url })
  const { tokens, config } = await connect(url)
  let refreshToken = tokens.refresh_token ?? ''
  const kids = new Set<string>()
  const refresh = async (target: string) => {
    config[client.customFetch] = (address, init) => fetch(address.replace(url, target), init as RequestInit)
    const next = await client.refreshTokenGrant(config, refreshToken)
    refreshToken = next.refresh_token ?? ''
    const keySet = await (await fetch(`${target}/.well-known/jwks.json`)).json()
    await compactVerify(next.id_token ?? '', createLocalJWKSet(keySet))
    kids.add(decoded(next.id_token ?? '').header.kid)
  }
  const both = async () => {
    for (const target of [url, second.url]) await refresh(target)
  }
  await both()
  await store.create(rotationKey, 'wanted', 'forever')
  const look = async () => {
    for (const each of [service, second.service]) {
      await each.reload()
      await both()
    }
  }
  // Each looks once a minute: the second publishes the key so much later.
  await service.reload()
  await both()
  pass(60)
  await look()
  // An application can have asked the second just before.
  pass(1_799)
  await look()
  expect(kids.size).toBe(1)
  pass(2)
  await look()
  expect(kids.size).toBe(2)
})

test('the issuer’s own key set has the keys of its tokens, RSA first; that of access tokens has them, too', async () => {
  const { url } = await startIssuer(undefined, { accessTokens: { audiences: ['api'], algorithm: 'EdDSA' } })
  const { tokens, config } = await connect(url)
  const own = String(config.serverMetadata().jwks_uri)
  expect(own).toBe(`${url}/api/auth/oidc/jwks.json`)
  const answer = await fetch(own)
  expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
  const { keys } = await answer.json()
  expect(keys.map(({ kty, alg }: { kty: string; alg: string }) => [kty, alg])).toEqual([
    ['RSA', 'RS256'],
    ['EC', 'ES256'],
  ])
  await compactVerify(tokens.id_token ?? '', createLocalJWKSet({ keys: [keys[0]] }))
  const all = (await (await fetch(`${url}/.well-known/jwks.json`)).json()).keys
  expect(all).toEqual(expect.arrayContaining(keys))
  expect(all.map(({ kty }: { kty: string }) => kty)).toContain('OKP')
})

test('published keys have no private part', async () => {
  const { store } = await open()
  const keyring = new Keyring(['another secret for tests of the keys'])
  const parts = { records: new SealedRecords(store, keyring), keyring, store }
  for (const key of publicKeys(await signingKeys(parts, 1))) {
    expect(Object.keys(key).filter((name) => ['d', 'p', 'q', 'dp', 'dq', 'qi'].includes(name))).toEqual([])
  }
})
