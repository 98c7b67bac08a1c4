import { createCountersign } from 'countersign'
import { Hono } from 'hono'

const countersign = await createCountersign({ publicUrl: 'http://localhost:3000' })

const app = new Hono()
app.get('/', (c) => c.text('The application'))
app.post('/echo', async (c) => c.json(await c.req.json()))
app.notFound((c) => countersign.fetch(c.req.raw))
export default app
