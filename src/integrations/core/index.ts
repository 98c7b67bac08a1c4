/**
 * `countersign/core`: wallet sign-in without the service, for applications that keep challenges and sessions
 * themselves.
 */

export type { SignatureAdapter, SignatureKind } from '../../core/wallet/kind.ts'
export { signatureAdapter } from '../../core/wallet/signature.ts'
export type {
  Proof,
  ProvenIdentity,
  RemoteChecks,
  SignatureCurve,
  SignatureVerifier,
  SignInForm,
  StartWarning,
  WalletAccount,
  WalletAdapter,
  WalletNamed,
} from '../../core/wallet/wallet.ts'
export {
  type CodeName,
  CountersignError,
  type CountersignErrorOptions,
  type ErrorMetadata,
  type ErrorReason,
} from '../../shared/errors.ts'
export {
  createSignInChallenge,
  type SignInAdapterOptions,
  type SignInChallenge,
  type SignInChallengeOptions,
  type VerifySignInOptions,
  verifySignIn,
} from './sign-in.ts'
