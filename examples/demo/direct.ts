import { createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { SessionService } from '../../gen/client/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/client/countersign/v1/sign_in_service_pb.ts'
import { indented, say, short, step } from './print.ts'
import type { Wallet } from './wallet.ts'

/** Direct sign-in, three times: over REST, Connect and gRPC. */
export async function signInDirectly(url: string, wallet: Wallet): Promise<void> {
  step('Sign in over REST, as curl would')
  await overRest(url, wallet)
  step('The same over Connect, with the generated client')
  await overRpc(createConnectTransport({ baseUrl: url, httpVersion: '1.1' }), wallet)
  step('The same over gRPC')
  await overRpc(createGrpcTransport({ baseUrl: url }), wallet)
}

async function overRest(url: string, wallet: Wallet): Promise<void> {
  const challenge = await post(`${url}/api/auth/wallet/nonce`, {})
  say('POST /api/auth/wallet/nonce   the server makes a challenge, to be used once, for this text to be signed:')
  indented(challenge.message)
  const signatureHex = wallet.sign(challenge.message)
  say(`the wallet signs it: ${short(signatureHex)}`)
  const result = await post(`${url}/api/auth/wallet/verify`, {
    nonceId: challenge.nonceId,
    publicKeyHex: wallet.publicKeyHex,
    signatureHex,
    address: wallet.address,
  })
  say('POST /api/auth/wallet/verify  the server checks the signature, and there is a session:')
  indented(`token    ${short(result.token)}\nuser     ${result.session.userId}\naddress  ${result.session.address}`)
  const again = await fetch(`${url}/api/auth/wallet/verify`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ nonceId: challenge.nonceId, publicKeyHex: wallet.publicKeyHex, signatureHex }),
  })
  const refusal = (await again.json()) as { code: string }
  if (again.ok) throw new Error('a nonce was accepted twice')
  say(`the same once more is refused: ${again.status} ${refusal.code}`)
}

async function overRpc(transport: Transport, wallet: Wallet): Promise<void> {
  const { nonceId, message } = await createClient(SignInService, transport).issueNonce({})
  say('SignInService.IssueNonce           a challenge')
  const proof = { nonceId, publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
  const { token } = await createClient(SignInService, transport).verifySignIn(proof)
  say(`SignInService.VerifySignIn         a session: ${short(token)}`)
  const headers = { authorization: `Bearer ${token}` }
  const { session } = await createClient(SessionService, transport).getCurrentSession({}, { headers })
  say(`SessionService.GetCurrentSession   ${session?.address}`)
  const { sessions } = await createClient(SessionService, transport).listSessions({}, { headers })
  say(`SessionService.ListSessions        ${sessions.length} sessions of this wallet`)
}

// biome-ignore lint/suspicious/noExplicitAny: JSON, as it comes.
async function post(url: string, body: object): Promise<any> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return await response.json()
}
