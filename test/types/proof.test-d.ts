// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import type { WalletAdapter } from 'countersign'
import type { FinalizedOrder } from 'countersign/client'
import type { ProofArtifact as GeneratedArtifact } from 'countersign/gen/order_service_pb'
import {
  type ProofArtifact,
  ProofError,
  type ProofErrorReason,
  type ProofOptions,
  type VerifiedProof,
  verifyProofArtifact,
} from 'countersign/proof'

declare const order: FinalizedOrder
declare const generated: GeneratedArtifact
declare const adapter: WalletAdapter
const options: ProofOptions = { appName: 'Example', origin: 'https://app.example' }

export async function verify(artifact: ProofArtifact, payload: string): Promise<string> {
  try {
    const proof: VerifiedProof = await verifyProofArtifact(artifact, {
      ...options,
      payload,
      owner: { adapterId: 'nimiq', address: 'NQ71 CT4K 7R9R EHSB 7HY9 TSTP XNRQ L2RK 8U4U' },
      notBefore: Date.now() - 86_400_000,
      adapters: ['nimiq', adapter],
      evmRpc: { '1': 'https://rpc.example' },
    })
    const { orderId, issuedAt }: { orderId: string; issuedAt: number } = proof
    return `${orderId} ${issuedAt} ${proof.payloadHash ?? ''}`
  } catch (error) {
    if (!(error instanceof ProofError)) throw error
    const reason: ProofErrorReason = error.reason
    return reason
  }
}

if (order.kind === 'sign') await verifyProofArtifact(order.proofArtifact, options)
await verifyProofArtifact(generated, options)
const snakeCase = { public_key_hex: '', signature_hex: '00', address: '0x', message: '', adapter_id: 'ethereum' }
await verifyProofArtifact(snakeCase, options)
await verifyProofArtifact(JSON.parse('{}'), options)
// @ts-expect-error: the origin has to be named.
await verifyProofArtifact(snakeCase, { appName: 'Example' })
// @ts-expect-error: an option that is there has a value.
await verifyProofArtifact(snakeCase, { ...options, payloadHash: undefined })
// @ts-expect-error: spellings are not mixed.
await verifyProofArtifact({ ...snakeCase, message: undefined }, options)
