// A backend that serves signed-in users only: it asks Countersign about each token, over gRPC.
//   COUNTERSIGN_URL=http://localhost:8080 PORT=3000 node examples/backend/main.ts
// In a project of your own, import SessionService from 'countersign/gen/session_service_pb'.
import { createServer } from 'node:http'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { SessionService } from '../../gen/client/countersign/v1/session_service_pb.ts'

const { COUNTERSIGN_URL: baseUrl = 'http://localhost:8080', PORT: port = '3000' } = process.env
const sessions = createClient(SessionService, createGrpcTransport({ baseUrl }))

const server = createServer(async (request, response) => {
  const answer = (status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(JSON.stringify(body))
  }
  const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
  if (token === undefined) return answer(401, { message: 'Send your session token as Authorization: Bearer' })
  try {
    const { active, session } = await sessions.introspectSession({ token }, { timeoutMs: 3000 })
    if (!active || session === undefined) return answer(401, { message: 'Sign in again' })
    // A session says who this is. What the user may do is for this application to decide.
    answer(200, { userId: session.userId, address: session.address })
  } catch {
    // Not 401: nothing is wrong with the token, and a client would throw it away.
    answer(503, { message: 'Sign-ins cannot be checked at the moment' })
  }
})

server.listen(Number(port), 'localhost', () => {
  const address = server.address()
  if (typeof address === 'object') console.log(`http://localhost:${address?.port}`)
})
