// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createAuthClient } from 'better-auth/client'
import {
  CountersignClientError,
  crossDeviceClient,
  type LinkedWallet,
  nimiqHub,
  type StartedOrder,
  walletSignInClient,
} from 'countersign/better-auth/client'

const client = createAuthClient({
  plugins: [walletSignInClient({ appName: 'Example', endpointPrefix: '/wallet' }), crossDeviceClient()],
})

try {
  const { session } = await client.signInWallet()
  const linked: LinkedWallet = await client.linkWallet()
  console.log(session.userId, linked.address, client.readStoredToken())
} catch (error) {
  if (error instanceof CountersignClientError) console.log(error.code)
}
const order: StartedOrder = await client.startOrder({ kind: 'sign', displayTitle: 'Terms' })
for await (const { sequence } of client.watchOrder(order)) console.log(sequence.toFixed())
const finalized = await client.finalizeOrder(order)
// @ts-expect-error: only a sign order has a proof.
finalized.proofArtifact
if (finalized.kind === 'sign') console.log(finalized.proofArtifact.message)
export const hub: typeof nimiqHub = nimiqHub
