// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createAuthClient } from 'better-auth/client'
import {
  CountersignClientError,
  crossDeviceClient,
  type LinkedWallet,
  nimiqHub,
  type StartedOrder,
  type WalletSignInAnswer,
  type WalletSignInError,
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
const answer: WalletSignInAnswer = await client.signIn.wallet({ appName: 'Example' })
if (answer.error === null) console.log(answer.data.session.address)
else {
  const error: WalletSignInError = answer.error
  console.log(error.code, error.status, error.message)
}
await client.signIn.email({ email: 'a@example.com', password: '…' })
const order: StartedOrder = await client.startOrder({ kind: 'sign', displayTitle: 'Terms' })
for await (const { sequence } of client.watchOrder(order)) console.log(sequence.toFixed())
const finalized = await client.finalizeOrder(order)
// @ts-expect-error: only a sign order has a proof.
finalized.proofArtifact
if (finalized.kind === 'sign') console.log(finalized.proofArtifact.message)
export const hub: typeof nimiqHub = nimiqHub
