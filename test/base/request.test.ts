import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bearerToken, readRequest } from '../../src/base/request.ts'

function tokenIn(authorization: string | undefined): string | undefined {
  const headers = { get: (name: string) => (name === 'authorization' ? (authorization ?? null) : null) }
  const raw = { ...headers, toHeaders: () => new Headers() }
  return bearerToken(readRequest({ headers: raw, scheme: 'http', authority: 'a', remoteAddress: undefined }, 0))
}

test('the token of an Authorization header is what stands behind the scheme, in any case and with any spaces around', () => {
  expect(tokenIn(undefined)).toBeUndefined()
  for (const header of ['Bearer abc.d_e-f', 'bearer abc.d_e-f', 'BEARER   abc.d_e-f', 'Bearer abc.d_e-f \t']) {
    expect(tokenIn(header)).toBe('abc.d_e-f')
  }
})

test('an Authorization header with no token, with two, or of another scheme has none', () => {
  for (const header of [
    '',
    'Bearer',
    'Bearer ',
    'Bearer  ',
    'Bearer a b',
    'Bearer a\u00a0b',
    'Bearer\ta',
    'Basic YTpi',
  ]) {
    expect(tokenIn(header)).toBeUndefined()
  }
})

test('odd Authorization headers are read as RFC 6750 writes them: the scheme, spaces, and visible ASCII', () => {
  const piece = fc.constantFrom('Bearer', 'bearer', ' ', '\t', '\u00a0', '\u2003', 'a', 'Z9', '.', '=', 'é', ',')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const header = pieces.join('')
      expect(tokenIn(header)).toBe(/^Bearer +([\x21-\x7e]+)[ \t]*$/i.exec(header)?.[1])
    }),
    { numRuns: 3000 },
  )
})
