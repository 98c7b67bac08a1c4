// Finds the reason and its metadata with generated code; see docs/errors.md. It needs the package's
// proto/google/rpc/error_details.proto, generated into gen/, and `npm install @connectrpc/connect @connectrpc/connect-node`.
import { ConnectError, createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { SignInService } from 'countersign/gen/sign_in_service_pb'
import { ErrorInfoSchema, RetryInfoSchema } from './gen/google/rpc/error_details_pb.ts'

const client = createClient(SignInService, createGrpcTransport({ baseUrl: 'http://localhost:8080' }))
try {
  await client.issueNonce({ appName: 'Another application' })
} catch (thrown) {
  const error = ConnectError.from(thrown)
  const [info] = error.findDetails(ErrorInfoSchema)
  const [retry] = error.findDetails(RetryInfoSchema)
  // Without the detail, the answer is not the service's: a proxy's, or none at all.
  if (info?.domain !== 'countersign') throw error
  console.log(info.reason, info.metadata.app_name, retry === undefined ? 'do not retry' : 'retry')
}
