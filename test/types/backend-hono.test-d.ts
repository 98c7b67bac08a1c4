// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createSessionVerifier, type ProtectedResource } from 'countersign/backend'
import { requireSession, requireToken, type SessionVariables, type TokenVariables } from 'countersign/backend/hono'
import { Hono } from 'hono'

const app = new Hono()
const verifier = createSessionVerifier({ url: 'http://localhost:8080' })

app.get('/me', requireSession(verifier), (c) => {
  const address: string = c.var.session.address
  // @ts-expect-error: a session has no such field.
  return c.json({ address, name: c.get('session').name })
})

app.get('/staff', requireSession(verifier, { groups: ['staff'] }), (c) => {
  const groups: readonly string[] = c.var.session.groups
  return c.json({ groups })
})

// @ts-expect-error: groups are a list.
requireSession(verifier, { groups: 'staff' })

export const guarded = new Hono<{ Variables: SessionVariables }>()
guarded.use(requireSession(verifier))
guarded.get('/me', (c) => c.text(c.var.session.userId))

export function notes(resource: ProtectedResource): Hono<{ Variables: TokenVariables }> {
  const server = new Hono<{ Variables: TokenVariables }>()
  server.use(requireToken(resource))
  // @ts-expect-error: a token has no such field.
  server.post('/mcp', (c) => c.json({ user: c.var.auth.extra.userId, name: c.var.auth.name }))
  return server
}
