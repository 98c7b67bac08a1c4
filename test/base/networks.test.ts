import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { networkOf, networksOf, readAddress, readRequest, siteOf } from '../../src/base/request.ts'

const ipv4 = fc.ipV4().filter((ip) => !ip.startsWith('0.0.'))

/** Spellings of an IPv4 host within IPv6. */
function spellings(ip: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number)
  const [high, low] = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16).padStart(4, '0'))
  return [
    ...[`::ffff:${ip}`, `::FFFF:${high}:${low}`, `0:0:0:0:0:ffff:${ip}`, `0000::ffff:${high}:${low}`],
    ...[`::${ip}`, `::${high}:${low}`, `0:0::0:0:0:${high}:${low}`],
    ...[`::ffff:0:${ip}`, `::ffff:0000:${high}:${low}`],
    ...[`64:ff9b::${ip}`, `0064:FF9B:0:0:0:0:${high}:${low}`, `64:ff9b::${high}:${low}%eth0`],
  ]
}

describe('an address', () => {
  test('of IPv4 within IPv6 is the IPv4 host, in every form and spelling (RFC 4291 2.5.5, RFC 2765 2.1, RFC 6052 2.1)', () => {
    fc.assert(
      fc.property(ipv4, (ip) => {
        for (const spelling of [ip, ...spellings(ip)]) expect(readAddress(spelling)).toBe(ip)
      }),
    )
  })

  test('of IPv6 has its canonical text (RFC 5952), without a zone', () => {
    expect(readAddress('2001:0DB8:0:0:1:0:0:1')).toBe('2001:db8::1:0:0:1')
    expect(readAddress('FE80::1%eth0')).toBe('fe80::1')
    expect(readAddress('::1')).toBe('::1')
    expect(readAddress('::')).toBe('::')
  })

  test('an address that only contains an IPv4 address names a network of its own: 6to4, Teredo, a local translator, others', () => {
    const addresses = ['2002:c633:6401::1', '2001:0:c633:6401::1', '64:ff9b:1::c633:6401', '1::ffff:c633:6401']
    for (const address of addresses) expect(readAddress(address)).toContain(':')
  })

  test('is none if it is anything else', () => {
    const texts = [
      '',
      'unknown',
      '1.2.3',
      '01.2.3.4',
      '1.2.3.4%x',
      '1.2.3.4:80',
      '[::1]',
      '1:::1',
      '::ffff:1.2.3.400',
      '%',
    ]
    for (const text of texts) expect(readAddress(text)).toBeUndefined()
  })
})

test('the client of a request has one address, in every form of it that a proxy or the socket tells', () => {
  const read = (forwarded: string, remoteAddress: string, proxies: number) => {
    const headers = new Headers({ 'x-forwarded-for': forwarded })
    return readRequest({ headers, scheme: 'http', authority: 'a', remoteAddress }, proxies).ip
  }
  for (const spelling of spellings('198.51.100.1')) {
    expect(read(spelling, '10.0.0.1', 1)).toBe('198.51.100.1')
    expect(read(`[${spelling}]:4711`, '10.0.0.1', 1)).toBe('198.51.100.1')
    expect(read('unknown', spelling, 0)).toBe('198.51.100.1')
  }
})

describe('the networks of an address', () => {
  test('are the /64, the /56 and the /48 of IPv6; an IPv4 address has itself only', () => {
    for (const ip of ['2001:db8:0:12ff::1', '2001:0DB8::12FF:0:0:0:1', '2001:db8:0:12ff:ffff:ffff:ffff:ffff%eth0']) {
      const address = readAddress(ip) as string
      expect(networksOf(address)).toEqual(['2001:db8:0:12ff::/64', '2001:db8:0:1200::/56', '2001:db8:0::/48'])
    }
    expect(networksOf('::1')).toEqual(['0:0:0:0::/64', '0:0:0:0::/56', '0:0:0::/48'])
    expect(networksOf('192.0.2.1')).toEqual(['192.0.2.1'])
  })

  test('have names for the narrowest and the widest', () => {
    expect([networkOf('2001:db8:0:12ff::1'), siteOf('2001:db8:0:12ff::1')]).toEqual([
      '2001:db8:0:12ff::/64',
      '2001:db8:0::/48',
    ])
    expect([networkOf('192.0.2.1'), siteOf('192.0.2.1')]).toEqual(['192.0.2.1', '192.0.2.1'])
  })
})
