import { pick } from '../../../shared/defined-fields.ts'
import type { ProofArtifact } from '../../../shared/orders.ts'
import type { FinalizedOrder, Recipe } from './recipe.ts'

/** Fields that all orders of kind sign take. */
export const signFields = [
  ...(['displayTitle', 'displaySummary', 'payloadHash', 'payload'] as const),
  ...(['expectedPublicKeyHex', 'expectedAddress', 'requester'] as const),
]

/** Orders of kind sign that a phone scans: the desktop gets the wallet's proof. */
export const sign: Recipe<'sign'> = {
  label: 'orders of kind sign without inbox_user_id',
  action: 'order.approve',
  takes: [...signFields, 'computerKey'],
  scanned: true,
  keepsSignedText: true,

  async begin(input, { parts, request }) {
    return { requester: await parts.admission.requester(input, request, sign), own: { kind: 'sign' } }
  },

  finalize:
    async (_order, { parts, request }) =>
    async (finalized) => {
      await parts.computers.note(finalized.order, request)
      return { kind: 'sign', proofArtifact: artifactOf(finalized) }
    },

  subject: () => ({}),
}

/** The proof of a finalized order, with all that it takes to verify it. */
export function artifactOf({ order, proof }: FinalizedOrder): ProofArtifact {
  const { adapterId, publicKeyHex, address, signatureHex, message = order.message } = proof
  return { adapterId, publicKeyHex, address, signatureHex, message, ...pick(order, ['payloadHash', 'payload']) }
}
