import { type ConnectRouter, createConnectRouter } from '@connectrpc/connect'
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node'
import { maxBodyBytes } from './node-request.ts'
import type { Route } from './route.ts'

/** The routes, by path, of RPCs that are not our own, such as the health check. connect-node serves them. */
export function connectNodeRoutes(register: (router: ConnectRouter) => void): ReadonlyMap<string, Route> {
  const router = createConnectRouter({
    // No shutdownSignal: it would cut streams off before they can say why.
    acceptCompression: [compressionGzip, compressionBrotli],
    readMaxBytes: maxBodyBytes,
  })
  register(router)
  return new Map(
    router.handlers.map((handle): [string, Route] => [
      handle.requestPath,
      async ({ request, response }) => {
        const answer = await handle(universalRequestFromNodeRequest(request, response, undefined, undefined))
        await universalResponseToNodeResponse(answer, response)
      },
    ]),
  )
}
