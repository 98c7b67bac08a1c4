import type { Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { createCountersignClient, type Wallet } from '../../../src/browser/client/index.ts'
import { countOf, startChain } from '../../support/evm.ts'
import { startService } from '../../support/service.ts'
import vectors from '../../vectors/ethereum.json' with { type: 'json' }
import { codeOf, connectClient, fetchFrom, MapStorage } from './support.ts'

const owner = privateKeyToAccount(vectors.contract.ownerPrivateKey as Hex)
const newAccount = () => privateKeyToAccount(generatePrivateKey())

/** A wallet at this address, with a signer that need not be its own. */
function walletOf(address: string, signer: { signMessage(given: { message: string }): Promise<Hex> }): Wallet {
  return {
    adapterId: 'ethereum',
    getAccount: () => ({ address, chainId: '1' }),
    sign: async (message) => (await signer.signMessage({ message })).slice(2),
  }
}

test.each([
  ['REST', createCountersignClient],
  ['Connect', connectClient],
])(
  'over %s, an order without further checks of contract wallets is told at once, and takes another wallet',
  async (_, create) => {
    const chain = await startChain()
    const contract = await chain.deploy(vectors.contract.runtime)
    const { url } = await startService({ adapters: ['ethereum'], evmRpc: { 1: chain.url } })
    let approvals = 0
    const fetcher = fetchFrom(url)
    const fetch: typeof globalThis.fetch = (input, init) => {
      if (/approve(order)?$/i.test(String(input))) approvals++
      return fetcher(input, init)
    }
    const client = create({ baseUrl: url, fetch, storage: new MapStorage() })
    const order = await client.startOrder({ kind: 'login' })
    const phone = await client.claimOrder(order.claimUrl)
    const challenge = await client.getOrderChallenge(phone)
    const approve = (wallet: Wallet) => client.approveOrder(phone, { challenge, wallet })

    for (let i = 0; i < 3; i++)
      expect(await codeOf(approve(walletOf(contract, newAccount())))).toBe('SIGNATURE_INVALID')
    const beganAt = performance.now()
    // The right one, but nobody asks its contract any more.
    await expect(approve(walletOf(contract, owner))).rejects.toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterMs: undefined,
      message: expect.stringContaining('use another wallet'),
    })
    expect(approvals).toBe(4)
    expect(performance.now() - beganAt).toBeLessThan(10_000)
    expect(countOf(chain, 'eth_call')).toBe(3)

    const account = newAccount()
    expect((await approve(walletOf(account.address, account))).status).toBe('approved')
  },
)
