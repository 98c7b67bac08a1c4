import { encode } from 'uqr'
import { expect, test } from 'vitest'
import { readClaimLink } from '../../../src/browser/pages/held-claim.ts'
import { defaultClaimUrlTemplate } from '../../../src/shared/page-names.ts'

const usual = '{origin}/cross-device/claim/{orderId}#token={claimToken}'
const claim = { orderId: 'order_1-A', claimToken: 'cs_claim_abc-DEF' }

test.each([
  [usual, '/cross-device/claim/order_1-A#token=cs_claim_abc-DEF', claim],
  // A messenger's own parameters.
  [usual, '/cross-device/claim/order_1-A?fbclid=1#token=cs_claim_abc-DEF', claim],
  ['{origin}/a?o={orderId}#{claimToken}', '/a?o=order_1-A#cs_claim_abc-DEF', claim],
  ['{origin}#{orderId}/{claimToken}', '/#order_1-A/cs_claim_abc-DEF', claim],
  ['{origin}/{orderId}#{orderId}.{claimToken}', '/order_1-A#order_1-A.cs_claim_abc-DEF', claim],
  ['{origin}/a+(b)/{orderId}#t={claimToken}', '/a+(b)/order_1-A#t=cs_claim_abc-DEF', claim],
  [usual, '/cross-device/claim/order_1-A', undefined],
  [usual, '/cross-device/claim/order_1-A#token=', undefined],
  [usual, '/cross-device/claim/order_1-A#token=a b', undefined],
  [usual, '/cross-device/claim/order_1-A#x=1&token=abc', undefined],
  [usual, '/elsewhere/order_1-A#token=abc', undefined],
])('%s reads %s', (template, address, expected) => {
  expect(readClaimLink(template, new URL(address, 'https://auth.example'))).toEqual(expected)
})

test('the code of a claim URL on a host of up to 19 characters is of version 5, and still with a correction of errors', () => {
  const ids = { orderId: 'x'.repeat(22), claimToken: `csc_${'x'.repeat(43)}` }
  const urlOn = (host: string) =>
    defaultClaimUrlTemplate
      .replace('{origin}', `https://${host}`)
      .replace(/\{(orderId|claimToken)\}/g, (_, name: keyof typeof ids) => ids[name])
  const versionOf = (host: string) => encode(urlOn(host), { ecc: 'L', border: 0 }).version
  expect([versionOf('sign.company.exampl'), versionOf('sign.company.example')]).toEqual([5, 6])
})
