/** A sign-in service as connect-node's documentation has one, with a bare floor behind it. */
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { SessionService } from '../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../gen/server/countersign/v1/sign_in_service_pb.ts'
import { listen } from './bare.ts'
import { challengeMessage, sessionMessage } from './floor-messages.ts'
import { FloorSignIn } from './floor-sign-in.ts'
import { openSteps } from './floor-steps.ts'

const [store = '', protocol] = process.argv.slice(2)
const signIn = new FloorSignIn(await openSteps(store), 'bare')

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
  },
})
// Connections are idle while others have their turn.
listen(protocol === 'http2' ? createHttp2Server(handler) : createServer({ keepAliveTimeout: 0 }, handler))
process.once('SIGTERM', () => process.exit())
