import { createPublicKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Keyring } from '../../../src/base/token.ts'
import { type AccessTokenAlgorithm, deriveSigningKeys } from '../../../src/core/access-tokens.ts'
import { decoded, isSignedBy, thumbprintOf } from '../../integrations/backend/forge.ts'

const [one, two, three] = ['the first secret', 'the second secret', 'the third secret']
const derive = (...secrets: string[]) => deriveSigningKeys(new Keyring(secrets), 'ES256')

test('instances with the same secret have the same keys, and they stay the same from release to release', async () => {
  const { keySet } = await derive(one)
  expect((await derive(one)).keySet).toEqual(keySet)
  // Made with other tools: HMAC-SHA-256 under the secret of "countersign:v1:access token key", as the seed of an
  // Ed25519 key; and HKDF-SHA-256 of that, for "countersign access token ES256", modulo the order of P-256 less one,
  // plus one, as a private key of P-256.
  expect(keySet.keys.map(({ x }) => x)).toEqual([
    'pLSWl_dJhYn5xFS9jfgsknUbnCfR5R_wDeoPjbZSjLQ',
    'cssxuipgx5Y7xafWtVM5_ME_1NL0EmuKK_MX46z4KtI',
  ])
})

test('each secret has keys of its own, which stand in the set under their thumbprints, in the order of the secrets', async () => {
  const { keySet } = await derive(one, two, three)
  const alone = await Promise.all([derive(one), derive(two), derive(three)])
  expect(keySet.keys).toEqual([0, 1].flatMap((kind) => alone.map((each) => each.keySet.keys[kind])))
  for (const { x, y, kid, ...rest } of keySet.keys) {
    expect(kid).toBe(thumbprintOf({ ...rest, x, y }))
    // Nothing else, above all no private part.
    expect(rest).toEqual(
      y === undefined
        ? { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' }
        : { kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig' },
    )
  }
})

describe.each(['ES256', 'EdDSA', 'Ed25519'] as const)('with %s', (algorithm) => {
  test.each([[[one, two]], [[two, one]]])('the first secret signs', async (secrets) => {
    const { keySet, sign } = await deriveSigningKeys(new Keyring(secrets), algorithm)
    const token = await sign({ sub: 'user' })
    const keys = keySet.keys.map((jwk) => createPublicKey({ key: { ...jwk }, format: 'jwk' }))
    expect(decoded(token)).toEqual({
      header: { alg: algorithm, typ: 'at+jwt', kid: keySet.keys[0]?.kid },
      payload: { sub: 'user' },
    })
    expect(keys.map((key) => isSignedBy(token, key))).toEqual([true, false, false, false])
  })
})

test('a change of the algorithm takes no key out of the set, so that tokens signed before still verify', async () => {
  const thumbprints = async (algorithm: AccessTokenAlgorithm) =>
    (await deriveSigningKeys(new Keyring([one]), algorithm)).keySet.keys.map(({ kid }) => kid).sort()
  expect(await thumbprints('EdDSA')).toEqual(await thumbprints('ES256'))
  expect(await thumbprints('Ed25519')).toEqual(await thumbprints('ES256'))
})

test('a secret that stands in the list twice has each key in the set once, because verifiers refuse an ambiguous one', async () => {
  const { keySet } = await derive(one, two, one)
  expect(keySet.keys).toEqual((await derive(one, two)).keySet.keys)
})
