import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { base58 } from '@scure/base'
import nacl from 'tweetnacl'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { markdownTable } from '../../scripts/docs/markdown.ts'
import { type CountersignClient, createCountersignClient, type Wallet } from '../../src/browser/client/index.ts'
import { solanaWallet } from '../../src/browser/wallets/index.ts'
import { ethereum } from '../../src/core/wallet/ethereum/ethereum.ts'
import { nativeVerifier } from '../../src/core/wallet/native.ts'
import { codeOf, fetchFrom, MapStorage, pageWallet } from '../browser/client/support.ts'
import { minuteMs } from '../examples/tools.ts'
import { hasPart } from '../support/optional.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { chainRow } from './chain.ts'
import { installVendors } from './packages.ts'
import type { VendorWallet } from './vendor-wallet.ts'
import { vendors } from './vendors.ts'

vi.setConfig({ testTimeout: minuteMs })

async function start(origin = 'https://app.example') {
  const { url } = await startService({ adapters: ['nimiq', 'ethereum', 'solana'], trustedOrigins: [origin] })
  const client = (wallet: Wallet): CountersignClient =>
    createCountersignClient({ baseUrl: url, storage: new MapStorage(), fetch: fetchFrom(origin), wallet })
  return { url, origin, client }
}

/** A wallet that signs what `change` makes of the texts. */
function changed(wallet: Wallet, change: (text: string) => string): Wallet {
  return { ...wallet, sign: (text) => wallet.sign(change(text)) }
}

/** What a row of the table says, filled by the tests. */
const rows = new Map<string, { says?: string; declined?: string }>()

function rowOf(name: string): { says?: string; declined?: string } {
  const row = rows.get(name) ?? {}
  rows.set(name, row)
  return row
}

/** Of the fixtures of Trezor's firmware, ethereum/sign_message. */
const published = [
  {
    text: 'This is an example of a signed message.',
    signatureHex:
      '9bacd833b51fde010bab53bafd9d832eadd3b175d2af2e629bb2944fcc987dce7ff68bb3571ed25a720c220f2f9538bc8d04f582bee002c9af086590a49805901c',
  },
  {
    text: 'VeryLongMessage!',
    signatureHex:
      '752d283b3aea1eb44fd09203f4d5c430a6544e399b8500b02722b54325f6d8d457fd83460a31045cb0d6e8356240954ba072fdfe5cdb3f16d416e2acf1a180a51c',
  },
]

