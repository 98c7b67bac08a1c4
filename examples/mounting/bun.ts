import { createCountersign } from 'countersign'

const port = Number(process.env.PORT ?? 3000)
const countersign = await createCountersign({ publicUrl: `http://localhost:${port}` })

Bun.serve({
  port,
  hostname: 'localhost',
  routes: { '/': new Response('The application') },
  fetch: (request, server) => countersign.fetch(request, { remoteAddress: server.requestIP(request)?.address }),
})
