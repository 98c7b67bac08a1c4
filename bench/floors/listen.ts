import type { Server } from 'node:http'
import type { Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'

/** Listens on a free loopback port, and names it as Countersign does. */
export function listen(server: Server | Http2Server): void {
  // As many connections may wait as the system allows: thousands of watchers come at once.
  server.listen({ port: 0, host: '127.0.0.1', backlog: 65_535 }, () => {
    const { port } = server.address() as AddressInfo
    process.stderr.write(`${JSON.stringify({ text: 'ready', port })}\n`)
  })
}
