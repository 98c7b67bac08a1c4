import { generateKeyPairSync, sign } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { newToken } from '../../../src/base/token.ts'
import {
  type AccessTokenClaims,
  AccessTokenError,
  type VerifyAccessTokenOptions,
  verifyAccessToken,
} from '../../../src/integrations/backend/index.ts'
import { ed25519, hs256, jwt, keySetOf, makeKey, type TestKey } from './forge.ts'

const [key, otherKey, attacker] = [makeKey(), makeKey(), makeKey()]
const issuer = 'https://auth.example'
const audience = 'https://api.example'
const keys = keySetOf(key, otherKey)

// The clock stands still unless a test moves it.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 }))
afterEach(() => void vi.useRealTimers())

const seconds = (): number => Math.floor(Date.now() / 1000)

function claims(changes: object = {}) {
  return {
    iss: issuer,
    sub: 'u1',
    aud: audience,
    sid: 's1',
    iat: seconds(),
    exp: seconds() + 300,
    jti: 'j1',
    wallet: { adapter_id: 'nimiq', address: 'NQ07', public_key_hex: 'ab' },
    ...changes,
  }
}

const header = (changes: object = {}) => ({ alg: 'EdDSA', typ: 'at+jwt', kid: key.kid, ...changes })

/** A token that is good but for the changes, signed with a key of the set unless another is given. */
function token({
  claims: ofClaims = {},
  header: ofHeader = {},
  by = key,
}: {
  claims?: object
  header?: object
  by?: TestKey
} = {}) {
  return jwt(header(ofHeader), claims(ofClaims), ed25519(by))
}

async function verdict(given: string, options: Partial<VerifyAccessTokenOptions> = {}): Promise<unknown> {
  try {
    await verifyAccessToken(given, { issuer, audience, keys, ...options })
    return 'accepted'
  } catch (thrown) {
    if (thrown instanceof AccessTokenError) return thrown.reason
    throw thrown
  }
}

/** The service's key set behind a `fetch`, and what was asked for. */
function keyServer(first: object = keys) {
  const server = { keySet: first, trouble: undefined as (() => Promise<Response>) | undefined, asked: [] as string[] }
  const fetch: typeof globalThis.fetch = async (input) => {
    server.asked.push(String(input))
    await sleep(1)
    return server.trouble === undefined ? Response.json(server.keySet) : await server.trouble()
  }
  return Object.assign(server, { options: { keys: undefined, fetch } })
}

describe('a good token', () => {
  test('says who is signed in', async () => {
    const found: AccessTokenClaims = await verifyAccessToken(token(), { issuer, audience, keys })
    expect(found).toEqual({
      userId: 'u1',
      sessionId: 's1',
      audience,
      wallet: { adapterId: 'nimiq', address: 'NQ07', publicKeyHex: 'ab' },
      groups: [],
      issuedAt: seconds() * 1000,
      expiresAt: (seconds() + 300) * 1000,
      id: 'j1',
    })
  })

  test('is accepted whichever key of the set signed it, and with what later releases may add', async () => {
    expect(await verdict(token({ by: otherKey, header: { kid: otherKey.kid } }))).toBe('accepted')
    expect(await verdict(token({ claims: { scope: 'all', acr: 'x' } }))).toBe('accepted')
    expect(await verdict(token({ header: { typ: 'application/at+jwt' } }))).toBe('accepted')
    expect(await verdict(token({ claims: { iat: seconds() + 60 } }))).toBe('accepted')
  })

  test('is accepted until five seconds after its expiry, or as long as the option says', async () => {
    const old = (ago: number) => token({ claims: { exp: seconds() - ago } })
    expect(await verdict(old(4))).toBe('accepted')
    expect(await verdict(old(5))).toBe('TOKEN_EXPIRED')
    expect(await verdict(old(0), { clockToleranceSeconds: 0 })).toBe('TOKEN_EXPIRED')
    expect(await verdict(old(-1), { clockToleranceSeconds: 0 })).toBe('accepted')
    expect(await verdict(old(59), { clockToleranceSeconds: 60 })).toBe('accepted')
  })
})

