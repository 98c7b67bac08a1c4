/**
 * The public API of the client over Connect, gRPC-Web or gRPC: the names of `index.ts` over a transport of the caller.
 */

export {
  type CountersignClientOptions,
  createCountersignClient,
  type SignInWithWalletOptions,
  signInWithWallet,
} from './connect-client.ts'
export * from './index.ts'
