import { InboxService } from '../../gen/server/countersign/v1/inbox_service_pb.ts'
import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import type { RequestContext } from '../base/request.ts'
import type { Orders } from '../core/order/orders.ts'
import type { SignIn } from '../core/sign-in/sign-in.ts'
import type { UserWallets } from '../core/sign-in/user-wallets.ts'
import type { Host, Session } from '../core/users/host.ts'
import type { RateLimiter } from '../limits/rate.ts'
import { type Method, methodsOf } from './methods.ts'
import { inboxHandlers, orderHandlers } from './order-service.ts'
import { requireKnownRules } from './rules.ts'
import { type SessionParts, sessionHandlers } from './session-service.ts'
import { signInHandlers } from './sign-in-service.ts'
import { walletHandlers } from './wallet-service.ts'

/** The domain behind the RPCs. */
export interface Domain extends Omit<SessionParts, 'walletsOf' | 'countWrong'> {
  readonly signIn: SignIn
  readonly orders: Orders
  readonly host: Host
  /** Absent if the application keeps users or sessions itself. */
  readonly wallets?: UserWallets | undefined
  /** Counts wrong tokens. Absent if calls have no limits. */
  readonly limiter?: Pick<RateLimiter, 'countWrongToken'> | undefined
}

/** Every RPC of package countersign.v1 with its handler and its limit. */
export function createApi({ signIn, orders, host, wallets, limiter, ...parts }: Domain): readonly Method[] {
  const walletsOf = wallets && ((session: Session) => wallets.of(session))
  const countWrong = (request: RequestContext) => limiter?.countWrongToken(request)
  const methods = [
    ...methodsOf(SignInService, signInHandlers(signIn, wallets?.links)),
    ...methodsOf(OrderService, orderHandlers(orders)),
    ...methodsOf(InboxService, inboxHandlers(orders)),
    ...methodsOf(SessionService, sessionHandlers(host, { ...parts, walletsOf, countWrong })),
    ...methodsOf(WalletService, walletHandlers(wallets)),
  ]
  for (const { desc } of methods) requireKnownRules(desc.input)
  return methods
}
