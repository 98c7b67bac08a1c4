// A grpc-js server that serves signed-in users only. To be short it has no protocol definition of its own: its messages
// are JSON.
//   COUNTERSIGN_URL=http://localhost:8080 PORT=3000 node examples/backend/grpc.ts
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'
import { requireSession, sessionOf } from '../../src/integrations/backend/grpc.ts'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'

const { COUNTERSIGN_URL: url = 'http://localhost:8080', PORT: port = '3000' } = process.env
const verifier = createSessionVerifier({ url })
// The interceptor holds for all services. To let health checks pass, wrap it: (method, call) =>
//   method.path.startsWith('/grpc.health.') ? new ServerInterceptingCall(call) : guard(method, call)
const server = new Server({ interceptors: [requireSession(verifier)] })

const toBytes = (message: object): Buffer => Buffer.from(JSON.stringify(message))
const fromBytes = (bytes: Buffer): object => JSON.parse(bytes.toString())
const me = {
  path: '/example.Users/Me',
  requestStream: false,
  responseStream: false,
  requestSerialize: toBytes,
  requestDeserialize: fromBytes,
  responseSerialize: toBytes,
  responseDeserialize: fromBytes,
}

server.addService(
  { me },
  {
    me(call: ServerUnaryCall<object, object>, answer: sendUnaryData<object>) {
      const { userId, address } = sessionOf(call)
      answer(null, { userId, address })
    },
  },
)

server.bindAsync(`localhost:${port}`, ServerCredentials.createInsecure(), (error, listening) => {
  if (error) throw error
  console.log(`http://localhost:${listening}`)
})