describe.skipIf(!hasPart('npm registry'))('the code of', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-vendors-'))
  let load: NodeJS.Require
  beforeAll(async () => {
    load = await installVendors(folder)
  }, 15 * minuteMs)
  // There are tens of thousands of files in it.
  afterAll(() => rm(folder, { recursive: true, force: true }), 5 * minuteMs)

  describe.each(vendors)('$name', ({ name, open }) => {
    let own: VendorWallet
    beforeAll(async () => {
      own = await open(load)
    }, minuteMs)

    const isOwn = (signer: { readonly address: string }) =>
      expect(signer.address.toLowerCase()).toBe(own.address.toLowerCase())

    test('signs in, and not over the text of another domain', async () => {
      const { origin, client } = await start()
      const wallet = own.walletFor(origin)
      isOwn((await client(wallet).signInWallet()).session)
      const other = changed(wallet, (text) => text.replaceAll('app.example', 'evil.example'))
      expect(await codeOf(client(other).signInWallet())).toBe('SIGNATURE_INVALID')
    })

    test('is added to an account', async () => {
      const { origin, client } = await start()
      const account = client(pageWallet(makeWallet()))
      await account.signInWallet()
      isOwn(await account.linkWallet({ wallet: own.walletFor(origin) }))
    })

    test.each(['login', 'sign'] as const)('approves an order of kind %s', async (kind) => {
      const { url, client } = await start()
      const phone = client(own.walletFor(url))
      const order = await phone.startOrder({ kind, displayTitle: 'Tulpen 🌷' })
      const claim = await phone.claimOrder(order.claimUrl)
      const challenge = await phone.getOrderChallenge(claim)
      await phone.approveOrder(claim, { challenge })
      const done = await phone.finalizeOrder(order)
      isOwn('session' in done ? done.session : 'proofArtifact' in done ? done.proofArtifact : done.wallet)
    })

    test('signs nothing that its user declines, if it asks one', async () => {
      const { origin, client } = await start()
      const page = client(own.walletFor(origin))
      const row = rowOf(name)
      row.declined = 'only signs'
      if (own.declineNext === undefined) return
      own.declineNext()
      expect(await codeOf(page.signInWallet())).toBe('WALLET_DECLINED')
      row.declined = 'asks the user'
      isOwn((await page.signInWallet()).session)
    })

    test('says of a text whose domain it is, if it reads texts', async () => {
      const { origin, client } = await start()
      const row = rowOf(name)
      const { judge } = own
      row.says = ''
      if (judge === undefined) return
      const texts: string[] = []
      const page = client(changed(own.walletFor(origin), (text) => String(texts[texts.push(text) - 1])))
      await page.signInWallet()
      const order = await page.startOrder({ kind: 'sign', displayTitle: 'Tulpen 🌷' })
      const claim = await page.claimOrder(order.claimUrl)
      await page.approveOrder(claim, { challenge: await page.getOrderChallenge(claim) })
      const [signIn = '', signOrder = ''] = texts
      row.says =
        `${await judge(signIn, origin)} for a sign-in, ${await judge(signIn, 'https://evil.example')} at a foreign page, ` +
        `${await judge(signOrder, origin)} for an order; `
      expect(row.says).toMatch(
        /^form for a sign-in, (warning|another domain) at a foreign page, plain text for an order; $/,
      )
    })
  })

  test.each(published)('Trezor’s published signature over "$text" is accepted', async ({ text, signatureHex }) => {
    const message = text.repeat(text.endsWith('!') ? 64 : 1)
    const address = '0xEa53AF85525B1779eE99ece1a5560C0b78537C3b'
    const verify = (signed: string) =>
      ethereum().verify(signed, { publicKeyHex: '', signatureHex, address }, nativeVerifier)
    expect(await verify(message)).toMatchObject({ address })
    expect(await verify(`${message}.`)).toBeUndefined()
  })

  test('Mobile Wallet Adapter that is connected does not sign in, and is then asked to sign the text', async () => {
    const { LocalSolanaMobileWalletAdapterWallet } = load('@solana-mobile/wallet-standard-mobile')
    const { publicKey } = nacl.sign.keyPair()
    const accounts = [{ address: base58.encode(publicKey), publicKey, chains: ['solana:mainnet'] }]
    const connected = { accounts, capabilities: { features: [] }, auth_token: 'token', chain: 'solana:mainnet' }
    const adapter = new LocalSolanaMobileWalletAdapterWallet({
      ...{ appIdentity: { name: 'Tally' }, chains: ['solana:mainnet'], chainSelector: { select: () => accounts } },
      authorizationCache: { get: async () => connected },
    })
    const asked: string[] = []
    const signMessage = async ({ message }: { message: Uint8Array }) => {
      asked.push(new TextDecoder().decode(message))
      throw Object.assign(new Error(), { code: 4001 })
    }
    const { client } = await start()
    // Its own needs an Android phone.
    const features = { ...adapter.features, 'solana:signMessage': { signMessage } }
    const wallet = solanaWallet({ ...{ name: adapter.name, icon: '', chains: adapter.chains, accounts: [] }, features })
    expect(await codeOf(client(wallet).signInWallet())).toBe('WALLET_DECLINED')
    expect(asked).toEqual([expect.stringContaining('wants you to sign in with your Solana account')])
  })

  // `npx vitest run -u test/vendors/wallets.test.ts` writes it.
  test('docs/wallets.md has the table of what was tried, with these versions and results', async () => {
    const each = (values: readonly string[]) => [...new Set(values)].join(', ')
    const ofVendor = Map.groupBy(vendors, ({ name }) => name.replace(/,.*/, ''))
    const lines = [...ofVendor].map(([name, ways]) => [
      name,
      each(ways.map(({ versions }) => versions)),
      each(ways.map((way) => [rowOf(way.name).says, rowOf(way.name).declined].join(''))),
    ])
    const table = markdownTable(['tried with', 'version', 'result'], [...lines, chainRow])
    const page = await readFromRoot('docs/wallets.md')
    const written = page.replace(/^\| tried with \|[\s\S]*?\n(?=\n)/m, () => table)
    await expect(written).toMatchFileSnapshot(join(root, 'docs/wallets.md'))
  })
})
