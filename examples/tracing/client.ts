// Passes its trace on to the service: docs/tracing.md. Start it with --import ./otel.mjs.
import { createClient, type Interceptor } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { context, propagation, trace } from '@opentelemetry/api'
import { SessionService } from 'countersign/gen/session_service_pb'

const passTraceOn: Interceptor = (next) => async (request) => {
  propagation.inject(context.active(), request.header, { set: (header, name, value) => header.set(name, value) })
  return await next(request)
}

const transport = createGrpcTransport({ baseUrl: 'http://localhost:8080', interceptors: [passTraceOn] })
const sessions = createClient(SessionService, transport)
await trace.getTracer('my backend').startActiveSpan('check a session', async (span) => {
  const { active } = await sessions.introspectSession({ token: 'a token' })
  console.log({ active })
  span.end()
})