describe('a token under the name that RFC 9864 gives the algorithm', () => {
  const ed25519Keys = { keys: keys.keys.map((each) => ({ ...each, alg: 'Ed25519' })) }
  const both = { keys: [...keys.keys, ...ed25519Keys.keys] }

  test.each<[string, object]>([
    ['the name of RFC 8037', keys],
    ['the name of RFC 9864', ed25519Keys],
    ['each of them', both],
    ['none', { keys: keys.keys.map(({ alg: _, ...rest }) => rest) }],
  ])('is accepted like one under EdDSA if the key set has %s', async (_name, keySet) => {
    const server = keyServer(keySet)
    for (const options of [{ keys: keySet as typeof keys }, server.options]) {
      for (const alg of ['EdDSA', 'Ed25519'])
        expect(await verdict(token({ header: { alg } }), options)).toBe('accepted')
      expect(await verdict(token({ header: { alg: 'Ed25519' }, by: attacker }), options)).toBe('TOKEN_INVALID')
      expect(await verdict(token({ header: { alg: 'Ed448' } }), options)).toBe('TOKEN_INVALID')
    }
    expect(server.asked).toHaveLength(1)
  })
})

describe('a token of an OpenID Connect client', () => {
  const ofClient = (changes: object = {}) =>
    token({ claims: { client_id: 'shop', scope: 'openid orders:read', ...changes } })

  test('says which client it is, and what the user has allowed it', async () => {
    const rules = { issuer, audience, keys, scopes: ['orders:read'] }
    const found = await verifyAccessToken(ofClient({ sid: undefined }), rules)
    expect(found).toMatchObject({ userId: 'u1', clientId: 'shop', scopes: ['openid', 'orders:read'] })
    expect(found.sessionId).toBeUndefined()
    expect(await verifyAccessToken(ofClient(), rules)).toMatchObject({ sessionId: 's1' })
    // One that the user's own session asked for needs none.
    expect(await verifyAccessToken(token(), rules)).not.toHaveProperty('clientId')
  })

  test.each<[string, object, readonly string[] | undefined]>([
    ['if the backend names no scope', {}, undefined],
    ['without one of the scopes', {}, ['orders:read', 'orders:write']],
    ['with a scope that begins with the one', { scope: 'orders:read-none' }, ['orders:read']],
    ['whose scope is no text', { scope: ['orders:read'] }, ['orders:read']],
    ['without a scope', { scope: undefined }, ['orders:read']],
    ['whose client is no text', { client_id: null }, ['orders:read']],
    ['whose session is no text', { sid: 5 }, ['orders:read']],
    ['that is bound to a key, whatever it may do', { cnf: { jkt: 'x' } }, ['orders:read']],
    ['that is bound to a key and is no client’s', { client_id: undefined, cnf: { jkt: 'x' } }, undefined],
  ])('is refused %s', async (_name, changes, scopes) => {
    expect(await verdict(ofClient(changes), { scopes })).toBe('TOKEN_INVALID')
  })
})

test('a token under ES256 is accepted, by a key of that algorithm alone', async () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const es256 = { ...pair.publicKey.export({ format: 'jwk' }), kid: 'p256', alg: 'ES256', use: 'sig' }
  const signed = (changes: object) =>
    jwt(header({ alg: 'ES256', kid: 'p256', ...changes }), claims(), (input) =>
      sign('sha256', input, { key: pair.privateKey, dsaEncoding: 'ieee-p1363' }),
    )
  const both = { keys: [...keys.keys, es256] }
  for (const options of [{ keys: both }, keyServer(both).options]) {
    expect(await verdict(signed({}), options)).toBe('accepted')
    expect(await verdict(token(), options)).toBe('accepted')
    expect(await verdict(signed({ typ: 'JWT' }), options)).toBe('TOKEN_INVALID')
    expect(await verdict(signed({ kid: key.kid }), options)).toBe('TOKEN_INVALID')
    expect(await verdict(signed({ alg: 'EdDSA' }), options)).toBe('TOKEN_INVALID')
  }
})

