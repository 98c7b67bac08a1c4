import { describe, expect, test } from 'vitest'
import { lanHosts } from '../../src/service/lan.ts'
import { pageValues } from '../support/page-values.ts'
import { rest } from '../support/rest.ts'
import { spawnService } from '../support/service.ts'

const [host] = lanHosts()
if (host === undefined) console.warn('NOT TESTED: --lan over a network, because this machine is in none')

const store = { COUNTERSIGN_STORE: 'sqlite::memory:' }

/** Status of a nonce for a page of this origin. */
async function nonceFor(url: string, origin: string): Promise<string> {
  const { status, json } = await rest(url, '/wallet/nonce', {}, { origin })
  return status === 200 ? 'trusted' : json.code
}

async function claimOriginFor(url: string, origin: string): Promise<string> {
  const { json } = await rest(url, '/cross-device/start', { kind: 'login' }, { origin })
  return new URL(json.claimUrl).origin
}

/** Whether the demo and the approval page may offer the demo wallet. */
async function demoWallet(url: string): Promise<unknown[]> {
  const paths = ['/', '/c/0123456789abcdefABCDEF']
  const pages = await Promise.all(paths.map(async (path) => await (await fetch(url + path)).text()))
  return pages.map((html) => pageValues(html).demoWallet)
}

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']

describe.skipIf(host === undefined)('in a network', () => {
  test('--lan serves it under the address that it prints, and this computer under the loopback names', async () => {
    const service = await spawnService(store, ['--lan'])
    const { port } = new URL(service.url)
    const lan = `http://${host}:${port}`
    expect(service.log()).toContain(`"Phones: ${lan} on the same network`)
    expect(service.log()).toContain(`"url":"${lan}"`)
    expect(await demoWallet(lan)).toEqual([true, true])
    for (const origin of [lan, ...loopbackNames.map((name) => `http://${name}:${port}`)]) {
      expect(await nonceFor(lan, origin), origin).toBe('trusted')
      expect(await claimOriginFor(lan, origin), origin).toBe(lan)
    }
    for (const origin of ['https://evil.example', `http://${host}:1`, 'http://localhost:1', 'http://localhost']) {
      expect(await nonceFor(lan, origin), origin).toBe('ORIGIN_NOT_TRUSTED')
    }
    expect(await service.stop()).toBe(0)
  })

  test('HOST alone lets the network in, and trusts nothing more', async () => {
    const service = await spawnService({ ...store, HOST: '0.0.0.0' })
    const { port } = new URL(service.url)
    const lan = `http://${host}:${port}`
    expect(service.log()).toContain('"Phones: off. Set COUNTERSIGN_PUBLIC_URL to the address that people open')
    expect(service.log()).not.toContain('--lan')
    expect(service.log()).toContain(`"url":"http://localhost:${port}"`)
    expect(await nonceFor(lan, lan)).toBe('ORIGIN_NOT_TRUSTED')
    const origin = `http://localhost:${port}`
    expect(await claimOriginFor(lan, origin)).toBe(origin)
    expect(await service.stop()).toBe(0)
  })
})

test('with --lan, an https publicUrl stays, loopback pages are trusted, and there is no demo wallet', async () => {
  const publicUrl = 'https://tunnel.example'
  const service = await spawnService({ ...store, COUNTERSIGN_PUBLIC_URL: publicUrl }, ['--lan'])
  const { port } = new URL(service.url)
  for (const name of loopbackNames) expect(await claimOriginFor(service.url, `http://${name}:${port}`)).toBe(publicUrl)
  expect(await nonceFor(service.url, publicUrl)).toBe('trusted')
  if (host !== undefined) expect(await nonceFor(service.url, `http://${host}:${port}`)).toBe('ORIGIN_NOT_TRUSTED')
  expect(await demoWallet(service.url)).toEqual([false, false])
  expect(await service.stop()).toBe(0)
})

test('an argument that the command does not know ends it with one line', async () => {
  await expect(spawnService(store, ['--lna'])).rejects.toThrow(/^countersign: unknown argument "--lna"[^\n]*\n$/)
})

test('a demo wallet on https ends it with one line', async () => {
  const environment = { COUNTERSIGN_DEMO_WALLET: 'on', COUNTERSIGN_PUBLIC_URL: 'https://wallet.example' }
  await expect(spawnService({ ...store, ...environment })).rejects.toThrow(
    /^countersign: pages\.demoWallet \(COUNTERSIGN_DEMO_WALLET\) must be off[^\n]*\n$/,
  )
})
