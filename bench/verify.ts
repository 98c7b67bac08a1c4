import { createPublicKey, verify } from 'node:crypto'
import { blake2b } from '@noble/hashes/blake2.js'
import nacl from 'tweetnacl'
import { hexToBytes } from '../src/hex.ts'
import { walletAdapters } from '../src/wallet/adapters.ts'
import type { StoredChallenge } from '../src/wallet/form.ts'
import { nativeVerifier } from '../src/wallet/native.ts'
import { nimiq } from '../src/wallet/nimiq.ts'
import { Prover } from '../src/wallet/prover.ts'
import { portableVerifier } from '../src/wallet/strict-ed25519.ts'
import type { SignatureVerifier } from '../src/wallet/verifier.ts'
import { compare, inLoop, printMeasured, type Subject } from './harness.ts'
import { makeWallets, type Wallet } from './wallets.ts'

/** What a challenge looks like, in length and form. */
const message = `Countersign requests authentication
Action: auth.login
Origin: https://app.example
Challenge ID: login
Nonce: ${'n'.repeat(43)}
Issued At: 2026-01-01T00:00:00.000Z
Expires At: 2026-01-01T00:05:00.000Z`

/** Enough for what takes microseconds. */
const brief = { roundMs: 100 }

/** Checking a wallet's proof: signatures, addresses, and both together. */
export async function benchVerify(): Promise<void> {
  const [wallet] = makeWallets(1) as [Wallet]
  const { publicKey } = wallet
  const proof = wallet.prove(message)
  const signature = hexToBytes(proof.signatureHex) as Uint8Array
  const bytes = new TextEncoder().encode(message)
  const key = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') },
    format: 'jwk',
  })
  const challenge: StoredChallenge = {
    action: 'order.approve',
    nonce: '',
    origin: 'https://app.example',
    issuedAt: 0,
    expiresAt: 0,
    message,
  }
  const adapters = walletAdapters(['nimiq', 'ed25519'])
  const { publicKeyHex, signatureHex, adapterId } = proof
  const prove = (verifier: SignatureVerifier, named?: string) => {
    const prover = new Prover(adapters, verifier)
    return () => prover.prove(challenge, { publicKeyHex, signatureHex, adapterId: named }, undefined)
  }
  const subject = (name: string, operation: () => unknown, floor?: string): Subject => ({
    name,
    load: inLoop(operation),
    ...(floor === undefined ? {} : { floor }),
  })

  const crypto = 'node:crypto verify, key imported once'
  const native = await compare(
    [
      subject(crypto, () => verify(null, bytes, key, signature)),
      subject('native verifier', () => nativeVerifier.verify(signature, bytes, publicKey), crypto),
      subject('whole proof, adapter named', prove(nativeVerifier, adapterId), crypto),
      subject('whole proof, second of two adapters tried', prove(nativeVerifier), crypto),
    ],
    brief,
  )
  printMeasured('Proofs, native verifier', 'proofs', native)

  const tweetnacl = 'tweetnacl verify'
  const portable = await compare([
    subject(tweetnacl, () => nacl.sign.detached.verify(bytes, signature, publicKey)),
    subject('portable verifier', () => portableVerifier.verify(signature, bytes, publicKey), tweetnacl),
    subject('whole proof, adapter named', prove(portableVerifier, adapterId), tweetnacl),
  ])
  printMeasured('Proofs, portable verifier', 'proofs', portable)

  const hash = 'BLAKE2b-256 of @noble/hashes'
  const address = nimiq.deriveAddress(publicKey)
  const addresses = await compare(
    [
      subject(hash, () => blake2b(publicKey, { dkLen: 32 })),
      subject('derive an address', () => nimiq.deriveAddress(publicKey), hash),
      subject('compare two addresses', () => nimiq.sameAddress(address, address), hash),
      subject('frame a message as Nimiq does', () => nimiq.signedBytes(message), hash),
    ],
    brief,
  )
  printMeasured('Addresses and framing', 'times', addresses)
}
