// The assertion is that it compiles: an RPC without a handler or without a decision on its limit does not.
import type { OrderService } from '../../gen/server/countersign/v1/order_service_pb.ts'
import type { SessionService } from '../../gen/server/countersign/v1/session_service_pb.ts'
import type { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { ServiceHandlers } from '../../src/rpc/methods.ts'

declare const signIn: ServiceHandlers<typeof SignInService>
declare const session: ServiceHandlers<typeof SessionService>
declare const order: ServiceHandlers<typeof OrderService>

const { issueNonce, verifySignIn } = signIn
export const whole: ServiceHandlers<typeof SignInService> = { issueNonce, verifySignIn }

// @ts-expect-error: an RPC is left out.
export const withoutVerify: ServiceHandlers<typeof SignInService> = { issueNonce }

const { signOut: _signOut, ...withoutSignOut } = session
// @ts-expect-error: an RPC is left out.
export const sessionsWithoutSignOut: ServiceHandlers<typeof SessionService> = withoutSignOut

const { watchOrder: _watchOrder, ...withoutWatch } = order
// @ts-expect-error: a streaming RPC is left out.
export const ordersWithoutWatch: ServiceHandlers<typeof OrderService> = withoutWatch

export const withoutLimit: ServiceHandlers<typeof SignInService> = {
  issueNonce,
  // @ts-expect-error: nobody decided what counts the call.
  verifySignIn: { handle: verifySignIn.handle },
}

export const withoutLimitOfStream: ServiceHandlers<typeof OrderService> = {
  ...order,
  // @ts-expect-error: nobody decided what counts the call.
  watchOrder: { handle: order.watchOrder.handle },
}

export const undecided: ServiceHandlers<typeof SignInService> = {
  issueNonce,
  // @ts-expect-error: "undefined" is no decision.
  verifySignIn: { limit: undefined, handle: verifySignIn.handle },
}

export const misspelt: ServiceHandlers<typeof SignInService> = {
  issueNonce,
  // @ts-expect-error: an allowance that does not exist.
  verifySignIn: { limit: 'sign in', handle: verifySignIn.handle },
}

export const another: ServiceHandlers<typeof SignInService> = {
  issueNonce,
  // @ts-expect-error: the handler of another RPC.
  verifySignIn: issueNonce,
}

export const unknown: ServiceHandlers<typeof SignInService> = {
  issueNonce,
  verifySignIn,
  // @ts-expect-error: an RPC that the service does not have.
  linkWallet: issueNonce,
}
