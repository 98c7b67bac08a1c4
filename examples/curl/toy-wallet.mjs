// Stands for a wallet in the README's curl example: makes a key, signs the message of the challenge on standard input, and
// prints the body of a verify request. A real wallet keeps its key and asks its owner.
import { generateKeyPairSync, sign } from 'node:crypto'
import { json } from 'node:stream/consumers'

const { nonceId, message } = await json(process.stdin)
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const publicKeyHex = Buffer.from(publicKey.export({ format: 'jwk' }).x, 'base64url').toString('hex')
const signatureHex = sign(null, Buffer.from(message), privateKey).toString('hex')
process.stdout.write(JSON.stringify({ nonceId, publicKeyHex, signatureHex, adapterId: 'ed25519' }))
