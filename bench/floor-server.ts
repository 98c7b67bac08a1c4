/**
 * The floor that Countersign is compared with: node's own servers without anything on top. They read a request's body
 * and answer with as many bytes as they are told to; a request for /stream gets a first byte, and a last one when the
 * server is told to stop.
 */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { answerGrpc, listen } from './bare.ts'
import { enveloped } from './grpc.ts'

const [protocol, answerBytes] = process.argv.slice(2)
const answer = Buffer.alloc(Number(answerBytes), 'x')

listen(protocol === 'http2' ? http2Floor() : http1Floor())
/** Those that hold a stream open. All are told of the stop in one turn of the event loop. */
const streams = new Set<ServerResponse | ServerHttp2Stream>()
process.once('SIGTERM', () => {
  for (const stream of streams) stream.end(Buffer.alloc(5))
  if (streams.size === 0) process.exit()
})

function hold(stream: ServerResponse | ServerHttp2Stream): void {
  streams.add(stream)
  stream.once('close', () => {
    streams.delete(stream)
    // What was written last still has to leave the process.
    if (streams.size === 0) setTimeout(() => process.exit(), 100)
  })
}

function http1Floor(): Server {
  return createServer((request, response) => {
    if (request.url === '/stream') {
      response.write('x')
      hold(response)
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
  const framed = enveloped(answer)
  const http2 = createHttp2Server()
  http2.on('stream', (stream: ServerHttp2Stream, headers) => {
    if (headers[':path'] === '/stream') {
      stream.respond({ ':status': 200 })
      stream.write(Buffer.alloc(5))
      hold(stream)
      return
    }
    stream.on('data', () => {})
    stream.on('end', () => answerGrpc(stream, framed))
  })
  return http2
}
