/** Verifies proof artifacts, in browsers and on servers. Everything that is not named here is private. */

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
} from '../../core/wallet/wallet.ts'
export type { ProofArtifact, ProofArtifactFields } from './artifact.ts'
export { ProofError, type ProofErrorReason } from './artifact.ts'
export type { SignedText } from './signed-text.ts'
export type { ProofOptions, ProofOwner } from './verify.ts'
export { type VerifiedProof, verifyProofArtifact } from './verify.ts'
