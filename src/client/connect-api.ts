import type { Message } from '@bufbuild/protobuf'
import { NoncePurpose } from '../../gen/client/countersign/v1/sign_in_service_pb.ts'
import type {
  ApiCall,
  ApiMethod,
  OrderApi,
  RevocationApi,
  SessionApi,
  SignInApi,
  WalletApi,
  WatchMessage,
} from './api.ts'
import { type Services, toClientError } from './connect.ts'
import { plain, protoKind } from './plain.ts'
import { bearer } from './rest-api.ts'

/** The service's calls over Connect. */
export interface ConnectApi {
  readonly signIn: SignInApi
  readonly order: OrderApi
  readonly session: SessionApi & RevocationApi
  readonly wallet: WalletApi
}

/** The service's calls over its generated clients. `token` returns the session token, for calls that a session authorises. */
export function connectApi(services: Services, token: () => string | undefined): ConnectApi {
  const { signIn, order, session, wallet } = services
  return {
    signIn: {
      issueNonce: plainly(signIn.issueNonce),
      verifySignIn: plainly(signIn.verifySignIn),
    },
    order: {
      startOrder: plainly(({ kind, ...request }, call) =>
        order.startOrder({ ...request, kind: protoKind(kind) }, call),
      ),
      async *watchOrder(request, { signal, onOpen }) {
        try {
          for await (const message of order.watchOrder({ ...request }, { signal, onHeader: onOpen })) {
            yield plain<WatchMessage>(message)
          }
        } catch (thrown) {
          throw toClientError(thrown, signal)
        }
      },
      finalizeOrder: plainly(order.finalizeOrder),
      cancelOrder: plainly(order.cancelOrder),
      claimOrder: plainly(order.claimOrder),
      getOrderChallenge: plainly(order.getOrderChallenge),
      approveOrder: plainly(order.approveOrder),
      rejectOrder: plainly(order.rejectOrder),
      handOverOrder: plainly(order.handOverOrder),
      redeemHandOver: plainly(order.redeemHandOver),
    },
    session: {
      getCurrentSession: plainly(session.getCurrentSession),
      signOut: plainly(session.signOut),
      listSessions: plainly(session.listSessions),
      revokeSession: plainly(session.revokeSession),
      revokeOtherSessions: plainly(session.revokeOtherSessions),
      listKnownComputers: plainly(session.listKnownComputers),
      forgetKnownComputer: plainly(session.forgetKnownComputer),
      issueAccessToken: plainly(session.issueAccessToken),
    },
    wallet: {
      issueLinkNonce: plainly((request, call) => {
        // Of this service's calls, only the nonce of a link has a session.
        const sessionToken = token()
        const headers = sessionToken === undefined ? {} : { headers: { authorization: bearer(sessionToken) } }
        return signIn.issueNonce({ ...request, purpose: NoncePurpose.LINK }, { ...call, ...headers })
      }),
      listWallets: plainly(wallet.listWallets),
      linkWallet: plainly(wallet.linkWallet),
      unlinkWallet: plainly(wallet.unlinkWallet),
    },
  }
}

/** A call of a generated client with a plain answer and the client's own errors. */
function plainly<Request, Answer>(
  method: (request: Request, call: { signal: AbortSignal; headers?: HeadersInit }) => Promise<Message>,
): ApiMethod<Request, Answer> {
  return async (request, { signal, headers }: ApiCall) => {
    try {
      return plain<Answer>(await method(request, { signal, ...(headers === undefined ? {} : { headers }) }))
    } catch (thrown) {
      throw toClientError(thrown, signal)
    }
  }
}
