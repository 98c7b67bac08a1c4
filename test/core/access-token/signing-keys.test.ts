import { createPublicKey } from 'node:crypto'
import { expect, test } from 'vitest'
import { Keyring } from '../../../src/base/token.ts'
import { deriveSigningKeys } from '../../../src/core/access-tokens.ts'
import { decoded, isSignedBy, thumbprintOf } from '../../integrations/backend/forge.ts'

const [one, two, three] = ['the first secret', 'the second secret', 'the third secret']
const derive = (...secrets: string[]) => deriveSigningKeys(new Keyring(secrets))

test('instances with the same secret have the same key, and it stays the same from release to release', async () => {
  const { keySet } = await derive(one)
  expect((await derive(one)).keySet).toEqual(keySet)
  // Made with other tools: HMAC-SHA-256 under the secret of "countersign:v1:access token key", as the seed of an
  // Ed25519 key.
  expect(keySet.keys.map(({ x }) => x)).toEqual(['cssxuipgx5Y7xafWtVM5_ME_1NL0EmuKK_MX46z4KtI'])
})

test('each secret has a key of its own, which stands in the set under its thumbprint, in the order of the secrets', async () => {
  const { keySet } = await derive(one, two, three)
  const alone = await Promise.all([derive(one), derive(two), derive(three)])
  expect(keySet.keys).toEqual(alone.flatMap((each) => each.keySet.keys))
  for (const { x, kid, ...rest } of keySet.keys) {
    expect(kid).toBe(thumbprintOf(x))
    // Nothing else, above all no private part.
    expect(rest).toEqual({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' })
  }
})

test('the first secret signs', async () => {
  for (const secrets of [
    [one, two],
    [two, one],
  ]) {
    const { keySet, sign } = await derive(...secrets)
    const token = await sign({ sub: 'user' })
    const [first, second] = keySet.keys.map((jwk) => createPublicKey({ key: { ...jwk }, format: 'jwk' }))
    expect(decoded(token)).toEqual({
      header: { alg: 'EdDSA', typ: 'at+jwt', kid: keySet.keys[0]?.kid },
      payload: { sub: 'user' },
    })
    expect([isSignedBy(token, first!), isSignedBy(token, second!)]).toEqual([true, false])
  }
})

test('a secret that stands in the list twice has one key in the set, because verifiers refuse an ambiguous one', async () => {
  const { keySet } = await derive(one, two, one)
  expect(keySet.keys).toEqual((await derive(one, two)).keySet.keys)
})
