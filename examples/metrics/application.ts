// An application that serves its metrics on a port for Prometheus: docs/metrics.md.
import { createServer } from 'node:http'
import { createCountersign } from 'countersign'

const countersign = await createCountersign({ publicUrl: 'https://app.example', metrics: true })
createServer(countersign.handler).listen(3000)

createServer(async (_request, response) => {
  response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8')
  response.end(await countersign.metrics())
}).listen(9464, '127.0.0.1')
