import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** Has a server listen at a free port until the test ends. Resolves with the port. */
export async function listen(server: Server | SecureServer, host = '127.0.0.1'): Promise<number> {
  server.listen(0, host)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
