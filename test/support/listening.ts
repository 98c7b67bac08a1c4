import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { onTestFinished } from 'vitest'

/** Has a server listen at a free port of a host until the test ends. Resolves with the port. */
export async function listen(
  server: Server & { closeAllConnections?(): void },
  host: '127.0.0.1' | 'localhost' = '127.0.0.1',
): Promise<number> {
  if (!server.listening) await once(server.listen(0, host), 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections?.()
  })
  return (server.address() as AddressInfo).port
}

/** As {@link listen}. Resolves with the origin. */
export async function listening(
  server: Parameters<typeof listen>[0],
  host: Parameters<typeof listen>[1] = '127.0.0.1',
) {
  return `http://${host}:${await listen(server, host)}`
}
