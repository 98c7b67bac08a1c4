// A resource of the issuer on node:http, such as an MCP server: it serves clients whose users have allowed the scope.
//   COUNTERSIGN_URL=http://localhost:8080 RESOURCE=http://localhost:3000/notes PORT=3000 node examples/backend/resource.ts
//   The service has the resource and its scope in its clients file; see docs/mcp.md.
import { createServer, type IncomingMessage } from 'node:http'
import { type AuthInfo, protectedResource } from '../../src/integrations/backend/index.ts'
import { sayWhere } from './listening.ts'

const { COUNTERSIGN_URL: issuer = 'http://localhost:8080', PORT: port = '3000' } = process.env
const { RESOURCE: resource = `http://localhost:${port}/notes` } = process.env
const guard = protectedResource({ issuer, resource, scopes: ['notes:read'] })

const server = createServer((request: IncomingMessage & { auth?: AuthInfo }, response) => {
  const answer = (): void => {
    const { clientId, extra } = request.auth as AuthInfo
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(JSON.stringify({ clientId, userId: extra.userId }))
  }
  guard.handle(request, response, answer).catch((error: Error) => response.destroy(error))
})

server.listen(Number(port), 'localhost', () => sayWhere(server.address()))
