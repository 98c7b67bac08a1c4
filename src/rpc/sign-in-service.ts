import type { SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import { setSession } from './call.ts'
import type { ServiceHandlers } from './methods.ts'
import { sessionFields } from './session-service.ts'

/** SignInService on the domain. */
export function signInHandlers(signIn: SignIn): ServiceHandlers<typeof SignInService> {
  return {
    issueNonce: {
      limit: 'sign-in',
      async handle({ appName }, call) {
        const { issuedAt, expiresAt, ...challenge } = await signIn.issueNonce(appName, call.request)
        return { ...challenge, issuedAt: BigInt(issuedAt), expiresAt: BigInt(expiresAt) }
      },
    },
    verifySignIn: {
      limit: 'sign-in',
      async handle({ nonceId, ...proof }, call) {
        const issued = await signIn.verify(nonceId, proof, call.request)
        setSession(call, issued)
        return { ok: true, token: issued.token, session: sessionFields(issued.session, true) }
      },
    },
  }
}
