// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createSessionVerifier, type ProtectedResource } from 'countersign/backend'
import { authOf, requireSession, requireToken, sessionOf } from 'countersign/backend/fastify'
import { fastify } from 'fastify'

const app = fastify()
const verifier = createSessionVerifier({ url: 'http://localhost:8080' })

app.get('/me', { onRequest: requireSession(verifier) }, async (request) => {
  const address: string = sessionOf(request).address
  // @ts-expect-error: a session has no such field.
  return { address, name: sessionOf(request).name }
})
app.register(async (guarded) => {
  guarded.addHook('onRequest', requireSession(verifier, { groups: ['staff'] }))
  guarded.addHook('preHandler', requireSession(verifier))
})
const secure = fastify({ http2: true })
secure.get('/me', { onRequest: requireSession(verifier) }, async (request) => sessionOf(request).userId)

export function notes(resource: ProtectedResource): void {
  app.addHook('onRequest', requireToken(resource))
  secure.addHook('onRequest', requireToken(resource))
  // @ts-expect-error: a token has no such field.
  app.post('/mcp', async (request) => ({ user: authOf(request).extra.userId, name: authOf(request).name }))
}
