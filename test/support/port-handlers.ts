import { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { NodeRequest } from '../../src/http/exchange.ts'
import type { PortHandlers } from '../../src/http/port/port.ts'
import type { NodeResponse } from '../../src/wire/output.ts'

/**
 * Serves both HTTP versions with one handler, by the request and response objects of node:http2's compatibility layer.
 */
export function portHandlers(handler: (request: NodeRequest, response: NodeResponse) => unknown): PortHandlers {
  return {
    request: (request, response) => void handler(request, response),
    stream: (stream, headers) =>
      void handler(new Http2ServerRequest(stream, headers, {}, []), new Http2ServerResponse(stream)),
  }
}
