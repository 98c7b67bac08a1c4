// Stands for a wallet in the examples with curl: makes a key, signs the message of the challenge on standard input, and prints
// the body of a verify request; with an order's id and challenge token as arguments, that of an approve request. A real wallet
// keeps its key and asks its owner.
import { generateKeyPairSync, sign } from 'node:crypto'
import { json } from 'node:stream/consumers'

const [orderId, challengeToken] = process.argv.slice(2)
const { nonceId, message } = await json(process.stdin)
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const publicKeyHex = Buffer.from(publicKey.export({ format: 'jwk' }).x, 'base64url').toString('hex')
const signatureHex = sign(null, Buffer.from(message), privateKey).toString('hex')
const proof = { publicKeyHex, signatureHex, adapterId: 'ed25519' }
process.stdout.write(JSON.stringify(orderId === undefined ? { nonceId, ...proof } : { orderId, challengeToken, proof }))
