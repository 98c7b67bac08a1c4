import { expect, test } from 'vitest'
import { banner, phonesText } from '../../src/commands/service.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { clientsFile, shop } from '../oidc/support.ts'
import { startService } from '../support/service.ts'

function start(publicUrl: string, lan: boolean, hosts: readonly string[], tls = false) {
  const description = { store: 'SQLite in memory', adapters: ['nimiq'], verifier: 'native', clients: 3 }
  return { service: { publicUrl, description }, port: 8080, lan, tls, hosts, isForOthers: false }
}

const hosts = ['192.168.1.23', '172.17.0.1']

test.each([
  ['without --lan', 'http://localhost:8080', false, hosts, 'off. Start with --lan to allow phones on this network'],
  ['without --lan or a network', 'http://localhost:8080', false, [], 'off. This machine is in no network'],
  ['with an address of the operator’s', 'https://wallet.example', false, hosts, undefined],
  [
    'with --lan',
    'http://192.168.1.23:8080',
    true,
    hosts,
    'http://192.168.1.23:8080 on the same network. If they cannot open it, set COUNTERSIGN_PUBLIC_URL to http://172.17.0.1:8080',
  ],
  [
    'with --lan and a single address',
    'http://192.168.1.23:8080',
    true,
    hosts.slice(0, 1),
    'http://192.168.1.23:8080 on the same network',
  ],
  [
    'with --lan and an address of the operator’s',
    'https://wallet.example',
    true,
    hosts,
    'https://wallet.example (COUNTERSIGN_PUBLIC_URL)',
  ],
])('how phones reach the service, %s', (_, publicUrl, lan, all, text) => {
  expect(phonesText(start(publicUrl, lan, all))).toBe(text)
})

test('a service for others is told its missing address, and nothing of --lan', () => {
  const local = start('http://localhost:8080', false, hosts)
  expect(phonesText({ ...local, isForOthers: true })).toBe(
    'off. Set COUNTERSIGN_PUBLIC_URL to the address that people open: http://localhost:8080 is this machine alone',
  )
  expect(phonesText({ ...local, service: { ...local.service, publicUrl: 'https://a.example' } })).toBe(undefined)
})

test('at a terminal, the banner has the line for phones, and the loopback name for this computer', () => {
  expect(banner(start('http://localhost:8080', false, hosts))).toMatch(/^ {2}Phones: {3}off\. Start with --lan/m)
  const onLan = banner(start('http://192.168.1.23:8080', true, hosts))
  expect(onLan).toMatch(/^ {2}Address: {2}http:\/\/localhost:8080$/m)
  expect(onLan).toMatch(/^ {2}Wallets: {2}nimiq \(native Ed25519\)$/m)
  expect(onLan).toMatch(/^ {2}Clients: {2}3 of OpenID Connect$/m)
  expect(onLan).toMatch(/^ {2}Phones: {3}http:\/\/192\.168\.1\.23:8080 on the same network/m)
  expect(banner(start('https://wallet.example', false, hosts))).not.toContain('Phones')
})

test('with TLS on the port, addresses for phones are https', () => {
  expect(phonesText(start('https://192.168.1.23:8080', true, hosts, true))).toBe(
    'https://192.168.1.23:8080 on the same network. If they cannot open it, set COUNTERSIGN_PUBLIC_URL to https://172.17.0.1:8080',
  )
})

test('the banner says what is open to anyone, such as clients that come with a document', async () => {
  const clients = clientsFile(shop, { ...shop, metadata: { ...shop.metadata, client_id: 'staff' }, groups: ['staff'] })
  const lineOf = async (oidc: NonNullable<CountersignOptions['oidc']>) => {
    const { service } = await startService({ oidc })
    return /^ {2}Open: {5}(.*)$/m.exec(banner({ ...start(service.publicUrl, false, hosts), service }))?.[1]
  }
  const open = 'anyone with a wallet gets into 1 of the OpenID Connect clients, which have no groups'
  expect(await lineOf({ clients })).toBe(open)
  expect(await lineOf({ clients, clientDocuments: ['https://client.example/'] })).toBe(
    `${open}, and into clients that come with a document, which have no groups`,
  )
  expect(await lineOf({})).toBeUndefined()
})
