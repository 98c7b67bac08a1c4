import type { DescMethod } from '@bufbuild/protobuf'
import { OrderService } from '../../gen/countersign/v1/order_service_pb.ts'
import { SessionService } from '../../gen/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/countersign/v1/sign_in_service_pb.ts'
import type { Settings } from '../config.ts'
import type { UnaryMethod } from '../rpc/methods.ts'
import { jsonBody, noInput, orderQuery, type RestRoute } from './rest.ts'

/** The REST endpoints: which RPC each is another name of. */
export function restRoutes(
  { basePath, endpointPrefix }: Pick<Settings, 'basePath' | 'endpointPrefix'>,
  methods: readonly UnaryMethod[],
): RestRoute[] {
  const rpc = (desc: DescMethod): UnaryMethod => {
    const method = methods.find((one) => one.desc === desc)
    if (method === undefined) throw new TypeError(`${desc.name} has no handler`)
    return method
  }
  const post = (path: string, desc: DescMethod): RestRoute => ({
    httpMethod: 'POST',
    path: basePath + path,
    rpc: rpc(desc),
    input: jsonBody,
  })
  const get = (path: string, desc: DescMethod, input: RestRoute['input']): RestRoute => ({
    httpMethod: 'GET',
    path: basePath + path,
    rpc: rpc(desc),
    input,
  })
  const signIn = SignInService.method
  const order = OrderService.method
  const session = SessionService.method
  return [
    post(`${endpointPrefix}/nonce`, signIn.issueNonce),
    post(`${endpointPrefix}/verify`, signIn.verifySignIn),
    post('/cross-device/start', order.startOrder),
    post('/cross-device/claim', order.claimOrder),
    get('/cross-device/challenge', order.getOrderChallenge, orderQuery('challengeToken')),
    post('/cross-device/approve', order.approveOrder),
    post('/cross-device/reject', order.rejectOrder),
    post('/cross-device/cancel', order.cancelOrder),
    post('/cross-device/finalize', order.finalizeOrder),
    get('/session', session.getCurrentSession, noInput),
    get('/sessions', session.listSessions, noInput),
    post('/sign-out', session.signOut),
  ]
}
