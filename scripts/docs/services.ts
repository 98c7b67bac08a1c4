import type { DescMethod, DescService } from '@bufbuild/protobuf'
import { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import { type RestEndpoint, restEndpoints } from '../../src/http/rest/endpoints.ts'
import { resolveSettings } from '../../src/service/config.ts'

/** All services of package countersign.v1, in the order of the documents. */
export const services: readonly DescService[] = [
  SignInService,
  WalletService,
  OrderService,
  InboxService,
  SessionService,
]

/** All their RPCs. */
export const rpcs: readonly DescMethod[] = services.flatMap(({ methods }) => methods)

/** All REST endpoints, with paths under the base path and with the default endpoint prefix. */
export const endpoints: readonly RestEndpoint[] = restEndpoints({
  basePath: '',
  endpointPrefix: resolveSettings().endpointPrefix,
})
