/**
 * Contract suites for those who write a store, a host or a wallet adapter of their own, and wallets for the tests of
 * applications. The suites run under any test runner that has `describe` and `test`. Everything that is not named here
 * is private.
 */

export { type AdapterContractOptions, describeAdapterContract } from './adapter.ts'
export { describeHostContract, type HostContractOptions, type OpenedHost } from './host.ts'
export type { TestRunner } from './runner.ts'
export { describeStoreContract, type StoreContractOptions } from './store.ts'
export {
  type ClientTestWallet,
  clientWallet,
  type Ed25519TestWallet,
  makeTestWallet,
  type TestWallet,
  type TestWalletOptions,
} from './wallet.ts'
