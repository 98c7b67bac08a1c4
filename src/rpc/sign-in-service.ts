import { NoncePurpose, type SignInService } from '../../gen/server/countersign/v1/sign_in_service_pb.ts'
import type { NonceRecord } from '../core/sign-in/nonce.ts'
import type { SignIn } from '../core/sign-in/sign-in.ts'
import type { WalletLinks } from '../core/sign-in/user-wallets.ts'
import { CountersignError, invalidField } from '../shared/errors.ts'
import { limited, type ServiceHandlers, sessionFields, setCookies, setSession } from './methods.ts'

/** SignInService on the domain. Without `links`, nonces for adding a wallet are NOT_ENABLED. */
export function signInHandlers(
  signIn: SignIn,
  links?: Pick<WalletLinks, 'issueNonce'>,
): ServiceHandlers<typeof SignInService> {
  return {
    issueNonce: limited('sign-in', async ({ appName, purpose, form, ...wallet }, call) => {
      if (purpose === NoncePurpose.LINK) {
        if (form) throw invalidField('form', 'form is for sign-ins; leave it out to add a wallet')
        if (links === undefined) {
          throw new CountersignError('NOT_ENABLED', 'This service does not add wallets to users; leave out purpose')
        }
        const { challenge, cookies } = await links.issueNonce(appName, wallet, call.request)
        setCookies(call, cookies)
        return answered(challenge)
      }
      if (!form) return answered(await signIn.issueNonce(appName, wallet, call.request))
      const issued = await signIn.issueForm(appName, wallet, call.request)
      return { ...answered(issued), form: issued.form }
    }),
    verifySignIn: limited('sign-in', async (input, call) => {
      const issued = await signIn.verify(input.nonceId, input, call.request)
      setSession(call, issued)
      return { ok: true, token: issued.token, session: sessionFields(issued.session, true) }
    }),
  }
}

function answered({ action, challengeId, nonceId, nonce, origin, issuedAt, expiresAt, message }: NonceRecord) {
  const times = { issuedAt: BigInt(issuedAt), expiresAt: BigInt(expiresAt) }
  return { action, challengeId, nonceId, nonce, origin, ...times, message }
}
