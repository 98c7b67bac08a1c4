// A Connect server that serves signed-in users only, over Connect, gRPC-Web and, over HTTP/2, gRPC. To be short it has
// no protocol definition of its own, and answers a call of Countersign's.
//   COUNTERSIGN_URL=http://localhost:8080 PORT=3000 node examples/backend/connect.ts
import { createServer } from 'node:http'
import type { ConnectRouter } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { SessionService } from '../../gen/client/countersign/v1/session_service_pb.ts'
import { requireSession, sessionOf } from '../../src/integrations/backend/connect.ts'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'
import { sayWhere } from './listening.ts'

const { COUNTERSIGN_URL: url = 'http://localhost:8080', PORT: port = '3000' } = process.env
const verifier = createSessionVerifier({ url })

const routes = (router: ConnectRouter): ConnectRouter =>
  router.rpc(SessionService.method.getCurrentSession, (_request, context) => {
    const { userId, address } = sessionOf(context)
    return { session: { userId, address } }
  })

const handler = connectNodeAdapter({ interceptors: [requireSession(verifier)], routes })
const server = createServer(handler)
server.listen(Number(port), 'localhost', () => sayWhere(server.address()))
