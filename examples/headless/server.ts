// A server that checks wallet signatures without the service, and keeps the challenges itself; see docs/headless.md.
// In a project of your own, import from 'countersign/core'.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import {
  CountersignError,
  createSignInChallenge,
  type SignInChallenge,
  verifySignIn,
} from '../../src/integrations/core/index.ts'

const origin = 'http://localhost:3000'
const challenges = new Map<string, SignInChallenge>()

createServer(async (request, response) => {
  const [, id = ''] = /begun=([\w-]+)/.exec(request.headers.cookie ?? '') ?? []
  if (request.url === '/challenge') {
    const begun = randomUUID()
    const challenge = createSignInChallenge({ appName: 'Example', origin })
    challenges.set(begun, challenge)
    response.setHeader('set-cookie', `begun=${begun}; HttpOnly; SameSite=Lax; Max-Age=300`)
    return response.end(challenge.message)
  }
  const challenge = challenges.get(id)
  challenges.delete(id)
  if (challenge === undefined) return response.writeHead(401).end('Begin again')
  try {
    const proof = JSON.parse(Buffer.concat(await request.toArray()).toString())
    const wallet = await verifySignIn({ challenge, proof, origin: request.headers.origin })
    response.end(`Signed in as ${wallet.address}`)
  } catch (error) {
    response.writeHead(401).end(error instanceof CountersignError ? error.reason : 'Bad request')
  }
}).listen(3000, 'localhost')
