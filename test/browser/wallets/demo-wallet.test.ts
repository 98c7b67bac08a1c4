import { afterEach, expect, test, vi } from 'vitest'
import { readWalletAnswer } from '../../../src/browser/client/wallet-answer.ts'
import { forgetDemoWallet, openDemoWallet } from '../../../src/browser/wallets/demo-wallet.ts'
import { walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { Prover } from '../../../src/core/wallet/prover.ts'
import { challengeOf } from '../../support/challenge.ts'

afterEach(() => {
  forgetDemoWallet()
  vi.unstubAllGlobals()
})

function stubStorage(): Map<string, string> {
  const entries = new Map<string, string>()
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => entries.get(key) ?? null,
    setItem: (key: string, value: string) => entries.set(key, value),
    removeItem: (key: string) => entries.delete(key),
  })
  return entries
}

test.each(['nimiq', 'ed25519'])('a demo %s wallet proves itself to the service', async (adapterId) => {
  stubStorage()
  const wallet = openDemoWallet(adapterId)!
  const message = 'Countersign requests authentication\nAction: auth.login\nhéllo 😀'
  const { publicKeyHex, signatureHex } = readWalletAnswer(wallet.sign(message))
  const prover = new Prover(walletAdapters(['nimiq', 'ed25519']), nativeVerifier)
  const proof = { publicKeyHex, signatureHex, address: wallet.address }
  const { identity } = await prover.prove(challengeOf(message), proof, { pageOrigin: undefined })
  expect(identity).toMatchObject({ adapterId, publicKeyHex: wallet.publicKeyHex, address: wallet.address })
})

test('it is the same wallet each time, until it is thrown away', () => {
  const entries = stubStorage()
  const { address } = openDemoWallet()!
  expect(openDemoWallet()!.address).toBe(address)
  expect(entries.size).toBe(1)
  forgetDemoWallet()
  expect(entries.size).toBe(0)
  expect(openDemoWallet()!.address).not.toBe(address)
})

test('where storage is blocked, it lives as long as the page', () => {
  vi.stubGlobal('localStorage', undefined)
  const { address } = openDemoWallet()!
  expect(openDemoWallet()!.address).toBe(address)
  forgetDemoWallet()
  expect(openDemoWallet()!.address).not.toBe(address)
})

test('what is kept and no key is replaced', () => {
  const entries = stubStorage()
  const { address } = openDemoWallet()!
  entries.set([...entries.keys()][0]!, 'not hex')
  expect(openDemoWallet()!.address).not.toBe(address)
})

test('it is no wallet of a kind it does not know', () => {
  expect(openDemoWallet('other')).toBe(undefined)
})
