/** What the floors' servers have in common. */
import type { OutgoingHttpHeaders, Server } from 'node:http'
import type { Http2Server, ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'

/** Listens on a free loopback port, and names it as Countersign does. */
export function listen(server: Server | Http2Server): void {
  // As many connections may wait to be accepted as the system allows: thousands of watchers come at once.
  server.listen({ port: 0, host: '127.0.0.1', backlog: 65_535 }, () => {
    const { port } = server.address() as AddressInfo
    process.stderr.write(`${JSON.stringify({ text: 'ready', port })}\n`)
  })
}

/** Answers a gRPC call. `framed` is the message in its envelope. */
export function answerGrpc(stream: ServerHttp2Stream, framed: Uint8Array, headers?: OutgoingHttpHeaders): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto', ...headers }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(framed)
}

/** Collects the body of a request. */
export function collect(request: NodeJS.ReadableStream, onBody: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => onBody(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
}