/** A token whose payload is this JSON text: `JSON.stringify` writes no number beyond those of JavaScript. */
function tokenOfText(change: (json: string) => string): string {
  const [first = ''] = token().split('.')
  const input = `${first}.${Buffer.from(change(JSON.stringify(claims()))).toString('base64url')}`
  return `${input}.${ed25519(key)(Buffer.from(input)).toString('base64url')}`
}

const spki = key.publicKey.export({ format: 'der', type: 'spki' })
const pem = String(key.publicKey.export({ format: 'pem', type: 'spki' }))
const raw = Buffer.from(key.jwk.x, 'base64url')
const unsigned = () => Buffer.alloc(0)
const jku = 'https://attacker.example/jwks.json'

const refused: Readonly<Record<string, () => string>> = {
  'signed with a key that the set does not have': () => token({ by: attacker, header: { kid: attacker.kid } }),
  'signed with another key under the name of one of the set': () => token({ by: attacker }),
  'signed with one key of the set under the name of another': () => token({ by: otherKey }),
  'without a key’s name': () => token({ header: { kid: undefined } }),
  'whose key’s name is no text': () => token({ header: { kid: 5 } }),
  'for another audience': () => token({ claims: { aud: 'https://other.example' } }),
  'for an audience that begins like this one': () => token({ claims: { aud: `${audience}.evil.example` } }),
  'for several audiences, none of them this one': () => token({ claims: { aud: ['a', 'b'] } }),
  'without an audience': () => token({ claims: { aud: undefined } }),
  'of another issuer': () => token({ claims: { iss: 'https://auth.example.evil' } }),
  'without an issuer': () => token({ claims: { iss: undefined } }),
  'of the type JWT': () => token({ header: { typ: 'JWT' } }),
  'of the type of ID tokens and logout tokens': () => token({ header: { typ: 'logout+jwt' } }),
  'without a type': () => token({ header: { typ: undefined } }),
  'without an expiry': () => token({ claims: { exp: undefined } }),
  'whose expiry is no number': () => token({ claims: { exp: '9999999999' } }),
  'that is not good yet': () => token({ claims: { nbf: seconds() + 60 } }),
  'that never expires, because 1e400 is more than a number can be': () =>
    tokenOfText((json) => json.replace(/"exp":\d+/, '"exp":1e400')),
  'that expires when no date is left': () => token({ claims: { exp: 8.64e12 + 1 } }),
  'issued before all dates': () => tokenOfText((json) => json.replace(/"iat":\d+/, '"iat":-1e400')),
  'issued more than a minute ahead': () => token({ claims: { iat: seconds() + 61 } }),
  'with padding behind it': () => `${token()}==`,
  'with one = behind it': () => `${token()}=`,
  'with a line break behind it': () => `${token()}\n`,
  'with a space in front of it': () => ` ${token()}`,
  'with a tab within it': () => token().replace('.', '.\t'),
  'in base64 with + and /': () => inBase64(token()),
  'whose last character has other spare bits': () => withSpareBits(token()),
  'with a fourth part': () => `${token()}.`,
  'without a time of issue': () => token({ claims: { iat: undefined } }),
  'unsigned, with alg none': () => jwt(header({ alg: 'none' }), claims(), unsigned),
  'unsigned, with alg nOnE': () => jwt(header({ alg: 'nOnE' }), claims(), unsigned),
  'unsigned, with the usual alg': () => jwt(header(), claims(), unsigned),
  'with HMAC under the bytes of the public key': () => jwt(header({ alg: 'HS256' }), claims(), hs256(raw)),
  'with HMAC under the text of the public key': () => jwt(header({ alg: 'HS256' }), claims(), hs256(key.jwk.x)),
  'with HMAC under the public key as SPKI': () => jwt(header({ alg: 'HS256' }), claims(), hs256(spki)),
  'with HMAC under the public key as PEM': () => jwt(header({ alg: 'HS256' }), claims(), hs256(pem)),
  'with an Ed25519 signature under another alg': () => token({ header: { alg: 'ES256' } }),
  'with jku': () => token({ by: attacker, header: { kid: attacker.kid, jku } }),
  'with jku under the name of a key of the set': () => token({ by: attacker, header: { jku } }),
  'with its own key in it': () => token({ by: attacker, header: { jwk: attacker.jwk } }),
  'with its own key in it, by that key’s name': () =>
    token({ by: attacker, header: { kid: attacker.kid, jwk: attacker.jwk } }),
  'with x5u': () => token({ by: attacker, header: { x5u: jku } }),
  'with x5c': () => token({ by: attacker, header: { x5c: [spki.toString('base64')] } }),
  'with a critical extension': () => token({ header: { crit: ['sub'], sub: 'x' } }),
  'without a user': () => token({ claims: { sub: undefined } }),
  'whose user is no text': () => token({ claims: { sub: { toString: 'u1' } } }),
  'without a session': () => token({ claims: { sid: undefined } }),
  'without a wallet': () => token({ claims: { wallet: undefined } }),
  'whose wallet has no address': () => token({ claims: { wallet: { adapter_id: 'nimiq', public_key_hex: '' } } }),
  'whose groups are no list of groups': () => token({ claims: { groups: 'staff' } }),
  'without an id': () => token({ claims: { jti: undefined } }),
  'whose payload was changed': () => changed(token(), 1),
  'whose signature was changed': () => changed(token(), 2),
  'whose payload is no object': () => jwt(header(), 'u1', ed25519(key)),
  'that is longer than any that the service issues': () => token({ claims: { scope: 'x'.repeat(8192) } }),
  'that is empty': () => '',
  'that is a session token': () => `${newToken('session')}.${'x'.repeat(43)}`,
  'that is no text': () => undefined as unknown as string,
}

