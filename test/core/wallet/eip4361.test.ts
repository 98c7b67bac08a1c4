import { parseSiweMessage } from 'viem/siwe'
import { describe, expect, test } from 'vitest'
import { ethereum } from '../../../src/core/wallet/ethereum/ethereum.ts'
import type { StoredChallenge } from '../../../src/core/wallet/sign-in-form.ts'
import { signInForm } from '../../../src/core/wallet/sign-in-form.ts'
import { challengeOf } from '../../support/challenge.ts'
import { readEip4361 } from '../../support/eip4361.ts'

const address = '0x2e988A386a799F506693793c6A5AF6B54dfAaBfB'

/** A text with all fields, of which a case changes some. */
const whole = {
  domain: 'service.example',
  statement: 'I accept the Terms of Service: https://service.example/tos',
  uri: 'https://service.example/login',
  version: '1',
  chainId: '1',
  nonce: '32891757',
  issuedAt: '2021-09-30T16:25:24.000Z',
  rest: [] as string[],
}

function textOf(change: Partial<typeof whole> & { readonly address?: string }): string {
  const { domain, statement, uri, version, chainId, nonce, issuedAt, rest, ...all } = { ...whole, ...change }
  return [
    `${domain} wants you to sign in with your Ethereum account:`,
    all.address ?? address,
    '',
    ...(statement === '' ? [] : [statement]),
    '',
    `URI: ${uri}`,
    `Version: ${version}`,
    `Chain ID: ${chainId}`,
    `Nonce: ${nonce}`,
    `Issued At: ${issuedAt}`,
    ...rest,
  ].join('\n')
}

/** Cases of spruceid's published suite, by what each is about. */
const good: readonly [string, Parameters<typeof textOf>[0]][] = [
  ['no optional field', {}],
  ['no statement', { statement: '' }],
  ['a domain with a port', { domain: 'service.example:8080' }],
  ['a domain that is localhost', { domain: 'localhost:3000', uri: 'http://localhost:3000' }],
  ['a domain that is an IPv4 address', { domain: '127.0.0.1:8080' }],
  ['a domain that is an IPv6 address', { domain: '[::1]:8080' }],
  ['a domain with user information', { domain: 'test@service.example' }],
  ['a scheme before the domain', { domain: 'https://service.example' }],
  ['a URI of another kind', { uri: 'did:key:z6Mkf5rGMoatrSj1f4CyvuHBeXJELe9RPdzo2PKGNCKVtZxP#z6Mkf5' }],
  ['a time with an offset', { issuedAt: '2021-09-30T16:25:24+05:30' }],
  ['a time without fractions', { issuedAt: '2021-09-30T16:25:24Z' }],
  ['an end and a beginning', { rest: ['Expiration Time: 2022-01-01T00:00:00Z', 'Not Before: 2021-01-01T00:00:00Z'] }],
  ['a request id', { rest: ['Request ID: 200'] }],
  ['an empty request id', { rest: ['Request ID: '] }],
  [
    'resources',
    { rest: ['Resources:', '- ipfs://Qme7ss3ARVgxv6rXqVPiikMJ8u2NLgmgszg13pYrDKEoiu', '- https://example.com/a.json'] },
  ],
  ['a list of no resources', { rest: ['Resources:'] }],
  ['every character that a statement may have', { statement: "aZ09-._~:/?#[]@!$&'()*+,;= " }],
]

const bad: readonly [string, Parameters<typeof textOf>[0]][] = [
  ['no domain', { domain: '' }],
  ['a domain with a path', { domain: 'service.example/login' }],
  ['a domain with a query', { domain: 'service.example?a=b' }],
  ['a domain with a space', { domain: 'service example' }],
  ['an IPv6 address that is none', { domain: '[::1::]' }],
  ['an address without 0x', { address: address.slice(2) }],
  ['an address that is too short', { address: address.slice(0, -1) }],
  ['an address that is too long', { address: `${address}0` }],
  ['a statement with a line break', { statement: 'one\ntwo' }],
  ['a statement beyond ASCII', { statement: 'Zürich' }],
  ['a statement with a tab', { statement: 'a\tb' }],
  ['a statement with a percent sign', { statement: '100%' }],
  ['a statement with quotation marks', { statement: '"a"' }],
  ['no URI', { uri: '' }],
  ['a URI without a scheme', { uri: 'service.example/login' }],
  ['a URI with a space', { uri: 'https://service.example/a b' }],
  ['a version 2', { version: '2' }],
  ['a version 11', { version: '11' }],
  ['no version', { version: '' }],
  ['a chain that is no number', { chainId: 'mainnet' }],
  ['no chain', { chainId: '' }],
  ['a nonce of seven characters', { nonce: '1234567' }],
  ['a nonce with a hyphen', { nonce: '1234-5678' }],
  ['a time that is a date', { issuedAt: '2021-09-30' }],
  ['a time without a zone', { issuedAt: '2021-09-30T16:25:24' }],
  ['a 13th month', { issuedAt: '2021-13-30T16:25:24Z' }],
  ['a 30 February', { issuedAt: '2021-02-30T16:25:24Z' }],
  ['an hour 25', { issuedAt: '2021-09-30T25:25:24Z' }],
  ['another order of fields', { rest: ['Not Before: 2021-01-01T00:00:00Z', 'Expiration Time: 2022-01-01T00:00:00Z'] }],
  ['a field twice', { rest: ['Request ID: 1', 'Request ID: 2'] }],
  ['a request id with a slash', { rest: ['Request ID: a/b'] }],
  ['a request id with a space', { rest: ['Request ID: a b'] }],
  ['a field that is unknown', { rest: ['Other: 1'] }],
  ['a resource that is no URI', { rest: ['Resources:', '- not a uri'] }],
  ['a resource without its hyphen', { rest: ['Resources:', 'https://example.com'] }],
  ['a line at the end', { rest: [''] }],
]

