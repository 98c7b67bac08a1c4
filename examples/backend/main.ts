// A backend on node:http that serves signed-in users only.
//   COUNTERSIGN_URL=http://localhost:8080 PORT=3000 node examples/backend/main.ts In a project of your own, import from
//   'countersign/backend'. Guards for Express, Fastify, Hono, Connect and gRPC are beside this.
import { createServer } from 'node:http'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'
import { sayWhere } from './listening.ts'

const { COUNTERSIGN_URL: url = 'http://localhost:8080', PORT: port = '3000' } = process.env
const verifier = createSessionVerifier({ url })

const server = createServer(async (request, response) => {
  const answer = (status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(JSON.stringify(body))
  }
  try {
    const session = await verifier.verify(request)
    // A session says who this is. What the user may do is for this application to decide.
    if (session) answer(200, { userId: session.userId, address: session.address })
    else answer(401, { code: 'SESSION_REQUIRED', message: 'Sign in' })
  } catch {
    // Not 401: nothing is wrong with the token, and a client would throw it away.
    answer(503, { code: 'SERVICE_UNAVAILABLE', message: 'Sessions cannot be checked at the moment' })
  }
})

server.listen(Number(port), 'localhost', () => sayWhere(server.address()))