/** The same bytes in the other alphabet of base64. The payload is chosen until the two differ. */
function inBase64(text: string): string {
  let at = text
  for (let n = 0; !/[-_]/.test(at); n++) at = token({ claims: { jti: `j${n}` } })
  return at.replaceAll('-', '+').replaceAll('_', '/')
}

/** The same bytes: of the last of 86 characters, four bits belong to none of the 64. */
function withSpareBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(text.slice(-1))
  const same = `${text.slice(0, -1)}${alphabet[last + 1]}`
  expect(Buffer.from(same.split('.')[2] ?? '', 'base64url')).toEqual(Buffer.from(text.split('.')[2] ?? '', 'base64url'))
  return same
}

/** The token with one character of a part replaced. */
function changed(text: string, index: number): string {
  const parts = text.split('.')
  const part = parts[index] ?? ''
  parts[index] = `${part.slice(0, 20)}${part[20] === 'A' ? 'B' : 'A'}${part.slice(21)}`
  return parts.join('.')
}

describe('refused is a token', () => {
  test.each(Object.entries(refused))('%s', async (_name, make) => {
    expect(await verdict(make())).toBe('TOKEN_INVALID')
    // With the keys fetched it is the same, and nobody is asked but the service.
    const server = keyServer()
    expect(await verdict(make(), server.options)).toBe('TOKEN_INVALID')
    expect(server.asked.filter((url) => url !== `${issuer}/.well-known/jwks.json`)).toEqual([])
  })

  test('that has expired, by a code of its own, unless it is wrong in another way too', async () => {
    expect(await verdict(token({ claims: { exp: seconds() - 60 } }))).toBe('TOKEN_EXPIRED')
    expect(await verdict(token({ claims: { exp: seconds() - 60, aud: 'other' } }))).toBe('TOKEN_INVALID')
    expect(await verdict(token({ claims: { exp: seconds() - 60 }, by: attacker }))).toBe('TOKEN_INVALID')
  })

  test('in words that do not repeat it', async () => {
    const given = token({ by: attacker })
    const thrown = await verifyAccessToken(given, { issuer, audience, keys }).catch((error: Error) => error)
    expect(String((thrown as Error).stack)).not.toContain(given.slice(0, 20))
  })
})

