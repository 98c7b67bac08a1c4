import { request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'
import { bearerTokenOf, cookiesBeginning, cookieValue, withoutOws } from '../../src/shared/header-text.ts'
import { signIn } from '../integrations/backend/support.ts'
import { startService } from '../support/service.ts'

/** White space of JavaScript that is none of HTTP. Headers reach a program as Latin-1. */
const foreignSpace = ['\u00a0', '\u00a0\u00a0', '\v', '\f', '\ufeff', '\u3000', '\u2028']

test.each(foreignSpace)('%j is no white space of HTTP (RFC 9110, 5.6.3)', (space) => {
  expect(withoutOws(`${space}a${space}`)).toBe(`${space}a${space}`)
  expect(withoutOws(` \t ${space}a \t`)).toBe(`${space}a`)
  expect(cookieValue(`${space}name=v`, 'name')).toBeUndefined()
  expect(cookieValue(`a=1;${space}name=v`, 'name')).toBeUndefined()
  expect(cookieValue(`name${space}=v`, 'name')).toBeUndefined()
  expect(cookieValue(`name=v${space}`, 'name')).toBe(`v${space}`)
  expect(bearerTokenOf(`Bearer ${space}v`)).toBeUndefined()
  expect(bearerTokenOf(`Bearer v${space}`)).toBeUndefined()
  expect(bearerTokenOf(`Bearer${space}v`)).toBeUndefined()
})

test('a run of white space within a value takes time in proportion to its length', () => {
  const long = `a${' '.repeat(1_000_000)}b`
  expect(withoutOws(long)).toBe(long)
})

test('of many cookies whose names begin alike the first count, and none that comes twice or is empty', () => {
  const read = (header: string, most: number) => [...cookiesBeginning(header, 'own_', most)]
  expect(read('a=1; own_a=1;own_b==2=; own_; xown_c=3', 9)).toEqual([
    ['own_a', '1'],
    ['own_b', '=2='],
  ])
  expect(read('own_a=1; own_b=; own_c=3; own_a=1; own_a=1; own_b=2', 9)).toEqual([['own_c', '3']])
  expect(read('own_a=1; own_b=2; own_c=3; own_a=4', 2)).toEqual([['own_b', '2']])
  expect(cookiesBeginning(undefined, 'own_', 9).size).toBe(0)
})

/**
 * A Cookie header with the value `v`, and what every reader makes of it: signed in or not (RFC 6265, 4.2.1 and 5.4).
 */
const cookies: readonly (readonly [what: string, header: (name: string, token: string) => string, counts: boolean])[] =
  [
    ['one cookie', (name, v) => `${name}=${v}`, true],
    ['between others', (name, v) => `a=1; ${name}=${v}; b=2`, true],
    ['without the space after the semicolon', (name, v) => `a=1;${name}=${v};b=2`, true],
    ['with further spaces and tabs around it', (name, v) => `a=1; \t ${name}=${v} \t; b=2`, true],
    ['a no-break space before the name', (name, v) => `\u00a0${name}=${v}`, false],
    ['a no-break space before the name, between others', (name, v) => `a=1;\u00a0${name}=${v}; b=2`, false],
    ['a no-break space after the name', (name, v) => `${name}\u00a0=${v}`, false],
    ['a no-break space before the value', (name, v) => `${name}=\u00a0${v}`, false],
    ['a no-break space after the value', (name, v) => `${name}=${v}\u00a0`, false],
    ['a space after the name', (name, v) => `${name} =${v}`, false],
    ['a space before the value', (name, v) => `${name}= ${v}`, false],
    ['quotes around the value', (name, v) => `${name}="${v}"`, false],
    ['a value in percent-encoding', (name, v) => `${name}=%${v.charCodeAt(0).toString(16)}${v.slice(1)}`, false],
    ['two of the name', (name, v) => `${name}=${v}; ${name}=${v}`, false],
    ['another one of the name in front', (name, v) => `${name}=css_planted; ${name}=${v}`, false],
    ['another one of the name behind', (name, v) => `${name}=${v}; ${name}=css_planted`, false],
    ['the name in other case', (name, v) => `${name.toUpperCase()}=${v}`, false],
    ['a longer name', (name, v) => `x${name}=${v}`, false],
    ['in the value of another cookie', (name, v) => `a=${name}=${v}`, false],
    ['no value', (name) => `${name}=`, false],
  ]

describe.each(['http://localhost', 'https://app.example'])('with publicUrl %s', (publicUrl) => {
  test('the service, forward auth, the sign-in page and the verifier of backends read every Cookie header alike', async () => {
    const { url } = await startService({ publicUrl, trustedOrigins: [publicUrl], trustProxy: 1 })
    const verifier = createSessionVerifier({ url, publicUrl })
    const signedIn = await signIn(url, { origin: publicUrl })
    const [name = '', value = ''] = signedIn.cookie.split('=')
    const ask = async (path: string, headers: Record<string, string>) => {
      const sent = httpRequest(url + path, { headers, agent: false }).end()
      const answer = await new Promise<import('node:http').IncomingMessage>((resolve) => sent.on('response', resolve))
      return { status: answer.statusCode, body: await text(answer) }
    }
    const readers = async (cookie: string) => {
      const [session, proxied, page] = await Promise.all([
        ask('/api/auth/session', { cookie, origin: publicUrl }),
        ask('/api/auth/forward-auth', { cookie, 'x-forwarded-method': 'GET' }),
        ask('/api/auth/sign-in', { cookie }),
      ])
      return {
        service: session.status === 200,
        forwardAuth: proxied.status === 200,
        page: page.body !== signedOutPage.body,
        verifier: (await verifier.verify({ method: 'GET', headers: { cookie } })) !== undefined,
      }
    }
    const signedOutPage = await ask('/api/auth/sign-in', {})
    expect(signedOutPage.status).toBe(200)
    for (const [what, header, counts] of cookies) {
      const all = { service: counts, forwardAuth: counts, page: counts, verifier: counts }
      expect(await readers(header(name, value)), what).toEqual(all)
    }
  })
})

test.each([
  ['Bearer v', 'v'],
  ['bearer   v', 'v'],
  ['BEARER v \t', 'v'],
  ['Bearer a.b_c-d~e+f/g==', 'a.b_c-d~e+f/g=='],
  ['Bearer', undefined],
  ['Bearer ', undefined],
  ['Bearer\tv', undefined],
  ['Bearer v w', undefined],
  ['Bearer v\n', undefined],
  ['Bearer ä', undefined],
  ['Basic v', undefined],
  ['xBearer v', undefined],
  [undefined, undefined],
])('the bearer token of %j is %j (RFC 6750, 2.1)', (header, token) => {
  expect(bearerTokenOf(header)).toBe(token)
})
