// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import type { WalletAdapter } from 'countersign'
import {
  type Approval,
  ApprovalError,
  type ApprovalErrorReason,
  type Approvals,
  type ApprovalsOptions,
  type ApprovalWallet,
  createApprovals,
  type Decision,
} from 'countersign/approvals'
import { type VerifiedProof, verifyProofArtifact } from 'countersign/proof'

declare const adapter: WalletAdapter
const options: ApprovalsOptions = {
  url: 'https://sign.example',
  startKey: 'a-start-key-of-thirty-two-letters',
  appName: 'Example',
  origin: 'https://app.example',
}
const approvals: Approvals = createApprovals({
  ...options,
  adapters: ['nimiq', adapter],
  evmRpc: { '1': 'https://rpc.example' },
  fetch: (url, init) => fetch(url, init),
})
const wallets: readonly ApprovalWallet[] = [{ adapterId: 'nimiq', address: 'NQ71 CT4K 7R9R EHSB 7HY9 TSTP XNRQ L2RK' }]

interface Transfer {
  readonly to: string
  readonly amount: number
}

export async function transfer(action: Transfer): Promise<string> {
  const approval: Approval<Transfer> = await approvals.ask({ userId: 'usr_1', wallets, title: 'Transfer', action })
  const { id, url, expiresAt, handle }: { id: string; url: string; expiresAt: number; handle: string } = approval
  try {
    const decision: Decision<Transfer> = await approval.decision({ signal: AbortSignal.timeout(60_000) })
    if (!decision.approved) {
      const why: 'declined' | 'expired' = decision.why
      return why
    }
    const { to, amount }: Transfer = decision.action
    const proof: VerifiedProof = await verifyProofArtifact(decision.artifact, {
      appName: options.appName,
      origin: options.origin,
      owner: decision.wallet,
    })
    return `${id} ${url} ${expiresAt} ${handle} ${to} ${amount} ${proof.orderId}`
  } catch (error) {
    if (!(error instanceof ApprovalError)) throw error
    const reason: ApprovalErrorReason = error.reason
    return `${reason} ${error.code ?? ''}`
  }
}

const resumed: Approval = await approvals.resume('handle', { wallets })
const decision = await resumed.decision()
if (decision.approved) {
  const action: unknown = decision.action
  // @ts-expect-error: what another process asked for has no type.
  decision.action.to
  console.log(action)
}
// @ts-expect-error: the wallets have to be named.
await approvals.ask({ userId: 'usr_1', title: 'Transfer', action: {} })
// @ts-expect-error: an artifact is never taken.
await approvals.ask({ userId: 'usr_1', wallets, title: 'Transfer', action: {}, artifact: {} })
// @ts-expect-error: a start key is needed.
createApprovals({ url: 'https://sign.example', appName: 'Example', origin: 'https://app.example' })
