/**
 * Sign-ins for pages that connect wallets by RainbowKit, AppKit, wagmi or another stack: the public API of
 * `countersign/client/siwe`. Everything that is not listed here is private.
 */

export { type RainbowKitClient, type RainbowKitFunctions, rainbowKit } from './rainbow-kit.ts'
export {
  type FormAccount,
  type FormAdapterId,
  type FormNonce,
  type FormNonceOptions,
  type SignedForm,
  type SignInFormClient,
  type SignInFormSteps,
  signInForm,
} from './sign-in-steps.ts'
export {
  type Siwx,
  type SiwxClient,
  type SiwxData,
  type SiwxMessage,
  type SiwxOptions,
  type SiwxSession,
  siwx,
} from './siwx.ts'
