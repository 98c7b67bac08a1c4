/** The desktop, a process of its own: starts an order, shows it, watches it, finalizes it. */
import { once } from 'node:events'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { renderUnicodeCompact } from 'uqr'
import {
  OrderKind,
  OrderService,
  OrderStatus,
  OrderStatusSchema,
} from '../../gen/client/countersign/v1/order_service_pb.ts'
import { done, indented, short } from './print.ts'

const [url, kind, shows] = process.argv.slice(2) as [string, 'login' | 'sign', 'code' | undefined]
const orders = createClient(OrderService, createGrpcTransport({ baseUrl: url }))

const order = await orders.startOrder(
  kind === 'login'
    ? { kind: OrderKind.LOGIN, displayTitle: 'Sign in to the tulip shop', returnTo: '/welcome' }
    : {
        kind: OrderKind.SIGN,
        displayTitle: 'Confirm order 1042',
        displaySummary: '3 tulips, to be delivered on Friday',
        payload: JSON.stringify({ order: 1042, items: { tulips: 3 }, delivery: 'Friday' }),
      },
)
const compared = order.confirmationCode === '' ? '' : `, and ${order.confirmationCode} to compare`
done(`computer: StartOrder; it shows a code to scan${compared}`)
if (shows === 'code') indented(renderUnicodeCompact(order.claimUrl, { ecc: 'L', border: 1 }))
// The parent hands the claim URL to the phone, in place of the camera, and the return code back, in place of the user.
const typed: Promise<{ returnCode: string }[]> = once(process, 'message')
process.send?.({ claimUrl: order.claimUrl })

const holder = { orderId: order.orderId, desktopToken: order.desktopToken }
const seen: (string | undefined)[] = []
for await (const event of orders.watchOrder(holder)) {
  if (event.heartbeat) continue
  seen.push(OrderStatusSchema.value[event.status]?.localName.toLowerCase())
  if (event.status !== OrderStatus.APPROVED) continue
  let returnCode: string | undefined
  if (event.returnCodeRequired) {
    returnCode = (await typed)[0]?.returnCode
    done(`computer: its user enters ${returnCode}`)
  }
  const result = await orders.finalizeOrder({ ...holder, ...(returnCode === undefined ? {} : { returnCode }) })
  if (result.proofArtifact === undefined) {
    done(`computer: FinalizeOrder; signed in as ${result.session?.address}, goes to ${result.redirectTo}`)
  } else {
    const { signatureHex, payload } = result.proofArtifact
    done(`computer: FinalizeOrder; a proof that anyone can check offline: ${short(signatureHex)} of ${payload}`)
  }
}
done(`computer: saw ${seen.join(', ')}`)
process.disconnect?.()
