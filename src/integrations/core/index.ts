/**
 * `countersign/core`: wallet sign-in without the service, for applications that keep challenges and sessions
 * themselves.
 */

export type { SignatureVerifier } from '../../core/wallet/ed25519.ts'
export type { SignatureAdapter, SignatureCurve, SignatureKind } from '../../core/wallet/kind.ts'
export { signatureAdapter } from '../../core/wallet/signature.ts'
export type {
  Proof,
  ProvenIdentity,
  RemoteChecks,
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
