/** The phone, a process of its own: claims an order by its claim URL, asks its user, approves with its wallet. */
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { OrderService } from '../../gen/client/countersign/v1/order_service_pb.ts'
import { done } from './print.ts'
import { makeWallet } from './wallet.ts'

const [url, claimUrl] = process.argv.slice(2) as [string, string]
const orders = createClient(OrderService, createConnectTransport({ baseUrl: url, httpVersion: '2' }))
const { pathname, hash } = new URL(claimUrl)
const orderId = pathname.split('/').at(-1) as string
const claimToken = new URLSearchParams(hash.slice(1)).get('token') as string
const wallet = makeWallet()

const { challengeToken } = await orders.claimOrder({ orderId, claimToken })
const challenge = await orders.getOrderChallenge({ orderId, challengeToken })
const same = challenge.confirmationCode === undefined ? '' : `, with the same ${challenge.confirmationCode}`
done(`phone: ClaimOrder; it shows "${challenge.displayTitle}" of ${challenge.requester?.origin}${same}`)
const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(challenge.message) }
const { returnCode } = await orders.approveOrder({ orderId, challengeToken, proof })
done(`phone: ApproveOrder; its wallet has signed${returnCode === undefined ? '' : `, and it shows ${returnCode}`}`)
if (returnCode !== undefined) {
  process.send?.({ returnCode })
}