describe('the key set', () => {
  test('is fetched once for many tokens at a time, and again after five minutes', async () => {
    const server = keyServer()
    const verifyOne = () => verdict(token(), server.options)
    expect(new Set(await Promise.all(Array.from({ length: 20 }, verifyOne)))).toEqual(new Set(['accepted']))
    expect(server.asked).toEqual([`${issuer}/.well-known/jwks.json`])
    vi.setSystemTime(Date.now() + 299_000)
    await verifyOne()
    expect(server.asked).toHaveLength(1)
    vi.setSystemTime(Date.now() + 1000)
    await verifyOne()
    expect(server.asked).toHaveLength(2)
  })

  test('is fetched from another address if the option says so', async () => {
    const server = keyServer()
    const jwksUrl = 'http://countersign.internal:8080/api/auth/.well-known/jwks.json'
    expect(await verdict(token(), { ...server.options, jwksUrl })).toBe('accepted')
    expect(server.asked).toEqual([jwksUrl])
  })

  test('is fetched again for a token of an unknown key, but not more often than every 30 seconds', async () => {
    const server = keyServer(keySetOf(key))
    const ofNewKey = () => verdict(token({ by: otherKey, header: { kid: otherKey.kid } }), server.options)
    expect(await verdict(token(), server.options)).toBe('accepted')
    server.keySet = keys
    for (let n = 0; n < 20; n++) expect(await ofNewKey()).toBe('TOKEN_INVALID')
    expect(server.asked).toHaveLength(1)
    vi.setSystemTime(Date.now() + 30_000)
    expect(await ofNewKey()).toBe('accepted')
    expect(server.asked).toHaveLength(2)
  })

  test('without the key of a secret that was taken away no longer has its tokens accepted, after five minutes at the latest', async () => {
    const server = keyServer()
    const long = token({ claims: { exp: seconds() + 3600 } })
    expect(await verdict(long, server.options)).toBe('accepted')
    server.keySet = keySetOf(otherKey)
    vi.setSystemTime(Date.now() + 300_000)
    expect(await verdict(long, server.options)).toBe('TOKEN_INVALID')
  })

  const troubles: Readonly<Record<string, () => Promise<Response>>> = {
    'nobody answers': () => Promise.reject(new TypeError('fetch failed')),
    'the service is busy': async () => new Response('{}', { status: 503 }),
    'there is nothing at its address': async () => new Response('{"code":"ROUTE_NOT_FOUND"}', { status: 404 }),
    'a proxy answers with a page': async () => new Response('<html>Sign in to the Wi-Fi</html>'),
    'a proxy sends elsewhere': async () => Response.redirect('https://attacker.example/'),
    'the answer is no key set': async () => Response.json({ ok: true }),
    'its keys are not readable': async () => Response.json({ keys: [{ ...keys.keys[0], x: '!' }] }),
  }

  test.each(Object.entries(troubles))('is an outage and no verdict on the token if %s', async (_name, trouble) => {
    const server = keyServer()
    server.trouble = trouble
    expect(await verdict(token(), server.options)).toBe('KEYS_UNAVAILABLE')
    server.trouble = undefined
    vi.setSystemTime(Date.now() + 300_000)
    expect(await verdict(token(), server.options)).toBe('accepted')

    // While the keys are fresh, an outage is not noticed, but for a token of a key that may be new.
    server.trouble = trouble
    vi.setSystemTime(Date.now() + 200_000)
    expect(await verdict(token(), server.options)).toBe('accepted')
    expect(await verdict(token({ by: attacker, header: { kid: attacker.kid } }), server.options)).not.toBe('accepted')
    vi.setSystemTime(Date.now() + 100_000)
    expect(await verdict(token(), server.options)).toBe('KEYS_UNAVAILABLE')
  })

  test.each(Object.entries(troubles).filter(([name]) => name !== 'its keys are not readable'))(
    'is asked for once in five seconds if %s, however many tokens of unknown keys come',
    async (_name, trouble) => {
      const server = keyServer()
      server.trouble = trouble
      const unknown = (n: number) => token({ by: attacker, header: { kid: `k${n}` } })
      for (let n = 0; n < 200; n++) expect(await verdict(unknown(n), server.options)).toBe('KEYS_UNAVAILABLE')
      expect(server.asked).toHaveLength(1)
      vi.setSystemTime(Date.now() + 4999)
      expect(await verdict(token(), server.options)).toBe('KEYS_UNAVAILABLE')
      expect(server.asked).toHaveLength(1)
      server.trouble = undefined
      vi.setSystemTime(Date.now() + 1)
      expect(await verdict(token(), server.options)).toBe('accepted')
      expect(server.asked).toHaveLength(2)

      // With keys in hand: those of the set go on, and unknown ones are asked about once in five seconds.
      server.trouble = trouble
      vi.setSystemTime(Date.now() + 30_000)
      for (let n = 0; n < 20; n++) {
        expect(await verdict(unknown(n), server.options)).toBe('KEYS_UNAVAILABLE')
        expect(await verdict(token(), server.options)).toBe('accepted')
      }
      expect(server.asked).toHaveLength(3)
    },
  )

  test('the key set that is away says nothing of a token of an unknown key either', async () => {
    const server = keyServer()
    expect(await verdict(token(), server.options)).toBe('accepted')
    server.trouble = troubles['nobody answers']
    vi.setSystemTime(Date.now() + 30_000)
    const ofUnknownKey = token({ by: attacker, header: { kid: attacker.kid } })
    expect(await verdict(ofUnknownKey, server.options)).toBe('KEYS_UNAVAILABLE')
  })

  test('of one issuer is not used for another, and is kept while no more than a hundred are', async () => {
    const server = keyServer()
    expect(await verdict(token(), server.options)).toBe('accepted')
    server.keySet = keySetOf(attacker)
    const other = 'https://other.example'
    expect(await verdict(token({ claims: { iss: other } }), { ...server.options, issuer: other })).toBe('TOKEN_INVALID')
    expect(server.asked).toHaveLength(2)
    const askFor = async (n: number) => await verdict(token(), { ...server.options, issuer: `https://${n}.example` })
    for (let n = 0; n < 98; n++) await askFor(n)
    expect(await verdict(token(), server.options)).toBe('accepted')
    expect(server.asked).toHaveLength(100)
    // One more takes the place of the oldest.
    await askFor(98)
    server.keySet = keys
    expect(await verdict(token(), server.options)).toBe('accepted')
    expect(server.asked).toHaveLength(102)
  })
})

