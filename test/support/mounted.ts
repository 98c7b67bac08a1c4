import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { onTestFinished } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import type { Countersign } from '../../src/index.ts'
import { createCountersign } from '../../src/index.ts'
import type { CountersignOptions } from '../../src/service/config.ts'

/** A service without a port of its own, at the address of a server that the test makes around it. */
export async function mountService<S extends Server>(
  makeServer: (service: () => Countersign) => S | Promise<S>,
  options: CountersignOptions = {},
): Promise<{ readonly url: string; readonly service: Countersign; readonly server: S }> {
  let service: Countersign | undefined
  const server = await makeServer(() => {
    if (service === undefined) throw new Error('the service is not made yet')
    return service
  })
  if (!server.listening) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  const url = `http://localhost:${(server.address() as AddressInfo).port}`
  service = await createCountersign({
    store: 'sqlite::memory:',
    rateLimit: false,
    logger: silentLogger,
    publicUrl: url,
    ...options,
  })
  onTestFinished(async () => {
    server.close()
    if ('closeAllConnections' in server) (server as { closeAllConnections(): void }).closeAllConnections()
    await service.close(0)
  })
  return { url, service, server }
}
