import { createCountersign } from 'countersign'
import { fastify } from 'fastify'

const port = Number(process.env.PORT ?? 3000)
const countersign = await createCountersign({ publicUrl: `http://localhost:${port}` })

const app = fastify()
app.addHook('onRequest', (request, reply, done) => countersign.handler(request.raw, reply.raw, done))
app.get('/', () => 'The application')
app.post('/echo', (request) => request.body)
await app.listen({ port, host: 'localhost' })
