import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { walletApps } from '../../../src/browser/wallets/index.ts'

const address = 'https://auth.example:8443/cross-device/continue/csh_Ab-1?a=b c&d=é'
const encoded =
  'https%3A%2F%2Fauth.example%3A8443%2Fcross-device%2Fcontinue%2Fcsh_Ab-1%3Fa%3Db%20c%26d%3D%C3%A9'.replace(
    '%20c%26d%3D%C3%A9',
    // As the address is written in the address bar of the wallet: percent-encoded once, and then once more.
    '%2520c%26d%3D%25C3%25A9',
  )
const origin = 'https%3A%2F%2Fauth.example%3A8443'

/** The link of each app, letter by letter. */
const links: Readonly<Record<string, string>> = {
  'nimiq-pay': `nimiqpay://miniapp?url=${encoded}`,
  metamask: 'https://link.metamask.io/dapp/auth.example:8443/cross-device/continue/csh_Ab-1?a=b%20c&d=%C3%A9',
  phantom: `https://phantom.app/ul/browse/${encoded}?ref=${origin}`,
  solflare: `https://solflare.com/ul/v1/browse/${encoded}?ref=${origin}`,
  coinbase: `https://go.cb-w.com/dapp?cb_url=${encoded}`,
  trust: `https://link.trustwallet.com/open_url?coin_id=60&url=${encoded}`,
}

test('every app has its link here', () => {
  expect(walletApps.map(({ id }) => id)).toEqual(Object.keys(links))
})

describe.each(walletApps)('$name', ({ id, name, adapterIds, linkTo }) => {
  test('is linked to as its maker has published', () => {
    expect(linkTo(address)).toBe(links[id])
    expect(adapterIds.length).toBeGreaterThan(0)
  })

  test.each(['javascript:alert(1)', 'file:///etc/passwd', 'nimiqpay://miniapp', '/relative', ''])(
    'is not given %j to open',
    (url) => {
      expect(() => linkTo(url)).toThrow(TypeError)
    },
  )

  test('is in the table of docs/wallets.md, with the source of its link', async () => {
    const page = await readFile(new URL('../../../docs/wallets.md', import.meta.url), 'utf8')
    const row = page.split('\n').find((line) => line.startsWith(`| ${name} |`))
    expect(row).toMatch(/; https:\/\/\S+ \|/)
    for (const adapterId of adapterIds) expect(row).toContain(`\`${adapterId}\``)
  })
})
