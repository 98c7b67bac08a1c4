import type { DescMethod } from '@bufbuild/protobuf'
import { InboxService } from '../../../gen/server/countersign/v1/inbox_service_pb.ts'
import { OrderService } from '../../../gen/server/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../../gen/server/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { WalletService } from '../../../gen/server/countersign/v1/wallet_service_pb.ts'
import {
  appPaths,
  computerPaths,
  desktopOrderPaths,
  inboxPaths,
  phoneOrderPaths,
  sessionPaths,
  signInPaths,
  walletPaths,
} from '../../shared/rest-paths.ts'
import { jsonBody, noInput, orderQuery, type ReadJson, sessionQuery } from './json.ts'

/** A REST endpoint: an RPC under another name. */
export interface RestEndpoint {
  readonly httpMethod: 'GET' | 'POST'
  readonly path: string
  readonly rpc: DescMethod
  /** Reads the JSON of the RPC's message from the request. */
  readonly input: ReadJson
}

/** Where the REST endpoints are. */
export interface RestPaths {
  readonly basePath: string
  /** Path of the direct sign-in endpoints under `basePath`. */
  readonly endpointPrefix: string
}

/** All REST endpoints. WatchOrder's answers with server-sent events. */
export function restEndpoints({ basePath, endpointPrefix }: RestPaths): RestEndpoint[] {
  const signIn = SignInService.method
  const order = OrderService.method
  const session = SessionService.method
  const wallet = WalletService.method
  const inbox = InboxService.method
  const endpoints = [
    post(endpointPrefix + signInPaths.nonce, signIn.issueNonce),
    post(endpointPrefix + signInPaths.verify, signIn.verifySignIn),
    get(endpointPrefix + walletPaths.list, wallet.listWallets, noInput),
    post(endpointPrefix + walletPaths.link, wallet.linkWallet),
    post(endpointPrefix + walletPaths.unlink, wallet.unlinkWallet),
    post(desktopOrderPaths.start, order.startOrder),
    get(phoneOrderPaths.preview, order.previewOrder, orderQuery('claimToken')),
    post(phoneOrderPaths.claim, order.claimOrder),
    get(phoneOrderPaths.challenge, order.getOrderChallenge, orderQuery('challengeToken')),
    post(phoneOrderPaths.approve, order.approveOrder),
    post(phoneOrderPaths.reject, order.rejectOrder),
    post(desktopOrderPaths.cancel, order.cancelOrder),
    post(desktopOrderPaths.finalize, order.finalizeOrder),
    post(phoneOrderPaths.handOver, order.handOverOrder),
    post(phoneOrderPaths.redeem, order.redeemHandOver),
    get(desktopOrderPaths.events, order.watchOrder, orderQuery('desktopToken')),
    get(inboxPaths.orders, inbox.listInbox, noInput),
    post(inboxPaths.claim, inbox.claimFromInbox),
    get(sessionPaths.current, session.getCurrentSession, sessionQuery),
    get(sessionPaths.list, session.listSessions, noInput),
    post(sessionPaths.revoke, session.revokeSession),
    post(sessionPaths.revokeOthers, session.revokeOtherSessions),
    post(sessionPaths.signOut, session.signOut),
    post(sessionPaths.accessToken, session.issueAccessToken),
    get(computerPaths.list, session.listKnownComputers, noInput),
    post(computerPaths.forget, session.forgetKnownComputer),
    get(appPaths.list, session.listConnectedApps, noInput),
    post(appPaths.disconnect, session.disconnectApp),
  ]
  return endpoints.map((endpoint) => ({ ...endpoint, path: basePath + endpoint.path }))
}

function post(path: string, rpc: DescMethod): RestEndpoint {
  return { httpMethod: 'POST', path, rpc, input: jsonBody }
}

function get(path: string, rpc: DescMethod, input: ReadJson): RestEndpoint {
  return { httpMethod: 'GET', path, rpc, input }
}
