import type { ConnectRouter } from '@connectrpc/connect'
import { OrderService } from '../../gen/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/countersign/v1/sign_in_service_pb.ts'
import type { Host } from '../host/host.ts'
import type { Orders } from '../orders.ts'
import type { RateLimiter } from '../rate-limit.ts'
import type { SignIn } from '../sign-in.ts'
import { callOf, registerService } from './connect-routes.ts'
import { type UnaryMethod, unaryMethod, warmUp } from './methods.ts'
import { type OrderHandlers, orderHandlers } from './order-service.ts'
import { sessionHandlers } from './session-service.ts'
import { signInHandlers } from './sign-in-service.ts'

/** The domain that the RPCs are a skin of. */
export interface Domain {
  readonly signIn: SignIn
  readonly orders: Orders
  readonly host: Host
}

/** Every RPC with its handler; those that answer once also in a table for the skins that are not Connect's. */
export interface Api {
  readonly methods: readonly UnaryMethod[]
  readonly watchOrder: OrderHandlers['watchOrder']
}

/** The API over a domain. With a limiter, calls count against their group's allowance. */
export function createApi(domain: Domain, limiter: RateLimiter | undefined): Api {
  const signIn = signInHandlers(domain.signIn)
  const order = orderHandlers(domain.orders)
  const session = sessionHandlers(domain.host)
  const signIns = SignInService.method
  const orders = OrderService.method
  const sessions = SessionService.method
  const methods = [
    unaryMethod(signIns.issueNonce, signIn.issueNonce, limiter, 'sign-in'),
    unaryMethod(signIns.verifySignIn, signIn.verifySignIn, limiter, 'sign-in'),
    unaryMethod(orders.startOrder, order.startOrder, limiter, 'start order'),
    unaryMethod(orders.claimOrder, order.claimOrder, limiter, 'order'),
    unaryMethod(orders.getOrderChallenge, order.getOrderChallenge, limiter, 'order'),
    unaryMethod(orders.approveOrder, order.approveOrder, limiter, 'order'),
    unaryMethod(orders.rejectOrder, order.rejectOrder, limiter, 'order'),
    unaryMethod(orders.cancelOrder, order.cancelOrder, limiter, 'order'),
    unaryMethod(orders.finalizeOrder, order.finalizeOrder, limiter, 'order'),
    unaryMethod(sessions.getCurrentSession, session.getCurrentSession, limiter, 'session'),
    unaryMethod(sessions.signOut, session.signOut, limiter, 'session'),
    unaryMethod(sessions.listSessions, session.listSessions, limiter, 'session'),
    unaryMethod(sessions.revokeSession, session.revokeSession, limiter, 'session'),
    unaryMethod(sessions.revokeOtherSessions, session.revokeOtherSessions, limiter, 'session'),
    // Backends ask for all their users from one address, so there is no allowance: a token has 256 bits, and a signature
    // that is checked before the store is asked.
    unaryMethod(sessions.introspectSession, session.introspectSession, limiter, undefined),
  ]
  warmUp(methods)
  const watchOrder: OrderHandlers['watchOrder'] = (message, call) => {
    limiter?.spend('order', call.request.ip)
    return order.watchOrder(message, call)
  }
  return { methods, watchOrder }
}

/** Registers every service with a Connect router. */
export function registerApi(router: ConnectRouter, { methods, watchOrder }: Api): void {
  registerService(router, SignInService, methods)
  registerService(router, OrderService, methods, {
    watchOrder: (message, context) => watchOrder(message, callOf(context)),
  })
  registerService(router, SessionService, methods)
}
