import { expect, test } from 'vitest'
import { Keyring } from '../../../src/base/token.ts'
import { AccessTokens, deriveSigningKeys } from '../../../src/core/access-tokens.ts'
import type { Session } from '../../../src/core/users/host.ts'
import { decoded } from '../../integrations/backend/forge.ts'

/** A time of the store that is neither this machine's nor a whole second. */
const now = 1_000_000_999

const session: Session = {
  id: 's1',
  userId: 'u1',
  adapterId: 'ethereum',
  publicKeyHex: '',
  address: 'eip155:1:0xab',
  createdAt: now,
  expiresAt: now + 3_600_000,
  ip: '192.0.2.1',
  userAgent: 'Browser/1.0',
  computerId: 'c1',
  orderId: 'o1',
}

async function issue(changes: Partial<Session> = {}) {
  const keys = await deriveSigningKeys(new Keyring(['a secret for tests']), 'ES256')
  const issuer = () => 'https://auth.example'
  const groupsOf = () => ['staff']
  const store = { now: () => now }
  const tokens = new AccessTokens({ audiences: ['a', 'b'], ttlSeconds: 300, issuer, keys, groupsOf, store })
  const { accessToken, expiresAt } = await tokens.issue({ ...session, ...changes }, 'b')
  return { expiresAt, ...decoded(accessToken) }
}

test('a token says who is signed in with what wallet, and nothing else of the session', async () => {
  const { payload } = await issue()
  expect(payload).toEqual({
    iss: 'https://auth.example',
    sub: 'u1',
    aud: 'b',
    sid: 's1',
    iat: 1_000_000,
    exp: 1_000_300,
    jti: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
    wallet: { adapter_id: 'ethereum', address: 'eip155:1:0xab', public_key_hex: '' },
    groups: ['staff'],
  })
  expect((await issue()).payload.jti).not.toBe(payload.jti)
})

test.each([
  ['its lifetime, by the clock of the store', session.expiresAt, 1_000_300],
  ['the end of its session', now + 60_000, 1_000_060],
  ['the last whole second before the end of its session', now + 60_500, 1_000_061],
  ['the second in which it was issued if the session ends in that', now + 0.5, 1_000_000],
])('a token expires at %s', async (_what, sessionEnd, exp) => {
  const { payload, expiresAt } = await issue({ expiresAt: sessionEnd })
  expect(payload.exp).toBe(exp)
  expect(expiresAt).toBe(exp * 1000)
  expect(expiresAt).toBeLessThanOrEqual(sessionEnd)
})
