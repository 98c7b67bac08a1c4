import { describe, expect, test } from 'vitest'
import { hasPrefix, isDocumentAddress, isDocumentPrefix } from '../../src/base/document-address.ts'
import { resolveSettings } from '../../src/service/config.ts'

const host = 'https://client.example'

/** Spellings that are neither an address nor the beginning of one. */
const odd: readonly (readonly [string, string])[] = [
  ['another scheme', 'http://client.example/client.json'],
  ['a scheme in capitals', 'HTTPS://client.example/client.json'],
  ['no scheme', 'client.example/client.json'],
  ['a host in capitals', 'https://Client.example/client.json'],
  ['a host that is not in ASCII', 'https://clïent.example/client.json'],
  ['a dot behind the host', 'https://client.example./client.json'],
  ['an address of another spelling', 'https://0x7f.1/client.json'],
  ['a port', `${host}:8443/client.json`],
  ['the port of the scheme', `${host}:443/client.json`],
  ['an empty port', `${host}:/client.json`],
  ['a user', 'https://user@client.example/client.json'],
  ['a user and a password', 'https://user:secret@client.example/client.json'],
  ['an empty user', 'https://@client.example/client.json'],
  ['a query', `${host}/client.json?a=1`],
  ['an empty query', `${host}/client.json?`],
  ['a fragment', `${host}/client.json#a`],
  ['an empty fragment', `${host}/client.json#`],
  ['an encoded character', `${host}/client%2ejson`],
  ['an encoded slash', `${host}/a%2fb`],
  ['a character that has to be encoded', `${host}/client json`],
  ['a path that is not in ASCII', `${host}/cliënt.json`],
  ['a dot segment', `${host}/./client.json`],
  ['two dots', `${host}/a/../client.json`],
  ['two dots at the end', `${host}/a/..`],
  ['encoded dots', `${host}/a/%2e%2e/client.json`],
  ['a backslash', `${host}\\client.json`],
  ['a tab', `${host}/client\t.json`],
  ['a line break behind it', `${host}/client.json\n`],
  ['a space before it', ` ${host}/client.json`],
  ['an empty segment', `${host}//client.json`],
  ['an empty segment inside', `${host}/a//client.json`],
  ['no path', host],
  ['more than 200 characters', `${host}/${'a'.repeat(200)}`],
]

describe('an address with', () => {
  test.each(odd)('%s is none of a document, and no prefix', (_name, text) => {
    expect(isDocumentAddress(text)).toBe(false)
    expect(isDocumentPrefix(text)).toBe(false)
    expect(hasPrefix(text, [`${host}/`]) && isDocumentAddress(text)).toBe(false)
  })

  test.each(['/client.json', '/oauth/client', '/@scope/client', '/client.json:1', `/${'a'.repeat(177)}`])(
    'the path %s is one of a document',
    (path) => {
      expect(isDocumentAddress(host + path)).toBe(true)
      expect(isDocumentPrefix(host + path)).toBe(true)
    },
  )

  test.each(['/', '/a/', '/a/b/'])('the path %s is the beginning of one', (path) => {
    expect(isDocumentAddress(host + path)).toBe(false)
    expect(isDocumentPrefix(host + path)).toBe(true)
  })
})

describe('a prefix', () => {
  test.each([
    [`${host}/`, `${host}/client.json`, true],
    [`${host}/`, 'https://client.example.evil.example/client.json', false],
    [`${host}/a/`, `${host}/a/client.json`, true],
    [`${host}/a/`, `${host}/ab/client.json`, false],
    [`${host}/a`, `${host}/a`, true],
    [`${host}/a`, `${host}/ab`, false],
    [`${host}/a`, `${host}/a/b`, false],
    ['*', 'https://any.example/client.json', true],
  ])('%s has %s: %s', (prefix, address, fits) => expect(hasPrefix(address, [prefix])).toBe(fits))

  test.each([...odd.map(([, text]) => text), '', '**', `${host}/*`])('%j stops the start', (text) => {
    expect(() => resolveSettings({ oidc: { clients: 'clients.json', clientDocuments: [text] } })).toThrow(
      /^oidc\.clientDocuments \(COUNTERSIGN_OIDC_CLIENT_DOCUMENTS\) must be/,
    )
  })
})
