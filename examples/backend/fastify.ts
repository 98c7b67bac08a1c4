// A Fastify application that serves signed-in users only.
//   COUNTERSIGN_URL=http://localhost:8080 PORT=3000 node examples/backend/fastify.ts
import { fastify } from 'fastify'
import { requireSession, sessionOf } from '../../src/integrations/backend/fastify.ts'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'
import { sayWhere } from './listening.ts'

const { COUNTERSIGN_URL: url = 'http://localhost:8080', PORT: port = '3000' } = process.env
const app = fastify()
const verifier = createSessionVerifier({ url })

app.all('/me', { onRequest: requireSession(verifier) }, async (request) => {
  const { userId, address } = sessionOf(request)
  return { userId, address }
})

await app.listen({ port: Number(port), host: 'localhost' })
sayWhere(app.server.address())
