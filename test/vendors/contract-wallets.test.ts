import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  type CountersignClient,
  createCountersignClient,
  type DesktopOrder,
  type Wallet,
} from '../../src/browser/client/index.ts'
import { type ProofArtifact, verifyProofArtifact } from '../../src/integrations/proof/index.ts'
import { codeOf, fetchFrom, MapStorage, pageWallet } from '../browser/client/support.ts'
import { minuteMs } from '../examples/tools.ts'
import { listening } from '../support/listening.ts'
import { hasPart } from '../support/optional.ts'
import { bearer, okay, rest } from '../support/rest.ts'
import { spawnService, startService } from '../support/service.ts'
import { makeWallet } from '../support/wallet.ts'
import { type ContractAccount, kinds, makeDelegated, makeSafe, makeSample, makeSolady, type Parts } from './accounts.ts'
import { type Artifact, type Chain, chainPackages, compile, startHardhat } from './chain.ts'
import { install } from './packages.ts'

vi.setConfig({ testTimeout: minuteMs })

const startKey = 'a-start-key-of-thirty-two-characters-or-more'

function clientsOf(url: string): (wallet: Wallet) => CountersignClient {
  return (wallet) => createCountersignClient({ baseUrl: url, storage: new MapStorage(), fetch: fetchFrom(url), wallet })
}

async function start(chain: Chain, options: object = {}) {
  const { url } = await startService({
    adapters: ['nimiq', 'ethereum'],
    evmRpc: { [chain.id]: chain.url },
    ...options,
  })
  return { url, client: clientsOf(url) }
}

/** What a phone does with an order: claims it and approves it. Resolves with the return code. */
async function approve(phone: CountersignClient, claimUrl: string) {
  const claim = await phone.claimOrder(claimUrl)
  return await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
}

/** Ways of a wallet through the service. Each resolves with the address that the service proved. */
const paths: Readonly<Record<string, (chain: Chain, wallet: Wallet) => Promise<string>>> = {
  async 'a sign-in'(chain, wallet) {
    const { client } = await start(chain)
    return (await client(wallet).signInWallet()).session.address
  },
  async 'a login order'(chain, wallet) {
    const { client } = await start(chain)
    const phone = client(wallet)
    const order = await phone.startOrder({ kind: 'login' })
    await approve(phone, order.claimUrl)
    const done = await phone.finalizeOrder(order)
    return done.kind === 'login' ? done.session.address : done.kind
  },
  async 'a wallet that is added'(chain, wallet) {
    const { client } = await start(chain)
    const page = client(pageWallet(makeWallet()))
    await page.signInWallet()
    return (await page.linkWallet({ wallet })).address
  },
  async 'an order that adds a wallet'(chain, wallet) {
    const { client } = await start(chain)
    const desktop = client(pageWallet(makeWallet()))
    await desktop.signInWallet()
    const order = await desktop.startOrder({ kind: 'link' })
    const { returnCode } = await approve(client(wallet), order.claimUrl)
    const done = await desktop.finalizeOrder(order, { returnCode })
    return done.kind === 'link' ? done.wallet.address : done.kind
  },
  async 'a sign order'(chain, wallet) {
    const { client } = await start(chain)
    const phone = client(wallet)
    const order = await phone.startOrder({ kind: 'sign', displayTitle: 'Tulpen 🌷' })
    await approve(phone, order.claimUrl)
    const done = await phone.finalizeOrder(order)
    return done.kind === 'sign' ? done.proofArtifact.address : done.kind
  },
  async 'an order from the inbox'(chain, wallet) {
    const { url, client } = await start(chain, { orderStartKeys: [startKey] })
    const phone = client(wallet)
    const { userId } = (await phone.signInWallet()).session
    const asked = { kind: 'sign', inboxUserId: userId, payload: '{}', requester: { origin: url } }
    const { orderId, desktopToken } = okay(await rest(url, '/cross-device/start', asked, bearer(startKey)))
    expect(await phone.listInbox()).toMatchObject([{ orderId }])
    const claim = await phone.claimFromInbox(orderId)
    await phone.approveOrder(claim, { challenge: await phone.getOrderChallenge(claim) })
    const finalize = { orderId, desktopToken, finalizeKey: 'a-finalize-key-of-a-backend' }
    return okay(await rest(url, '/cross-device/finalize', finalize)).proofArtifact.address
  },
}

