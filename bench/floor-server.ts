/**
 * The floor that Countersign is compared with: node's own servers without anything on top. They read a request's body
 * and answer with as many bytes as they are told to; a request for /stream gets a first byte and no end.
 */
import { createServer, type Server } from 'node:http'
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'

const [protocol, answerBytes] = process.argv.slice(2)
const answer = Buffer.alloc(Number(answerBytes), 'x')

const server = protocol === 'http2' ? http2Floor() : http1Floor()
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stderr.write(`${JSON.stringify({ text: 'ready', port })}\n`)
})
process.once('SIGTERM', () => process.exit())

function http1Floor(): Server {
  return createServer((request, response) => {
    if (request.url === '/stream') {
      response.write('x')
      return
    }
    request.on('data', () => {})
    request.on('end', () => {
      response.setHeader('content-type', 'application/json')
      response.setHeader('content-length', answer.length)
      response.end(answer)
    })
  })
}

/** Frames its answers and ends them with a trailer, as gRPC asks for. */
function http2Floor(): Http2Server {
  const framed = Buffer.concat([Buffer.alloc(5), answer])
  framed.writeUInt32BE(answer.length, 1)
  const http2 = createHttp2Server()
  http2.on('stream', (stream: ServerHttp2Stream, headers) => {
    if (headers[':path'] === '/stream') {
      stream.respond({ ':status': 200 })
      stream.write(Buffer.alloc(5))
      return
    }
    stream.on('data', () => {})
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(framed)
    })
  })
  return http2
}
