// Checks what a payer signed: docs/proofs.md.
import { type ProofArtifact, ProofError, type VerifiedProof, verifyProofArtifact } from 'countersign/proof'

interface Invoice {
  readonly payer: { readonly adapterId: string; readonly address: string }
  /** What the order was started with. */
  readonly payload: string
  readonly createdAt: number
}

/** What the payer signed, or `undefined`. `artifact` is what a browser sent. */
export async function approvalOf(invoice: Invoice, artifact: ProofArtifact): Promise<VerifiedProof | undefined> {
  try {
    return await verifyProofArtifact(artifact, {
      appName: 'Example',
      origin: 'https://app.example',
      payload: invoice.payload,
      owner: invoice.payer,
      notBefore: invoice.createdAt,
      adapters: ['nimiq', 'ethereum'],
    })
  } catch (error) {
    if (error instanceof ProofError && error.reason !== 'EVM_RPC_UNAVAILABLE') return undefined
    throw error
  }
}
