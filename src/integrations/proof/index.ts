/** Verifies proof artifacts, in browsers and on servers. Everything that is not named here is private. */

export type { SignatureVerifier } from '../../core/wallet/ed25519.ts'
export type { SignatureCurve } from '../../core/wallet/kind.ts'
export type {
  Proof,
  ProvenIdentity,
  RemoteChecks,
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
