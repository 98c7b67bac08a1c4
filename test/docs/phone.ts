import { createCountersignClient } from '../../src/browser/client/index.ts'
import { makeWallet } from '../support/wallet.ts'

/** What a phone does that has scanned a claim URL. */
export async function phone(claimUrl: string): Promise<void> {
  const client = createCountersignClient({ baseUrl: new URL(claimUrl).origin })
  const order = await client.claimOrder(claimUrl)
  const challenge = await client.getOrderChallenge(order)
  const wallet = makeWallet()
  await client.approveOrder(order, {
    challenge,
    wallet: { sign: async (text) => ({ publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(text) }) },
  })
}
