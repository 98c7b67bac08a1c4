/**
 * The public API for backends that run an action only after its user has signed exactly this action. Everything that is
 * not listed here is private. It needs nothing of Node, so it runs on edge runtimes.
 */

export type { WalletAdapter } from '../../core/wallet/wallet.ts'
export type { Fetcher } from '../backend/introspection.ts'
export type { ProofArtifact } from '../proof/artifact.ts'
export {
  type Approval,
  type ApprovalRequest,
  type Approvals,
  type ApprovalsOptions,
  type ApprovedAction,
  createApprovals,
  type Decision,
  type DecisionOptions,
  type RefusedAction,
  type ResumeOptions,
} from './approvals.ts'
export { ApprovalError, type ApprovalErrorOptions, type ApprovalErrorReason } from './error.ts'
export type { ApprovalWallet } from './wallets.ts'
