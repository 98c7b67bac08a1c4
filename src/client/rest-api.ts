import { computerPaths, sessionPaths, signInPaths, walletPaths } from '../rest-paths.ts'
import type { ApiMethod, SessionApi, SignInApi, WalletApi } from './api.ts'
import { bearer, type RestCall } from './rest-orders.ts'

/** The calls of a direct sign-in over REST. `prefix` is the path of its endpoints under the base path. */
export function restSignIn(call: RestCall, prefix: string): SignInApi {
  return {
    issueNonce: (body, { signal }) => call(prefix + signInPaths.nonce, { body, signal }),
    verifySignIn: (body, { signal }) => call(prefix + signInPaths.verify, { body, signal }),
  }
}

/** A session's calls over REST: the stored token is sent along. */
export function restSessions(call: RestCall, token: () => string | undefined): SessionApi {
  const { get, post } = authorisedMethods(call, token)
  return {
    getCurrentSession: get(`${sessionPaths.current}?allowSignedOut=true`),
    listSessions: get(sessionPaths.list),
    signOut: post(sessionPaths.signOut, true),
    listKnownComputers: get(computerPaths.list),
    forgetKnownComputer: post(computerPaths.forget),
    issueAccessToken: post(sessionPaths.accessToken),
  }
}

/** The calls for the user's wallets over REST. `prefix` is as for {@link restSignIn}. */
export function restWallets(call: RestCall, prefix: string, token: () => string | undefined): WalletApi {
  const { get, post } = authorisedMethods(call, token)
  const issueNonce: WalletApi['issueLinkNonce'] = post(prefix + signInPaths.nonce)
  return {
    issueLinkNonce: (request, options) => issueNonce({ ...request, purpose: 'link' } as typeof request, options),
    listWallets: get(prefix + walletPaths.list),
    linkWallet: post(prefix + walletPaths.link),
    unlinkWallet: post(prefix + walletPaths.unlink),
  }
}

function authorisedMethods(call: RestCall, token: () => string | undefined) {
  const headers = (): Record<string, string> => {
    const sessionToken = token()
    return sessionToken === undefined ? {} : { authorization: bearer(sessionToken) }
  }
  const get =
    <Answer>(path: string): ApiMethod<object, Answer> =>
    (_, { signal }) =>
      call(path, { headers: headers(), signal })
  const post =
    <Request extends object, Answer>(path: string, keepalive?: true): ApiMethod<Request, Answer> =>
    (body, { signal }) =>
      call(path, { body, headers: headers(), signal, keepalive })
  return { get, post }
}
