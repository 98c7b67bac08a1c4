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
import { indented, say, short } from './print.ts'

const [url, kind] = process.argv.slice(2) as [string, 'login' | 'sign']
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
say(`StartOrder: the order ${order.orderId}, kind ${kind}. Its claim URL, for the phone to scan:`)
indented(renderUnicodeCompact(order.claimUrl))
indented(order.claimUrl)
if (order.confirmationCode !== '') {
  say(`the desktop shows the code ${order.confirmationCode}, for the user to compare with the phone`)
}
// The parent hands the claim URL to the phone, in place of the camera, and the return code back, in place of the user.
const typed: Promise<{ returnCode: string }[]> = once(process, 'message')
process.send?.({ claimUrl: order.claimUrl })

const holder = { orderId: order.orderId, desktopToken: order.desktopToken }
for await (const event of orders.watchOrder(holder)) {
  if (event.heartbeat) continue
  say(`event ${event.sequence}: ${OrderStatusSchema.value[event.status]?.localName.toLowerCase()}`)
  if (event.status !== OrderStatus.APPROVED) continue
  let returnCode: string | undefined
  if (event.returnCodeRequired) {
    returnCode = (await typed)[0]?.returnCode
    say(`the user types the code of the phone: ${returnCode}`)
  }
  const result = await orders.finalizeOrder({ ...holder, ...(returnCode === undefined ? {} : { returnCode }) })
  if (result.proofArtifact === undefined) {
    say(`FinalizeOrder: a session for ${result.session?.address}, token ${short(result.token ?? '')}`)
    say(`               the desktop goes to ${result.redirectTo}`)
  } else {
    const { publicKeyHex, signatureHex, message, payload } = result.proofArtifact
    say('FinalizeOrder: a proof artifact, which anyone can check offline:')
    indented(`publicKeyHex  ${publicKeyHex}\nsignatureHex  ${short(signatureHex)}\npayload       ${payload}\nmessage`)
    indented(message.replaceAll(/^/gm, '  '))
  }
}
process.disconnect?.()
