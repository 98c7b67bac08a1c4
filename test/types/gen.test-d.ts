// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { create } from '@bufbuild/protobuf'
import { ConnectError, createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import type { SignInService as SameByPackage } from 'countersign/gen/countersign/v1/sign_in_service_pb'
import type { SignInService as SameByPackageAndFile } from 'countersign/gen/countersign/v1/sign_in_service_pb.js'
import { ErrorReason } from 'countersign/gen/error_reason_pb'
import { OrderKind, OrderService, type StartOrderResponse } from 'countersign/gen/order_service_pb'
import { IntrospectSessionRequestSchema, SessionService } from 'countersign/gen/session_service_pb'
import { SignInService } from 'countersign/gen/sign_in_service_pb'
import type { SignInService as SameByFile } from 'countersign/gen/sign_in_service_pb.js'

const transport = createGrpcTransport({ baseUrl: 'https://auth.example' })
const sessions = createClient(SessionService, transport)
const request = create(IntrospectSessionRequestSchema, { token: 'token' })
const { active, session } = await sessions.introspectSession(request)
export const userId: string | undefined = active ? session?.userId : undefined

try {
  const started: StartOrderResponse = await createClient(OrderService, transport).startOrder({ kind: OrderKind.LOGIN })
  const expiresAt: bigint = started.expiresAt
  console.log(expiresAt)
} catch (error) {
  console.log(ConnectError.from(error).code, ErrorReason.RATE_LIMITED)
}
export const method: 'unary' = SignInService.method.issueNonce.methodKind
export const same: (typeof SameByFile & typeof SameByPackage & typeof SameByPackageAndFile)[] = [SignInService]
