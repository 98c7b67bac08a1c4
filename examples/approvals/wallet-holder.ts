/** The user's side, which a browser does otherwise: signs in, and approves what waits in the inbox. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** A wallet for trying things out: it signs the text as it is, with Ed25519, without asking. */
export interface DemoWallet {
  readonly publicKeyHex: string
  readonly privateKey: KeyObject
}

export function makeWallet(): DemoWallet {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  return { publicKeyHex: Buffer.from(x, 'base64url').toString('hex'), privateKey }
}

function prove({ publicKeyHex, privateKey }: DemoWallet, message: string) {
  return {
    adapterId: 'ed25519',
    publicKeyHex,
    signatureHex: sign(null, Buffer.from(message), privateKey).toString('hex'),
  }
}

/** Signs a wallet in. Resolves with the session's token. */
export async function signIn(url: string, wallet: DemoWallet): Promise<string> {
  const { nonceId, message } = await call(`${url}/api/auth/wallet/nonce`, {})
  return (await call(`${url}/api/auth/wallet/verify`, { nonceId, ...prove(wallet, message) })).token
}

/** Approves an order in the inbox of the session's user. */
export async function approveInInbox(options: {
  readonly url: string
  readonly wallet: DemoWallet
  readonly token: string
  readonly orderId: string
}): Promise<void> {
  const { url, wallet, token, orderId } = options
  const claimKey = randomBytes(16).toString('base64url')
  const { challengeToken } = await call(`${url}/api/auth/inbox/claim`, { orderId, claimKey }, token)
  const challenge = `${url}/api/auth/cross-device/challenge?orderId=${orderId}`
  const { message } = await call(challenge, undefined, challengeToken)
  await call(`${url}/api/auth/cross-device/approve`, { orderId, challengeToken, proof: prove(wallet, message) })
}

// biome-ignore lint/suspicious/noExplicitAny: JSON, as it comes.
async function call(url: string, body?: object, token?: string): Promise<any> {
  const response = await fetch(url, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return await response.json()
}