describe('the checker of these tests, by the cases of the grammar,', () => {
  test.each(good)('reads %s', (_, change) => {
    expect(readEip4361(textOf(change))).toBeDefined()
  })

  test.each(bad)('does not read %s', (_, change) => {
    expect(readEip4361(textOf(change))).toBeUndefined()
  })

  test('does not read other line breaks, nor a missing or a third empty line', () => {
    const text = textOf({})
    expect(readEip4361(text.replaceAll('\n', '\r\n'))).toBeUndefined()
    expect(readEip4361(text.replace('\n\n', '\n'))).toBeUndefined()
    expect(readEip4361(text.replace('\n\n', '\n\n\n'))).toBeUndefined()
    expect(readEip4361(textOf({ statement: '' }).replace('\n\n\n', '\n\n'))).toBeUndefined()
  })
})

const { signInText } = ethereum()

function ourText(challenge: StoredChallenge, pageOrigin: string, chainId = '1'): string {
  return signInText!(signInForm(challenge, pageOrigin), { address: address.toLowerCase(), chainId })
}

const login = { ...challengeOf('Example requests authentication'), action: 'auth.login' as const }
const { orderId: _, ...direct } = login

const origins = [
  'https://app.example',
  'https://app.example:8443',
  'http://localhost',
  'http://localhost:3000',
  'http://127.0.0.1:8080',
  'http://[::1]:8080',
  'http://[2001:db8::1]',
  'https://xn--bcher-kva.example',
  'https://xn--80ak6aa92e.example:444',
  `https://${'a'.repeat(63)}.${'b'.repeat(63)}.example`,
  'https://under_score.example',
]

describe.each(origins)('a form for a page of %s', (pageOrigin) => {
  test.each([
    ['a sign-in', direct, 'Sign in.'],
    ['a link', { ...direct, action: 'auth.link' as const }, 'Add this wallet to your account.'],
    ['an order', { ...login, origin: 'https://desktop.example' }, 'Sign in on another device.'],
    ['an order of the same page', { ...login, origin: pageOrigin }, 'Sign in on another device.'],
    [
      'an order that adds a wallet',
      { ...login, action: 'auth.link' as const },
      'Add this wallet to an account on another device.',
    ],
  ])('to sign for %s keeps the grammar and says what was asked', (_, challenge, statement) => {
    for (const chainId of ['1', '8453', '9007199254740991']) {
      const text = ourText(challenge, pageOrigin, chainId)
      const resources = [
        expect.stringMatching(/^urn:countersign:sha256:[A-Za-z0-9_-]{43}$/),
        ...('orderId' in challenge ? [challenge.origin] : []),
      ]
      expect(readEip4361(text)).toEqual({
        domain: pageOrigin.replace(/^https?:\/\//, ''),
        address,
        statement,
        uri: pageOrigin,
        chainId,
        nonce: '07'.repeat(32),
        issuedAt: '2026-01-01T00:00:00.000Z',
        expirationTime: '2026-01-01T00:02:00.000Z',
        notBefore: undefined,
        requestId: undefined,
        resources,
      })
      // viem's parser knows neither IPv6 addresses nor underscores.
      if (/[[_]/.test(pageOrigin)) continue
      expect(parseSiweMessage(text)).toMatchObject({ address, statement, uri: pageOrigin, chainId: Number(chainId) })
    }
  })
})

test('of any plain text the form has only its hash', () => {
  const [one, other] = ['Title: Zürich "%" \u{1f600}', 'Title: Zürich "%" \u{1f601}'].map((line) =>
    ourText({ ...direct, message: `${direct.message}\n${line}` }, 'https://app.example'),
  )
  expect(readEip4361(one!)).toBeDefined()
  expect(one).not.toBe(other)
  expect(one).toMatch(/^[\n -~]*$/)
})
