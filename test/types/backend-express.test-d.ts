// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createSessionVerifier, type ProtectedResource } from 'countersign/backend'
import { requireSession, requireToken, type SessionLocals, type TokenRequest } from 'countersign/backend/express'
import express, { type RequestHandler, type Response } from 'express'

const app = express()
const verifier = createSessionVerifier({ url: 'http://localhost:8080' })

app.get('/me', requireSession(verifier), (_request, response) => {
  const address: string = response.locals.session.address
  // @ts-expect-error: a session has no such field.
  response.json({ address, name: response.locals.session.name })
})
app.post('/orders/:id', requireSession(verifier, { groups: ['staff'] }), (request, response) => {
  const id: string = request.params.id
  // @ts-expect-error: an address is text.
  const address: number = response.locals.session.address
  response.json({ id, address })
})
// Of a whole application or router, handlers name the type.
app.use('/api', requireSession(verifier))
app.get('/api/me', (_request, response: Response<object, SessionLocals>) => {
  const address: string = response.locals.session.address
  response.json({ address })
})
export const guard: RequestHandler = requireSession(verifier)
app.post('/pay', express.json(), guard, requireSession(verifier), (_request, response) => {
  response.json(response.locals.session.address)
})

export function notes(resource: ProtectedResource): void {
  app.use(requireToken(resource))
  app.post('/mcp', express.json(), (request: TokenRequest, response) => {
    // @ts-expect-error: it is there only behind the guard.
    const clientId: string = request.auth.clientId
    response.json({ clientId, userId: request.auth?.extra.userId })
  })
}
