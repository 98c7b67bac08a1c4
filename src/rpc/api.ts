import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { Host } from '../host/host.ts'
import type { KnownComputers } from '../order/known-computers.ts'
import type { Orders } from '../order/orders.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import { type Method, methodsOf } from './methods.ts'
import { orderHandlers } from './order-service.ts'
import { warmUp } from './read-input.ts'
import { sessionHandlers } from './session-service.ts'
import { signInHandlers } from './sign-in-service.ts'

/** The domain behind the RPCs. */
export interface Domain {
  readonly signIn: SignIn
  readonly orders: Orders
  readonly host: Host
  /** Absent if there is no store to keep them in. */
  readonly computers?: KnownComputers | undefined
}

/** Every RPC of package countersign.v1 with its handler and its limit. */
export function createApi({ signIn, orders, host, computers }: Domain): readonly Method[] {
  const methods = [
    ...methodsOf(SignInService, signInHandlers(signIn)),
    ...methodsOf(OrderService, orderHandlers(orders)),
    ...methodsOf(SessionService, sessionHandlers(host, computers)),
  ]
  for (const { desc } of methods) warmUp(desc.input)
  return methods
}
