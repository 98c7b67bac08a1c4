import { verifyMessage } from 'viem'
import { describe, expect, test } from 'vitest'
import { type EthereumProvider, ethereumWallet } from '../../../src/browser/wallets/index.ts'
import { codeOf } from '../client/support.ts'
import { declined, TestEthereum } from './wallets.ts'

const text = 'shop.example wants you to sign in …\nZeile 2: Grüße 🦊'

function connected() {
  const provider = new TestEthereum()
  return { provider, wallet: ethereumWallet(provider) }
}

/** A wallet's answers to requests for a signature. */
const sign = async (wallet: { sign(text: string): unknown }): Promise<unknown> => await wallet.sign(text)

describe('a wallet of Ethereum', () => {
  test('names its account and chain, and signs the text for it', async () => {
    const { provider, wallet } = connected()
    expect(await wallet.getAccount()).toEqual({ address: provider.address, chainId: '1' })
    const { signature, address } = (await sign(wallet)) as { signature: `0x${string}`; address: `0x${string}` }
    expect(address).toBe(provider.address)
    expect(await verifyMessage({ address, message: text, signature })).toBe(true)
    expect(await verifyMessage({ address, message: `${text}.`, signature })).toBe(false)
  })

  test.each([
    ['0x2105', '8453'],
    ['0xAA36a7', '11155111'],
    ['137', '137'],
    [10, '10'],
  ])('on chain %j is on chain %s', async (chainId, expected) => {
    const { provider, wallet } = connected()
    provider.chainId = chainId
    expect((await wallet.getAccount()).chainId).toBe(expected)
  })

  test.each([undefined, '', 'mainnet', -1, 1.5, {}])(
    'a wallet of Ethereum that says it is on chain %j fails',
    async (chainId) => {
      const { provider, wallet } = connected()
      provider.chainId = chainId
      expect(await codeOf(wallet.getAccount())).toBe('WALLET_FAILED')
    },
  )

  test.each([{ accounts: [] }, { accounts: ['0x12'] }, { accounts: 'none' }, { accounts: undefined }])(
    'that answers $accounts when it is asked for accounts fails',
    async ({ accounts }) => {
      const provider: EthereumProvider = {
        request: async ({ method }) => (method === 'eth_chainId' ? '0x1' : accounts),
      }
      expect(await codeOf(ethereumWallet(provider).getAccount())).toBe('WALLET_FAILED')
    },
  )

  test('signs only with the account that it was asked for: after a switch it is not even asked', async () => {
    const { provider, wallet } = connected()
    await wallet.getAccount()
    provider.switchAccount()
    expect(await codeOf(sign(wallet))).toBe('WALLET_WRONG_KEY')
    expect(provider.calls).not.toContain('personal_sign')
    provider.switchAccount()
    expect(await sign(wallet)).toHaveProperty('signature')
  })

  test('signs only on the chain that it was asked for', async () => {
    const { provider, wallet } = connected()
    await wallet.getAccount()
    provider.switchChain('0x89')
    expect(await codeOf(sign(wallet))).toBe('WALLET_WRONG_KEY')
    expect(provider.calls).not.toContain('personal_sign')
    await wallet.getAccount()
    expect(await sign(wallet)).toHaveProperty('signature')
  })

  test('a wallet of Ethereum that was locked in between asks its user to unlock it, and signs', async () => {
    const { provider, wallet } = connected()
    await wallet.getAccount()
    provider.lock()
    const asked: string[] = []
    provider.onAsked = (what) => void asked.push(what)
    expect(await sign(wallet)).toHaveProperty('signature')
    expect(asked).toEqual(['connect', 'sign'])
  })

  test('a wallet of Ethereum that stays locked has been declined', async () => {
    const { provider, wallet } = connected()
    await wallet.getAccount()
    provider.lock()
    provider.onAsked = declined
    expect(await codeOf(sign(wallet))).toBe('WALLET_DECLINED')
  })
})

describe("a wallet's refusal", () => {
  test.each([
    [4001, 'WALLET_DECLINED'],
    [4100, 'WALLET_DECLINED'],
    [-32002, 'WALLET_BUSY'],
    [4900, 'WALLET_FAILED'],
    [4901, 'WALLET_FAILED'],
    [-32603, 'WALLET_FAILED'],
  ])('with code %i, in whatever language, is %s', async (code, expected) => {
    const { provider, wallet } = connected()
    provider.onAsked = () => {
      throw { code, message: 'нет' }
    }
    expect(await codeOf(wallet.getAccount())).toBe(expected)
    expect(await codeOf(sign(wallet))).toBe(expected)
  })
})

describe('a page that listens to account switches', () => {
  function listening() {
    const { provider, wallet } = connected()
    const told: unknown[] = []
    const stop = wallet.onAccountChange((account) => told.push(account))
    return { provider, wallet, told, stop }
  }

  test('is told of another account, of another chain, and of none', async () => {
    const { provider, wallet, told } = listening()
    await wallet.getAccount()
    provider.switchAccount()
    provider.switchChain('0x89')
    provider.lock()
    const [, second] = provider.accounts
    expect(told).toEqual([
      { address: second?.address, chainId: '1' },
      { address: second?.address, chainId: '137' },
      undefined,
    ])
  })

  test('is not told of what it asked for itself, nor of what has not changed', async () => {
    const { provider, wallet, told } = listening()
    await wallet.getAccount()
    provider.tell('accountsChanged', [provider.address.toLowerCase()])
    provider.tell('chainChanged', '0x01')
    provider.tell('chainChanged', 'nonsense')
    expect(told).toEqual([])
  })

  test('is told nothing any more once it has stopped listening', async () => {
    const { provider, wallet, told, stop } = listening()
    await wallet.getAccount()
    stop()
    provider.switchAccount()
    expect(told).toEqual([])
    expect(provider.listeners.size).toBe(0)
  })

  test('listens to a wallet that has no events, in vain', () => {
    expect(() => ethereumWallet({ request: async () => [] }).onAccountChange(() => {})()).not.toThrow()
  })
})
