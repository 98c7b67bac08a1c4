import { createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { SessionService } from '../../gen/client/countersign/v1/session_service_pb.ts'
import { SignInService } from '../../gen/client/countersign/v1/sign_in_service_pb.ts'
import { done, short } from './print.ts'
import type { Wallet } from './wallet.ts'

/** Direct sign-in, three times: over REST, Connect and gRPC. */
export async function signInDirectly(url: string, wallet: Wallet): Promise<void> {
  await overRest(url, wallet)
  await overRpc('Connect', createConnectTransport({ baseUrl: url, httpVersion: '1.1' }), wallet)
  await overRpc('gRPC', createGrpcTransport({ baseUrl: url }), wallet)
}

async function overRest(url: string, wallet: Wallet): Promise<void> {
  const challenge = await post(`${url}/api/auth/wallet/nonce`, {})
  done('POST /api/auth/wallet/nonce: a text to sign, once')
  const signatureHex = wallet.sign(challenge.message)
  const result = await post(`${url}/api/auth/wallet/verify`, {
    nonceId: challenge.nonceId,
    publicKeyHex: wallet.publicKeyHex,
    signatureHex,
    address: wallet.address,
  })
  done(`POST /api/auth/wallet/verify: signed in as ${result.session.address}, token ${short(result.token)}`)
  const again = await fetch(`${url}/api/auth/wallet/verify`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ nonceId: challenge.nonceId, publicKeyHex: wallet.publicKeyHex, signatureHex }),
  })
  const refusal = (await again.json()) as { code: string }
  if (again.ok) throw new Error('a nonce was accepted twice')
  done(`the same once more: refused, ${again.status} ${refusal.code}`)
}

async function overRpc(protocol: string, transport: Transport, wallet: Wallet): Promise<void> {
  const { nonceId, message } = await createClient(SignInService, transport).issueNonce({})
  const proof = { nonceId, publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) }
  const { token } = await createClient(SignInService, transport).verifySignIn(proof)
  const headers = { authorization: `Bearer ${token}` }
  const { sessions } = await createClient(SessionService, transport).listSessions({}, { headers })
  done(`${protocol}: IssueNonce, VerifySignIn, ListSessions (${sessions.length} sessions)`)
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
