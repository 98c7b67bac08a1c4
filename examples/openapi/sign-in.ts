// A direct sign-in with a client that was generated from /openapi.json: see docs/other-languages.md. The generated key stands for
// a wallet.
import { generateKeyPairSync, sign } from 'node:crypto'
import createClient from 'openapi-fetch'
import type { paths } from './countersign.ts'

const client = createClient<paths>({ baseUrl: process.argv[2] ?? 'http://localhost:8080' })

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const publicKeyHex = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex')

const nonce = await client.POST('/api/auth/wallet/nonce', { body: {} })
if (nonce.error) throw new Error(nonce.error.message)
const { nonceId, message } = nonce.data

const signatureHex = sign(null, Buffer.from(message), privateKey).toString('hex')
const proof = { nonceId, publicKeyHex, signatureHex, adapterId: 'ed25519' }
const signedIn = await client.POST('/api/auth/wallet/verify', { body: proof })
if (signedIn.error) throw new Error(signedIn.error.message)

const headers = { authorization: `Bearer ${signedIn.data.token}` }
const current = await client.GET('/api/auth/session', { headers })
console.log('signed in as', current.data?.session.address)

// A nonce is good once.
const again = await client.POST('/api/auth/wallet/verify', { body: proof })
if (again.error?.code === 'NONCE_NOT_FOUND') console.log('refused:', again.error.code)