describe.skipIf(!hasPart('npm registry'))("on Hardhat's chain", () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-chain-'))
  let load: NodeJS.Require
  let compiled: Readonly<Record<string, Artifact>>
  beforeAll(async () => {
    load = await install(folder, chainPackages)
    compiled = await compile(load, 'accounts.sol')
  }, 15 * minuteMs)
  afterAll(() => rm(folder, { recursive: true, force: true }), 5 * minuteMs)

  /** A chain for one test. */
  const parts = async (): Promise<Parts> => {
    const chain = await startHardhat(load)
    onTestFinished(() => chain.stop())
    return { chain, compiled, load }
  }

  test('a Safe of two owners signs in to the program, by COUNTERSIGN_EVM_RPC', async () => {
    const { chain, ...others } = await parts()
    const safe = await makeSafe({ chain, ...others }, false)
    await safe.deploy()
    const { url } = await spawnService({
      COUNTERSIGN_ADAPTERS: 'nimiq,ethereum',
      COUNTERSIGN_EVM_RPC: `${chain.id}=${chain.url}`,
    })
    const client = clientsOf(url)
    expect(await codeOf(client(safe.signedBy(safe.owners[0])).signInWallet())).toBe('SIGNATURE_INVALID')
    expect((await client(safe.wallet).signInWallet()).session.address).toBe(safe.identity)
  })

  describe.each(kinds)('$name:', ({ open, withoutRpc }) => {
    let chain: Chain
    let account: ContractAccount
    beforeAll(async () => {
      chain = await startHardhat(load)
      account = await open({ chain, compiled, load })
    }, minuteMs)
    afterAll(() => chain.stop())

    test.each(Object.entries(paths))('%s proves it', async (_, path) => {
      expect(await path(chain, account.wallet)).toBe(account.identity)
    })

    test('what it does not sign is refused', async () => {
      const { client } = await start(chain)
      const refused = Object.entries(account.wrong).map(async ([what, wallet]) => [
        what,
        await codeOf(client(wallet).signInWallet()),
      ])
      const expected = Object.keys(account.wrong).map((what) => [what, 'SIGNATURE_INVALID'])
      expect(await Promise.all(refused)).toEqual(expected)
    })

    test('without an RPC, only a key signs in', async () => {
      const { client } = await start(chain, { evmRpc: undefined })
      expect(await codeOf(client(account.wallet).signInWallet())).toBe(withoutRpc)
    })
  })

  test('the sample account of ERC-4337, which has no ERC-1271 and a factory for its entry point alone, is refused', async () => {
    const all = await parts()
    const { client } = await start(all.chain)
    const sample = await makeSample(all)
    for (const wallet of [sample.wrapped, sample.bare]) {
      expect(await codeOf(client(wallet).signInWallet())).toBe('SIGNATURE_INVALID')
    }
    expect(await sample.isDeployed()).toBe(false)
    await sample.deploy()
    expect(await sample.isDeployed()).toBe(true)
    expect(await codeOf(client(sample.bare).signInWallet())).toBe('SIGNATURE_INVALID')
  })

  test('an account is the same user before and after its deployment, with the wrapper of EIP-6492 and without', async () => {
    const all = await parts()
    const { client } = await start(all.chain)
    const account = await makeSolady(all)
    const userId = async (wallet: Wallet) => (await client(wallet).signInWallet()).session.userId
    const before = await userId(account.wallet)
    await account.deploy()
    expect(await userId(account.wallet)).toBe(before)
    expect(await userId(account.unwrapped())).toBe(before)
  })

  test('an upgrade decides the next sign-in, and ends no session', async () => {
    const all = await parts()
    const { client } = await start(all.chain)
    const account = await makeSolady(all)
    await account.deploy()
    const [old, upgraded] = [account.unwrapped('1'), account.unwrapped('2')]
    const page = client(old)
    const { session } = await page.signInWallet()
    expect(await codeOf(client(upgraded).signInWallet())).toBe('SIGNATURE_INVALID')
    await account.upgrade()
    expect(await codeOf(client(old).signInWallet())).toBe('SIGNATURE_INVALID')
    expect((await client(upgraded).signInWallet()).session.userId).toBe(session.userId)
    expect(await page.getCurrentSession()).toMatchObject({ id: session.id })
  })

  test('an upgrade between the text and the signature decides the sign-in under way', async () => {
    const all = await parts()
    const { client } = await start(all.chain)
    const account = await makeSolady(all)
    await account.deploy()
    const old = account.unwrapped('1')
    const sign = async (text: string) => {
      const signed = await old.sign(text)
      await account.upgrade()
      return signed
    }
    expect(await codeOf(client({ ...old, sign }).signInWallet())).toBe('SIGNATURE_INVALID')
  })

  test('a delegation that is taken back leaves the key, which is another user', async () => {
    const all = await parts()
    const { client } = await start(all.chain)
    const account = await makeDelegated(all)
    const userId = async (wallet: Wallet) => (await client(wallet).signInWallet()).session.userId
    const [byCode, byKey] = [await userId(account.wallet), await userId(account.keyed)]
    expect(byCode).not.toBe(byKey)
    await account.undelegate()
    expect(await codeOf(client(account.wallet).signInWallet())).toBe('SIGNATURE_INVALID')
    expect(await userId(account.keyed)).toBe(byKey)
  })

  test('an owner removed between approve and finalize has approved; artifacts no longer verify', async () => {
    const all = await parts()
    const { chain } = all
    const { url, client } = await start(chain)
    const safe = await makeSafe(all, false)
    await safe.deploy()
    const [removed, left] = safe.owners
    const phone = client(safe.wallet)
    const approved = async (kind: 'login' | 'sign') => {
      const order = await phone.startOrder({ kind })
      await approve(phone, order.claimUrl)
      return order
    }
    const artifactOf = async (order: DesktopOrder) => {
      const done = await phone.finalizeOrder(order)
      if (done.kind !== 'sign') throw new Error(done.kind)
      return done.proofArtifact
    }
    const options = { appName: 'Countersign', origin: url, evmRpc: { [chain.id]: chain.url } }
    const verdict = (artifact: ProofArtifact) =>
      verifyProofArtifact(artifact, options).then(
        ({ address }) => address,
        ({ reason }) => reason,
      )
    const early = await artifactOf(await approved('sign'))
    expect(await verdict(early)).toBe(safe.identity)
    const [login, sign, open] = [
      await approved('login'),
      await approved('sign'),
      await phone.startOrder({ kind: 'sign' }),
    ]
    await safe.removeFirst()

    const done = await phone.finalizeOrder(login)
    expect(done.kind === 'login' && done.session.address).toBe(safe.identity)
    const late = await artifactOf(sign)
    expect(late.address).toBe(safe.identity)
    for (const artifact of [early, late]) expect(await verdict(artifact)).toBe('SIGNATURE_INVALID')
    expect(await codeOf(approve(client(safe.signedBy(removed)), open.claimUrl))).toBe('SIGNATURE_INVALID')
    expect(await codeOf(phone.signInWallet())).toBe('SIGNATURE_INVALID')
    expect((await client(safe.signedBy(left)).signInWallet()).session.address).toBe(safe.identity)
  })

  describe('a chain that is reorganised', () => {
    test('between the text and the signature, so that the wallet is gone, refuses the sign-in', async () => {
      const all = await parts()
      const { client: chainClient } = all.chain
      const { client } = await start(all.chain)
      const safe = await makeSafe(all, false)
      const id = await chainClient.snapshot()
      await safe.deploy()
      const sign = async (text: string) => {
        const signed = await safe.wallet.sign(text)
        await chainClient.revert({ id })
        return signed
      }
      expect(await codeOf(client({ ...safe.wallet, sign }).signInWallet())).toBe('SIGNATURE_INVALID')
      await safe.deploy()
      expect((await client(safe.wallet).signInWallet()).session.address).toBe(safe.identity)
    })

    test.each(['eth_getCode', 'eth_call'])('before %s, within one check, refuses it too', async (method) => {
      const all = await parts()
      const { client: chainClient } = all.chain
      const safe = await makeSafe(all, false)
      const id = await chainClient.snapshot()
      await safe.deploy()
      let reverts = true
      const url = await between(all.chain, async (asked) => {
        if (asked !== method || !reverts) return
        reverts = false
        await chainClient.revert({ id })
      })
      const { client } = await start(all.chain, { evmRpc: { [all.chain.id]: url } })
      expect(await codeOf(client(safe.wallet).signInWallet())).toBe('SIGNATURE_INVALID')
      expect(reverts).toBe(false)
    })

    test('so that the wallet is there before the question to its factory, signs it in by its code', async () => {
      const all = await parts()
      const account = await makeSolady(all)
      let deploys = true
      const url = await between(all.chain, async (asked) => {
        if (asked !== 'eth_call' || !deploys) return
        deploys = false
        await account.deploy()
      })
      const { client } = await start(all.chain, { evmRpc: { [all.chain.id]: url } })
      expect((await client(account.wallet).signInWallet()).session.address).toBe(account.identity)
      expect(deploys).toBe(false)
    })

    test('after a sign-in leaves its session, and owners are those of the chain that holds', async () => {
      const all = await parts()
      const { client: chainClient } = all.chain
      const { client } = await start(all.chain)
      const safe = await makeSafe(all, false)
      await safe.deploy()
      const id = await chainClient.snapshot()
      await safe.removeFirst()
      const page = client(safe.signedBy(safe.owners[1]))
      const { session } = await page.signInWallet()
      await chainClient.revert({ id })
      expect(await codeOf(page.signInWallet())).toBe('SIGNATURE_INVALID')
      expect((await client(safe.wallet).signInWallet()).session.userId).toBe(session.userId)
      expect(await page.getCurrentSession()).toMatchObject({ id: session.id })
    })

    // Hardhat 3 has no hardhat_reset.
    test('to its beginning has neither wallet nor factory', async () => {
      const all = await parts()
      const { client: chainClient } = all.chain
      const { client } = await start(all.chain)
      const id = await chainClient.snapshot()
      const safe = await makeSafe(all, true)
      const sign = async (text: string) => {
        await chainClient.revert({ id })
        return await safe.wallet.sign(text)
      }
      expect((await client(safe.wallet).signInWallet()).session.address).toBe(safe.identity)
      expect(await codeOf(client({ ...safe.wallet, sign }).signInWallet())).toBe('SIGNATURE_INVALID')
    })
  })
})

/** A JSON-RPC server before a chain's, which does something first for each method. Resolves with its address. */
async function between(chain: Chain, before: (method: string) => Promise<void>): Promise<string> {
  return await listening(
    createServer(async (request, response) => {
      const body = await text(request)
      await before(JSON.parse(body).method)
      const answer = await fetch(chain.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
    }),
  )
}
