/** The phone, a process of its own: claims an order by its claim URL, asks its user, approves with its wallet. */
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { OrderService } from '../../gen/client/countersign/v1/order_service_pb.ts'
import { say } from './print.ts'
import { makeWallet } from './wallet.ts'

const [url, claimUrl] = process.argv.slice(2) as [string, string]
const orders = createClient(OrderService, createConnectTransport({ baseUrl: url, httpVersion: '2' }))
const { pathname, hash } = new URL(claimUrl)
const orderId = pathname.split('/').at(-1) as string
const claimToken = new URLSearchParams(hash.slice(1)).get('token') as string
const wallet = makeWallet()

const { challengeToken } = await orders.claimOrder({ orderId, claimToken })
say('ClaimOrder: this phone was first, and holds the order now')
const challenge = await orders.getOrderChallenge({ orderId, challengeToken })
say(`GetOrderChallenge: "${challenge.displayTitle}", asked by ${challenge.requester?.origin}`)
if (challenge.confirmationCode !== undefined) {
  say(`the phone shows the code ${challenge.confirmationCode}; it is the same, so its user approves`)
}
const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(challenge.message) }
const { returnCode } = await orders.approveOrder({ orderId, challengeToken, proof })
say(`ApproveOrder: the wallet ${wallet.address} has signed`)
if (returnCode !== undefined) {
  say(`the phone shows the code ${returnCode}, to be typed at ${challenge.requester?.origin} and nowhere else`)
  process.send?.({ returnCode })
}