describe('an option that does not fit is the developer’s mistake: a check that it leaves out would accept others’ tokens', () => {
  test.each<[string, object]>([
    ['no issuer', { issuer: undefined }],
    ['an empty issuer', { issuer: '' }],
    ['an issuer with a slash', { issuer: `${issuer}/` }],
    ['an issuer with a path', { issuer: `${issuer}/api/auth` }],
    ['a list of issuers', { issuer: [issuer] }],
    ['an issuer that is no web address', { issuer: 'app://auth' }],
    ['no audience', { audience: undefined }],
    ['an empty audience', { audience: '' }],
    ['a pattern as an audience', { audience: /.*/ }],
    ['an empty list of scopes', { scopes: [] }],
    ['a scope that is no list', { scopes: 'orders:read' }],
    ['two scopes in one text', { scopes: ['orders:read orders:write'] }],
    ['a tolerance below 0', { clockToleranceSeconds: -1 }],
    ['a tolerance beyond a minute', { clockToleranceSeconds: 61 }],
    ['a tolerance that is no number', { clockToleranceSeconds: Number.NaN }],
    ['an address of keys that is none', { keys: undefined, jwksUrl: 'jwks.json' }],
    [
      'an address of keys with a part that is not sent',
      { keys: undefined, jwksUrl: 'https://auth.example/jwks.json#x' },
    ],
    ['an address of keys that is a file', { keys: undefined, jwksUrl: 'file:///etc/jwks.json' }],
    ['keys that are no key set', { keys: [key.jwk] }],
  ])('%s', async (_name, options) => {
    await expect(verdict(token(), options as object)).rejects.toThrow(TypeError)
  })
})
