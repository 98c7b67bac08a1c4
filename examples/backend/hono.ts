// A Hono application that serves signed-in users only.
//   COUNTERSIGN_URL=http://localhost:8080 PORT=3000 node examples/backend/hono.ts
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { requireSession } from '../../src/integrations/backend/hono.ts'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'
import { sayWhere } from './listening.ts'

const { COUNTERSIGN_URL: url = 'http://localhost:8080', PORT: port = '3000' } = process.env
const app = new Hono()
const verifier = createSessionVerifier({ url })

app.all('/me', requireSession(verifier), (c) => {
  const { userId, address } = c.var.session
  return c.json({ userId, address })
})

serve({ fetch: app.fetch, port: Number(port), hostname: 'localhost' }, sayWhere)
