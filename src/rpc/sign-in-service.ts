import type {
  IssueNonceRequest,
  IssueNonceResponseSchema,
  VerifySignInRequest,
  VerifySignInResponseSchema,
} from '../../gen/countersign/v1/sign_in_service_pb.ts'
import type { SignIn } from '../sign-in.ts'
import { type Call, setSession } from './call.ts'
import type { Reply } from './methods.ts'
import { sessionMessage } from './session-service.ts'

/** The RPCs of SignInService as plain functions: message and call in, message out. */
export interface SignInHandlers {
  issueNonce(message: IssueNonceRequest, call: Call): Reply<typeof IssueNonceResponseSchema>
  verifySignIn(message: VerifySignInRequest, call: Call): Reply<typeof VerifySignInResponseSchema>
}

/** SignInService over the domain. */
export function signInHandlers(signIn: SignIn): SignInHandlers {
  return {
    async issueNonce({ appName }, call) {
      const { issuedAt, expiresAt, ...challenge } = await signIn.issueNonce(appName, call.request)
      return { ...challenge, issuedAt: BigInt(issuedAt), expiresAt: BigInt(expiresAt) }
    },
    async verifySignIn({ nonceId, ...proof }, call) {
      const issued = await signIn.verify(nonceId, proof, call.request)
      setSession(call, issued)
      return { ok: true, token: issued.token, session: sessionMessage(issued.session, true) }
    },
  }
}
