import { createServer, type Server } from 'node:http'
import { createSessionVerifier } from 'countersign/backend'

/** The application that is tested: it greets whoever is signed in. */
export function createApplication(countersignUrl: string): Server {
  const sessions = createSessionVerifier({ url: countersignUrl })
  return createServer(async (request, response) => {
    const session = await sessions.verify(request)
    if (session === undefined) response.writeHead(401).end('Sign in first')
    else response.end(`Hello ${session.address}`)
  })
}
