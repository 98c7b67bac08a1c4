import { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../gen/server/countersign/v1/wallet_service_pb.ts'
import type { AuditTrail } from '../base/audit.ts'
import type { RequestContext } from '../base/request.ts'
import type { AccessTokens } from '../core/access-tokens.ts'
import type { KnownComputers } from '../core/order/known-computers.ts'
import type { Orders } from '../core/order/orders.ts'
import type { SignIn } from '../core/sign-in/sign-in.ts'
import type { UserWallets } from '../core/sign-in/user-wallets.ts'
import type { Host, Session } from '../core/users/host.ts'
import type { SessionEnds } from '../core/users/sessions.ts'
import type { RateLimiter } from '../limits/rate.ts'
import { type Method, methodsOf } from './methods.ts'
import { orderHandlers } from './order-service.ts'
import { warmUp } from './read-input.ts'
import { type SessionApps, sessionHandlers } from './session-service.ts'
import { signInHandlers } from './sign-in-service.ts'
import { walletHandlers } from './wallet-service.ts'

/** The domain behind the RPCs. */
export interface Domain {
  readonly signIn: SignIn
  readonly orders: Orders
  readonly host: Host
  /** Absent without a store of the service's own. */
  readonly computers?: KnownComputers | undefined
  /** Absent if the application keeps users or sessions itself. */
  readonly wallets?: UserWallets | undefined
  /** Absent if the service has no audiences. */
  readonly accessTokens?: AccessTokens | undefined
  /** Applications that users have connected. Absent without an issuer. */
  readonly apps?: SessionApps | undefined
  /** See `SessionParts`. */
  readonly requireOwnOrigin?: ((request: RequestContext) => void) | undefined
  /** Hook for the ends of sessions. Absent if nothing outlives one. */
  readonly sessionEnds?: SessionEnds | undefined
  /** Audit trail of sessions and computers. Without it, none is kept. */
  readonly audit?: AuditTrail | undefined
  /** Counts wrong tokens. Absent if calls have no limits. */
  readonly limiter?: Pick<RateLimiter, 'countWrongToken'> | undefined
}

/** Every RPC of package countersign.v1 with its handler and its limit. */
export function createApi({
  signIn,
  orders,
  host,
  computers,
  wallets,
  accessTokens,
  apps,
  requireOwnOrigin,
  sessionEnds,
  audit,
  limiter,
}: Domain): readonly Method[] {
  const walletsOf = wallets && ((session: Session) => wallets.of(session))
  const countWrong = (request: RequestContext) => limiter?.countWrongToken(request)
  const methods = [
    ...methodsOf(SignInService, signInHandlers(signIn, wallets?.links)),
    ...methodsOf(OrderService, orderHandlers(orders)),
    ...methodsOf(
      SessionService,
      sessionHandlers(host, {
        computers,
        walletsOf,
        accessTokens,
        apps,
        requireOwnOrigin,
        sessionEnds,
        audit,
        countWrong,
      }),
    ),
    ...methodsOf(WalletService, walletHandlers(wallets)),
  ]
  for (const { desc } of methods) warmUp(desc.input)
  return methods
}
