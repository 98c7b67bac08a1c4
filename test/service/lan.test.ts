import type { NetworkInterfaceInfo } from 'node:os'
import { expect, test } from 'vitest'
import { everyInterface, hostOnLan, lanHosts, optionsOnLan } from '../../src/service/lan.ts'

function info(address: string): NetworkInterfaceInfo {
  const internal = address.startsWith('127.') || address === '::1'
  const rest = { address, netmask: '', mac: '', internal, cidr: null }
  return address.includes(':') ? { ...rest, family: 'IPv6', scopeid: 0 } : { ...rest, family: 'IPv4' }
}

function hostsOf(interfaces: Record<string, readonly string[]>): string[] {
  return lanHosts(Object.fromEntries(Object.entries(interfaces).map(([name, all]) => [name, all.map(info)])))
}

const loopback = { lo: ['127.0.0.1', '::1'] }

test.each([
  ['a laptop', { ...loopback, en0: ['fe80::1', '192.168.1.23'] }, ['192.168.1.23']],
  ['one with containers', { docker0: ['172.17.0.1'], wlan0: ['10.0.0.7'] }, ['10.0.0.7', '172.17.0.1']],
  ['one in a tunnel', { utun4: ['10.8.0.2'], en0: ['172.20.10.3'] }, ['172.20.10.3', '10.8.0.2']],
  [
    'Windows with virtual machines',
    { 'vEthernet (WSL)': ['172.28.16.1'], 'Wi-Fi': ['192.168.0.9'] },
    ['192.168.0.9', '172.28.16.1'],
  ],
  ['two networks', { eth0: ['192.0.2.2'], eth1: ['172.16.0.4'] }, ['172.16.0.4', '192.0.2.2']],
  ['a container', { ...loopback, eth0: ['172.17.0.2'] }, ['172.17.0.2']],
  ['containers alone', { ...loopback, docker0: ['172.17.0.1'] }, ['172.17.0.1']],
  ['IPv6 too', { eth0: ['2001:db8::5', '192.168.1.4', 'fe80::9'] }, ['192.168.1.4', '[2001:db8::5]']],
  ['no address from a router', { eth0: ['169.254.10.1'], br0: ['fd00::2'] }, ['[fd00::2]', '169.254.10.1']],
  [
    'what is private for 172.16 to 172.31 only',
    { eth0: ['172.32.0.1'], eth1: ['172.31.0.1'] },
    ['172.31.0.1', '172.32.0.1'],
  ],
  ['no network', loopback, []],
])('of the hosts of a machine with %s, the likeliest to be reached by a phone comes first', (_, interfaces, hosts) => {
  expect(hostsOf(interfaces)).toEqual(hosts)
})

test('all interfaces are those of IPv6 too, if the machine has it', () => {
  expect(everyInterface({ lo: [info('127.0.0.1'), info('::1')] })).toBe('::')
  expect(everyInterface({ lo: [info('127.0.0.1')] })).toBe('0.0.0.0')
})

test.each([
  [{}, true],
  [{ publicUrl: 'http://10.0.0.7:8080' }, true],
  [{ publicUrl: 'HTTPS://tunnel.example' }, false],
  [{ pages: { demoWallet: false } }, false],
])('with --lan and %j, the demo wallet is on: %s', (options, demoWallet) => {
  expect(optionsOnLan({ ...options, host: 'localhost' })).toEqual({
    ...options,
    host: everyInterface(),
    pages: { demoWallet },
  })
})

test('without a network, --lan needs a publicUrl', () => {
  expect(() => hostOnLan({}, [])).toThrow('this machine is in none')
  expect(hostOnLan({ publicUrl: 'https://tunnel.example' }, [])).toBe(undefined)
  expect(hostOnLan({}, ['10.0.0.7', '10.0.0.8'])).toBe('10.0.0.7')
})
