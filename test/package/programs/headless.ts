import assert from 'node:assert/strict'
import { CountersignError, createSignInChallenge, type SignInChallenge, verifySignIn } from 'countersign/core'
import { makeTestWallet } from 'countersign/testing'

const origin = 'https://app.example'
const challenges = new Map<string, SignInChallenge>()
const begun = createSignInChallenge({ appName: 'Example', origin })
challenges.set(begun.nonce, JSON.parse(JSON.stringify(begun)))

const wallet = makeTestWallet()
const proof = { publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(begun.message) }

const challenge = challenges.get(begun.nonce)
challenges.delete(begun.nonce)
assert(challenge)
const { adapterId, address } = await verifySignIn({ challenge, proof, origin })
assert.deepEqual([adapterId, address], ['nimiq', wallet.address])
const elsewhere = verifySignIn({ challenge, proof, origin: 'https://evil.example' })
await assert.rejects(elsewhere, (error) => error instanceof CountersignError && error.reason === 'ORIGIN_MISMATCH')
console.log(`${adapterId} ${address}`)
