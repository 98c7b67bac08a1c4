/** The least sign-in behind connect-node, as its documentation has it, and a watch that sends one message and waits. */
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { OrderKind, OrderService, OrderStatus } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { listen } from './listen.ts'
import { challengeMessage, LeastSignIn, sessionMessage } from './sign-in.ts'

const [redisUrl = '', protocol] = process.argv.slice(2)
const signIn = await LeastSignIn.open(redisUrl)
const stop = Promise.withResolvers<void>()

const handler = connectNodeAdapter({
  routes(router) {
    router.rpc(SignInService.method.issueNonce, async (_request, { requestHeader }) =>
      challengeMessage(await signIn.issue(requestHeader.get('origin') ?? '')),
    )
    router.rpc(SignInService.method.verifySignIn, async (request) => {
      const { token, session } = await signIn.verify(request, { ip: '', userAgent: '' })
      return { ok: true, token, session: sessionMessage(session) }
    })
    router.rpc(SessionService.method.getCurrentSession, async (_request, { requestHeader }) => ({
      session: sessionMessage(await signIn.session(requestHeader.get('authorization') ?? '')),
    }))
    router.rpc(OrderService.method.watchOrder, async function* () {
      const event = { sequence: 1, status: OrderStatus.CREATED, kind: OrderKind.LOGIN }
      yield { ...event, at: BigInt(Date.now()) }
      await stop.promise
    })
  },
})
// Connections are idle while others have their turn.
listen(protocol === 'http2' ? createHttp2Server(handler) : createServer({ keepAliveTimeout: 0 }, handler))
process.once('SIGTERM', () => process.exit())
