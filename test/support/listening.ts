import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { onTestFinished } from 'vitest'

/** Has a server listen at a free port of this machine until the test ends. Resolves with its address. */
export async function listening(server: Server & { closeAllConnections?(): void }): Promise<string> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections?.()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
