/**
 * The floor for watches over gRPC: bare connect-node on node:http2. A watch sends one message and waits, and ends with
 * another when the server is told to stop. Nothing is read, checked or looked at again.
 */
import { createServer } from 'node:http2'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { OrderKind, OrderService, OrderStatus } from '../gen/server/countersign/v1/order_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { listen } from './bare.ts'

const stop = Promise.withResolvers<void>()
const event = { sequence: 1, status: OrderStatus.CREATED, kind: OrderKind.LOGIN }
let watches = 0

const handler = connectNodeAdapter({
  routes(router) {
    router.rpc(SignInService.method.issueNonce, () => ({}))
    router.rpc(OrderService.method.watchOrder, async function* () {
      watches++
      yield { ...event, at: BigInt(Date.now()) }
      await stop.promise
      yield { ...event, at: BigInt(Date.now()), reconnect: true }
      // What was written last still has to leave the process.
      if (--watches === 0) setTimeout(() => process.exit(), 100)
    })
  },
})
listen(createServer(handler))
process.once('SIGTERM', () => {
  stop.resolve()
  if (watches === 0) process.exit()
})
