// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import * as node from 'node:test'
import { type Host, openStore, type WalletAdapter } from 'countersign'
import type { Wallet } from 'countersign/client'
import {
  clientWallet,
  describeAdapterContract,
  describeHostContract,
  describeStoreContract,
  type Ed25519TestWallet,
  makeTestWallet,
  type TestRunner,
  type TestWallet,
} from 'countersign/testing'

declare const adapter: WalletAdapter
declare const host: Host

const runner: TestRunner = node
const wallet: Ed25519TestWallet = makeTestWallet({ adapterId: 'ed25519' })
export const forClient: Wallet = clientWallet(wallet)
export const signature: string = wallet.sign('message')
// @ts-expect-error: an adapter without a test wallet; make one of your own.
makeTestWallet({ adapterId: 'ethereum' })

describeStoreContract(runner, {
  name: 'a store',
  open: async () => [await openStore('sqlite:./a.db'), await openStore('sqlite:./a.db')],
})
describeHostContract(runner, {
  name: 'a host',
  trustedOrigin: 'https://app.example',
  open: async () => ({ hosts: [host, host], close: async () => {} }),
})
describeAdapterContract(runner, { adapter, makeWallet: async (): Promise<TestWallet> => wallet })
describeAdapterContract(runner, {
  adapter,
  makeWallet: () => wallet,
  spellings: (address) => [address.toLowerCase()],
  cutAddressIsMalformed: false,
  otherSignatureBytes: [64],
  chainId: '1',
})
// @ts-expect-error: one handle is not enough; the same one may be given twice.
describeStoreContract(runner, { name: 'a store', open: async () => [await openStore('sqlite::memory:')] })
