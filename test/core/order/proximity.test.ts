import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { networkOfAddress, networkOfRequest, sameNetwork } from '../../../src/base/networks.ts'
import { readRequest, withParts } from '../../../src/base/request.ts'

const ipv4 = fc.ipV4()
const octet = fc.nat(255)

describe('the network of an address', () => {
  test.each([
    ['8.8.4.4', '8.8.4.0/24'],
    ['100.63.255.255', '100.63.255.0/24'],
    ['100.128.0.1', '100.128.0.0/24'],
    ['172.15.0.1', '172.15.0.0/24'],
    ['172.32.0.1', '172.32.0.0/24'],
    ['223.255.255.254', '223.255.255.0/24'],
    ['203.0.113.7', '203.0.113.0/24'],
    ['2a00:1450:4001:812::200e', '2a00:1450:4001:800::/56'],
    ['2A00:1450:4001:08ff:1:2:3:4', '2a00:1450:4001:800::/56'],
    ['2600::', '2600:0:0:0::/56'],
    ['2001:200::1', '2001:200:0:0::/56'],
    ['2001:db8:1:2ff::1', '2001:db8:1:200::/56'],
  ])('%s is in %s', (ip, network) => expect(networkOfAddress(ip)).toBe(network))

  test.each([
    ['a loopback address', ['127.0.0.1', '127.255.255.255', '::1']],
    ['an unspecified one', ['0.0.0.0', '0.1.2.3', '::']],
    ['a private one', ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255']],
    ['a unique local one', ['fc00::1', 'fd12:3456:789a:1::1', 'fdff::1']],
    ['a link-local one', ['169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'febf::1']],
    ['one behind a NAT of the carrier', ['100.64.0.1', '100.127.255.254']],
    ['one of a protocol', ['192.0.0.8', '192.88.99.1', '2001:1::1', '2001:20::1']],
    ['one for benchmarks', ['198.18.0.1', '198.19.255.255', '2001:2::1']],
    ['a multicast one', ['224.0.0.1', '239.255.255.255', 'ff02::1']],
    ['a reserved one', ['240.0.0.1', '255.255.255.255', '100::1', '4000::1']],
    ['one behind NAT64 with a prefix of its network', ['64:ff9b:1::808:808']],
    ['one of a 6to4 or Teredo tunnel', ['2002:808:808::1', '2001:0:808:808::1', '2001::1']],
    [
      'what is not an address',
      ['', 'unknown', '8.8.8', '08.8.8.8', '8.8.8.8%x', '8.8.8.8:80', '[2600::1]', '2600:::1', '%'],
    ],
  ])('cannot be told of %s', (_kind, addresses) => {
    for (const ip of addresses) expect([ip, networkOfAddress(ip)]).toEqual([ip, undefined])
  })

  test('a zone does not count', () => expect(networkOfAddress('2600::1%eth0')).toBe('2600:0:0:0::/56'))

  test('is that of the IPv4 address in IPv6, however it is written', () => {
    fc.assert(
      fc.property(ipv4, (ip) => {
        const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number)
        const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
        const network = networkOfAddress(ip)
        for (const mapped of [`::ffff:${ip}`, `::FFFF:${hex}`, `0:0:0:0:0:ffff:${hex}`, `64:ff9b::${ip}`]) {
          expect(networkOfAddress(mapped)).toBe(network)
        }
      }),
    )
  })
})

describe('two addresses', () => {
  const same = (a: string, b: string) => sameNetwork(networkOfAddress(a), networkOfAddress(b))

  test('of one IPv4 /24 are in the same network, and no others', () => {
    const site = fc.tuple(fc.integer({ min: 11, max: 99 }), octet, octet)
    fc.assert(
      fc.property(site, site, octet, octet, (a, b, c, d) => {
        expect(same([...a, c].join('.'), [...a, d].join('.'))).toBe(true)
        expect(same([...a, c].join('.'), [...b, d].join('.'))).toBe(a.join() === b.join())
      }),
    )
  })

  test('of one IPv6 /56 are in the same network, and no others', () => {
    expect(same('2600:1:2:300::1', '2600:1:2:3ff:a:b:c:d')).toBe(true)
    expect(same('2600:1:2:300::1', '2600:1:2:400::1')).toBe(false)
    expect(same('2600:1:2:300::1', '2600:1:3:300::1')).toBe(false)
  })

  test('cannot be compared if their families differ or one has no known network', () => {
    expect(same('8.8.8.8', '2600::1')).toBeUndefined()
    expect(same('10.0.0.1', '10.0.0.1')).toBeUndefined()
    expect(same('8.8.8.8', '10.0.0.1')).toBeUndefined()
    expect(same('::1', '2600::1')).toBeUndefined()
  })
})

describe('the network of a request', () => {
  const peer = '198.51.100.7'
  const request = (headers: Record<string, string>, proxies = 0, remoteAddress: string | undefined = peer) =>
    readRequest({ headers: new Headers(headers), scheme: 'http', authority: 'internal', remoteAddress }, proxies)
  const network = (...args: Parameters<typeof request>) => networkOfRequest(request(...args))

  test('is that of its peer, if nothing shows a proxy', () => expect(network({})).toBe('198.51.100.0/24'))
  test('is what a trusted proxy wrote', () => {
    const headers = {
      'x-forwarded-for': '6.6.6.6, 203.0.113.9',
      'x-forwarded-proto': 'https',
      forwarded: 'for=6.6.6.6',
    }
    expect(network(headers, 1)).toBe('203.0.113.0/24')
  })
  test('cannot be told without an address', () => {
    expect(networkOfRequest(withParts(request({}), { ip: undefined }))).toBeUndefined()
  })
  test.each([
    ['x-forwarded-for', '198.51.100.7'],
    ['forwarded', 'for=198.51.100.7'],
    ['x-real-ip', '198.51.100.7'],
    ['x-forwarded-host', 'app.example'],
    ['x-forwarded-proto', 'https'],
  ])('cannot be told if %s came and no proxy is trusted', (name, value) => {
    expect(network({ [name]: value })).toBeUndefined()
  })
  test.each([
    { 'x-forwarded-for': 'unknown' },
    { 'x-forwarded-for': '' },
    { forwarded: 'for=203.0.113.9' },
    { 'x-forwarded-host': 'app.example' },
  ])('cannot be told if the trusted proxy sent %j', (headers) => {
    expect(network(headers, 1)).toBeUndefined()
  })
  test('stays unknown in a copy of the request with other parts changed', () => {
    const copy = withParts(request({ 'x-forwarded-for': '203.0.113.9' }), { origin: 'https://app.example' })
    expect(copy.ip).toBe(peer)
    expect(networkOfRequest(copy)).toBeUndefined()
  })
})
