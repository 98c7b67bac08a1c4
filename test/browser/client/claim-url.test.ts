import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CountersignClientError, parseClaimUrl } from '../../../src/browser/client/index.ts'

const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-']
const base64url = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...letters), minLength, maxLength })
const orderId = base64url(1, 64)
const token = base64url(43, 43).map((random) => `csc_${random}`)

describe('parseClaimUrl', () => {
  test('reads what the service makes', () => {
    fc.assert(
      fc.property(fc.webUrl({ validSchemes: ['http', 'https'] }), orderId, token, (base, id, claimToken) => {
        const { origin } = new URL(base)
        const url = `${origin}/cross-device/claim/${id}#token=${claimToken}`
        expect(parseClaimUrl(url)).toEqual({ orderId: id, claimToken })
        expect(parseClaimUrl(new URL(url))).toEqual({ orderId: id, claimToken })
      }),
    )
  })

  test('reads the address of an application, and one with a slash at the end', () => {
    const expected = { orderId: 'o1', claimToken: 'csc_t' }
    expect(parseClaimUrl('tally://claim/o1#token=csc_t')).toEqual(expected)
    expect(parseClaimUrl('https://a.example/x/o1/?from=qr#lang=de&token=csc_t')).toEqual(expected)
  })

  test('refuses all else with its code, and does not quote it', () => {
    const almost = fc.oneof(
      fc.string(),
      fc.webUrl({ withFragments: true, withQueryParameters: true }),
      fc.tuple(fc.string(), fc.string()).map(([path, hash]) => `https://a.example/${path}#${hash}`),
    )
    fc.assert(
      fc.property(almost, (url) => {
        try {
          const claim = parseClaimUrl(url)
          expect(claim.orderId).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
          expect(claim.claimToken).toMatch(/^[A-Za-z0-9_.~-]{1,512}$/)
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(CountersignClientError)
          expect(thrown).toMatchObject({ code: 'CLAIM_URL_INVALID', message: 'This is not the claim URL of an order' })
        }
      }),
      { numRuns: 1000 },
    )
  })

  test.each([
    ['a token in the query, which servers see', 'https://a.example/claim/o1?token=csc_t'],
    ['no token', 'https://a.example/claim/o1'],
    ['an empty token', 'https://a.example/claim/o1#token='],
    ['no order', 'https://a.example/#token=csc_t'],
    ['an order that is too long', `https://a.example/${'a'.repeat(65)}#token=csc_t`],
    ['a token with a space', 'https://a.example/o1#token=csc%20t'],
    ['a relative address', '/claim/o1#token=csc_t'],
  ])('refuses %s', (_, url) => {
    expect(() => parseClaimUrl(url)).toThrow(expect.objectContaining({ code: 'CLAIM_URL_INVALID' }))
  })
})
