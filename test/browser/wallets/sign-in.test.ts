import { describe, expect, test } from 'vitest'
import { createCountersignClient } from '../../../src/browser/client/index.ts'
import { ethereumWallet, type SwitchingWallet, solanaWallet } from '../../../src/browser/wallets/index.ts'
import { startService } from '../../support/service.ts'
import { codeOf, fetchFrom, MapStorage } from '../client/support.ts'
import { TestEthereum, TestSolana } from './wallets.ts'

interface Made {
  readonly wallet: SwitchingWallet
  readonly address: string
  readonly switchAccount: () => void
}

const kinds: Readonly<Record<string, () => Made>> = {
  'a wallet of Ethereum': () => {
    const provider = new TestEthereum()
    return {
      wallet: ethereumWallet(provider),
      address: provider.address,
      switchAccount: () => provider.switchAccount(),
    }
  },
  'a wallet of Solana': () => solana(new TestSolana()),
  'a wallet of Solana without solana:signIn': () => solana(new TestSolana({ without: ['solana:signIn'] })),
}

function solana(provider: TestSolana): Made {
  return {
    wallet: solanaWallet(provider),
    address: provider.account.address,
    switchAccount: () => provider.switchAccount(),
  }
}

async function clientFor(wallet: SwitchingWallet) {
  const { url } = await startService({ adapters: ['nimiq', 'ethereum', 'solana'] })
  return createCountersignClient({ baseUrl: url, storage: new MapStorage(), fetch: fetchFrom(url), wallet })
}

describe.each(Object.entries(kinds))('with %s', (_, make) => {
  test('a page signs in', async () => {
    const { wallet, address } = make()
    const client = await clientFor(wallet)
    const { session } = await client.signInWallet()
    expect(session).toMatchObject({ adapterId: wallet.adapterId, address })
  })

  test.each(['login', 'sign'] as const)('a phone approves an order of kind %s', async (kind) => {
    const { wallet, address } = make()
    const client = await clientFor(wallet)
    const order = await client.startOrder({ kind, displayTitle: 'Tulpen 🌷' })
    const claim = await client.claimOrder(order.claimUrl)
    const challenge = await client.getOrderChallenge(claim)
    await client.approveOrder(claim, { challenge })
    const done = await client.finalizeOrder(order)
    const signer = 'session' in done ? done.session : 'proofArtifact' in done ? done.proofArtifact : done.wallet
    expect(signer).toMatchObject({ adapterId: wallet.adapterId, address })
  })

  test('the account that the user switched to signs in the next time', async () => {
    const { wallet, address, switchAccount } = make()
    const client = await clientFor(wallet)
    await client.signInWallet()
    switchAccount()
    const { session } = await client.signInWallet()
    expect(session.address).not.toBe(address)
  })

  test('nothing is signed for an account that the user left in between', async () => {
    const { wallet, switchAccount } = make()
    const client = await clientFor({
      ...wallet,
      sign: (message) => {
        switchAccount()
        return wallet.sign(message)
      },
    })
    expect(await codeOf(client.signInWallet())).toBe('WALLET_WRONG_KEY')
  })
})
