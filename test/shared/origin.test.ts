import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readRequest } from '../../src/base/request.ts'
import { OriginPolicy } from '../../src/core/origin-policy.ts'
import { parseOrigin } from '../../src/shared/origin.ts'

const request = (headers: Record<string, string>, proxies = 0, remoteAddress: string | undefined = '10.0.0.9') =>
  readRequest({ headers: new Headers(headers), scheme: 'http', authority: 'internal:8080', remoteAddress }, proxies)

const policy = (enforce = true) =>
  new OriginPolicy({ enforce, own: 'https://auth.example', trusted: ['https://app.example'] })

describe('parseOrigin', () => {
  test.each([
    ['https://App.Example', 'https://app.example'],
    ['https://app.example:443', 'https://app.example'],
    ['http://localhost:8080', 'http://localhost:8080'],
    ['http://[::1]:80', 'http://[::1]'],
    ['capacitor://localhost', 'capacitor://localhost'],
  ])('%s is %s', (text, origin) => expect(parseOrigin(text)).toBe(origin))

  test.each([
    ...['null', '', 'app.example', 'https://', 'https://a.example/', 'https://a.example/path', 'https://a.example?x'],
    ...['https://user@a.example', 'https://a.example\\@b.example', 'https://a b', 'https://a.example:99999'],
    ...['javascript:alert(1)', 'https://a.example,https://b.example', 'https://\u202egro.elpmaxe'],
  ])('%j is no origin', (text) => expect(parseOrigin(text)).toBeUndefined())

  test('never throws, and what it returns is a fixed point', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl()), (text) => {
        const origin = parseOrigin(text)
        if (origin !== undefined) expect(parseOrigin(origin)).toBe(origin)
      }),
    )
  })
})

describe('the origin of a request', () => {
  test('is its Origin header', () => {
    expect(request({ origin: 'https://app.example', 'x-forwarded-host': 'evil.example' }, 1).origin).toBe(
      'https://app.example',
    )
  })
  test('without one, is where it was sent to', () => {
    expect(request({}).origin).toBe('http://internal:8080')
  })
  test('ignores forwarded headers, unless a proxy is trusted', () => {
    const headers = { 'x-forwarded-host': 'auth.example', 'x-forwarded-proto': 'https', 'x-forwarded-for': '1.2.3.4' }
    expect(request(headers)).toMatchObject({ origin: 'http://internal:8080', ip: '10.0.0.9' })
    expect(request(headers, 1)).toMatchObject({ origin: 'https://auth.example', ip: '1.2.3.4' })
  })
  test('an address that the client wrote itself does not count', () => {
    const headers = { 'x-forwarded-for': '6.6.6.6, 1.2.3.4, 10.0.0.1' }
    expect(request(headers, 1).ip).toBe('10.0.0.1')
    expect(request(headers, 2).ip).toBe('1.2.3.4')
    expect(request(headers, 9).ip).toBe('6.6.6.6')
  })
  test('a port behind the address is left out, and what is no address does not count', () => {
    expect(request({ 'x-forwarded-for': '1.2.3.4:5678' }, 1).ip).toBe('1.2.3.4')
    expect(request({ 'x-forwarded-for': '[2001:db8::1]:443' }, 1).ip).toBe('2001:db8::1')
    expect(request({ 'x-forwarded-for': 'somebody' }, 1).ip).toBe('10.0.0.9')
  })
  test('an Origin of null is none, however good the host', () => {
    expect(request({ origin: 'null' }).origin).toBeUndefined()
  })
  test('the user agent is cut and cleaned', () => {
    expect(request({ 'user-agent': `a\tb${'x'.repeat(500)}` }).userAgent).toBe(`ab${'x'.repeat(254)}`)
  })
  test('IPv4 in IPv6 is IPv4', () => expect(request({}, 0, '::ffff:127.0.0.1').ip).toBe('127.0.0.1'))
})

describe('the policy', () => {
  test('lets a trusted origin pass and names any other, with the setting to change', () => {
    expect(policy().requireTrusted(request({ origin: 'https://app.example' }))).toBe('https://app.example')
    expect(() => policy().requireTrusted(request({ origin: 'https://evil.example' }))).toThrow(
      expect.objectContaining({
        reason: 'ORIGIN_NOT_TRUSTED',
        message: expect.stringMatching(/https:\/\/evil\.example.*COUNTERSIGN_TRUSTED_ORIGINS/),
      }),
    )
  })
  test('the service itself is not trusted for being itself', () => {
    expect(() => policy().requireTrusted(request({ origin: 'https://auth.example' }))).toThrow()
  })
  test('behind a proxy, the refusal says what to set', () => {
    expect(() => policy().requireTrusted(request({}))).toThrow(/COUNTERSIGN_TRUST_PROXY/)
  })
  test('compares with what a nonce or order was made for', () => {
    const own = request({ origin: 'https://auth.example' })
    expect(() => policy().requireSame(own, 'https://app.example', 'nonce')).toThrow(
      expect.objectContaining({ reason: 'ORIGIN_MISMATCH' }),
    )
    expect(() => policy().requireSameOrOwn(own, 'https://app.example', 'order')).not.toThrow()
    expect(() => policy().requireSameOrOwn(request({ origin: 'null' }), 'https://app.example', 'order')).toThrow()
  })
  test('asks a function about any origin, if it has one in place of a list', () => {
    const asked: string[] = []
    const trusted = (origin: string) => {
      asked.push(origin)
      return origin.endsWith('.example')
    }
    const asking = new OriginPolicy({ enforce: true, own: 'https://auth.example', trusted })
    expect(asking.isTrusted('https://a.example')).toBe(true)
    expect(asking.isTrusted('https://a.example.evil')).toBe(false)
    expect(asking.isTrusted(undefined)).toBe(false)
    expect(asking.accepts('https://b.example')).toBe(true)
    expect(() => asking.requireTrusted(request({ origin: 'https://c.evil' }))).toThrow()
    expect(asked).toEqual(['https://a.example', 'https://a.example.evil', 'https://b.example', 'https://c.evil'])
  })
  test('accepts what was made for an origin while that is trusted, or if it is not enforced', () => {
    expect(policy().accepts('https://app.example')).toBe(true)
    expect(policy().accepts('https://app.example.evil.example')).toBe(false)
    expect(policy().accepts('https://auth.example')).toBe(false)
    expect(policy(false).accepts('https://evil.example')).toBe(true)
  })
  test('compares nothing when it is not enforced', () => {
    expect(policy(false).requireTrusted(request({ origin: 'https://evil.example' }))).toBe('https://evil.example')
    expect(policy(false).requireTrusted(request({ origin: 'null' }))).toBe('https://auth.example')
    expect(() => policy(false).requireSame(request({ origin: 'null' }), 'https://app.example', 'nonce')).not.toThrow()
  })
})
