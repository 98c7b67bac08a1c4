import { serve } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { createCountersign } from 'countersign'
import { Hono } from 'hono'

const port = Number(process.env.PORT ?? 3000)
const countersign = await createCountersign({ publicUrl: `http://localhost:${port}` })

const app = new Hono()
app.get('/', (c) => c.text('The application'))
app.post('/echo', async (c) => c.json(await c.req.json()))
app.notFound((c) => countersign.fetch(c.req.raw, { remoteAddress: getConnInfo(c).remote.address }))
serve({ fetch: app.fetch, port, hostname: 'localhost' })
