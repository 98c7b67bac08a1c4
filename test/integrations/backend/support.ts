import { expect } from 'vitest'
import { rest } from '../../support/rest.ts'
import { makeWallet, proofOf } from '../../support/wallet.ts'

/** A user who is signed in at a service. */
export interface SignedIn {
  readonly token: string
  /** As a browser sends it: `name=value`. */
  readonly cookie: string
  /** The session as the service answered it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
  readonly session: any
  signOut(): Promise<void>
}

/** Signs a new wallet in. `headers` go with every call. */
export async function signIn(url: string, headers: Record<string, string> = {}): Promise<SignedIn> {
  const { json: challenge } = await rest(url, '/wallet/nonce', {}, headers)
  const { json, headers: answered } = await rest(url, '/wallet/verify', proofOf(makeWallet(), challenge), headers)
  const [cookie = ''] = answered.getSetCookie()[0]?.split(';') ?? []
  expect(cookie).toMatch(/^(__Host-)?countersign_session=css_/)
  return {
    token: json.token,
    cookie,
    session: json.session,
    async signOut() {
      const { status } = await rest(url, '/sign-out', {}, { ...headers, authorization: `Bearer ${json.token}` })
      expect(status).toBe(200)
    },
  }
}
