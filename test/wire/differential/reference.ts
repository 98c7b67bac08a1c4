import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { onTestFinished } from 'vitest'
import type { Countersign } from '../../../src/index.ts'

/** Serves the handlers of a service by connect-node's own adapter, with the same limit on bodies. Returns its port. */
export async function startReference(service: Countersign, version: 'HTTP/1.1' | 'HTTP/2'): Promise<number> {
  const adapter = connectNodeAdapter({ routes: service.routes, readMaxBytes: 64 * 1024, maxTimeoutMs: 15 * 60_000 })
  const server =
    version === 'HTTP/2'
      ? http2.createServer(adapter)
      : http.createServer((request, response) => {
          try {
            adapter(request, response)
          } catch {
            // connect-node throws at a host that makes no URL, which would end the process.
            response.writeHead(500, { 'x-threw': 'yes' }).end()
          }
        })
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
