import { expect, test } from 'vitest'
import { shop, startIssuer } from '../support.ts'
import { metadata } from './support.ts'

test('there are no ID tokens without a signature', async () => {
  expect(metadata.id_token_signing_alg_values_supported).toEqual(['RS256', 'ES256'])
  const unsigned = { metadata: { ...shop.metadata, id_token_signed_response_alg: 'none' } }
  await expect(startIssuer([unsigned])).rejects.toThrow(/client shop: id_token_signed_response_alg/)
})
