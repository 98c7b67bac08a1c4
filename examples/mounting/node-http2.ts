import { createServer } from 'node:http2'
import { createCountersign } from 'countersign'

const port = Number(process.env.PORT ?? 3000)
const countersign = await createCountersign({ publicUrl: `http://localhost:${port}` })

const server = createServer((request, response) => {
  countersign.handler(request, response, () => {
    if (request.url === '/') response.end('The application')
    else if (request.url === '/echo') request.pipe(response)
    else response.writeHead(404).end()
  })
})
server.listen(port, 'localhost')
