import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { describe, expect, onTestFinished, test } from 'vitest'
import { portableVerifier } from '../../../src/core/wallet/ed25519.ts'
import { chooseVerifier, nativeVerifier, selfTest } from '../../../src/core/wallet/native.ts'
import type { SignatureVerifier } from '../../../src/core/wallet/wallet.ts'
import rfc8032 from '../../vectors/rfc8032.json' with { type: 'json' }
import { decodeInteger, encodeInteger, L, smallOrderEncodings } from './curve.ts'

type Verify = typeof crypto.verify

let copies = 0

/** A new copy of native.ts, over a node:crypto with another `verify` until the test ends. */
async function nativeOver(verify: unknown): Promise<typeof import('../../../src/core/wallet/native.ts')> {
  const actual = crypto.verify
  setVerify(verify as Verify)
  onTestFinished(() => setVerify(actual))
  // A query makes a module of its own. Vite would look for a template as the argument among the files.
  const copy = `../../../src/core/wallet/native.ts?copy=${++copies}`
  return await import(copy)
}

function setVerify(verify: Verify): void {
  crypto.verify = verify
  syncBuiltinESMExports()
}

const verifierThat = (verify: SignatureVerifier['verify']): SignatureVerifier => ({ kind: 'native', verify })

describe('selfTest', () => {
  test('passes both verifiers', () => {
    expect(selfTest(portableVerifier)).toBe(true)
    expect(selfTest(nativeVerifier)).toBe(true)
  })

  test.each<[string, SignatureVerifier['verify']]>([
    ['accepts everything', () => true],
    ['refuses everything', () => false],
    [
      'throws',
      () => {
        throw new Error('out of order')
      },
    ],
    [
      'does not look at the message',
      (signature, _, key) => nativeVerifier.verify(signature, Buffer.from('72', 'hex'), key),
    ],
    [
      'does not look at R',
      (signature, message, key) => {
        const { signatureHex, publicKeyHex } = rfc8032.vectors[1]!
        const whole = Buffer.concat([Buffer.from(signatureHex, 'hex').subarray(0, 32), signature.subarray(32)])
        return publicKeyHex === Buffer.from(key).toString('hex') && nativeVerifier.verify(whole, message, key)
      },
    ],
    [
      'accepts the identity key',
      (signature, message, key) => key[0] === 1 || nativeVerifier.verify(signature, message, key),
    ],
    [
      'reduces S',
      (signature, message, key) => {
        const S = decodeInteger(signature.subarray(32)) % L
        return nativeVerifier.verify(Buffer.concat([signature.subarray(0, 32), encodeInteger(S)]), message, key)
      },
    ],
  ])('fails one that %s', (_, verify) => {
    expect(selfTest(verifierThat(verify))).toBe(false)
  })
})

describe('chooseVerifier', () => {
  test('takes the native one where it works', () => {
    expect(chooseVerifier('auto')).toBe(nativeVerifier)
    expect(chooseVerifier('native')).toBe(nativeVerifier)
    expect(chooseVerifier('portable')).toBe(portableVerifier)
  })

  test.each<[string, () => boolean]>([
    ['accepts everything', () => true],
    ['refuses everything', () => false],
    [
      'knows no Ed25519',
      () => {
        throw new Error('unsupported')
      },
    ],
  ])('does without a node:crypto that %s', async (_, verify) => {
    const native = await nativeOver(verify)
    expect(native.chooseVerifier('auto').kind).toBe('portable')
    expect(native.chooseVerifier('portable').kind).toBe('portable')
    expect(() => native.chooseVerifier('native')).toThrow(
      /^verifier \(COUNTERSIGN_VERIFIER\) cannot be native: [^\n]+$/,
    )
  })
})

test('what is not strict never reaches node:crypto, however lax that may be', async () => {
  const { nativeVerifier } = await nativeOver(() => true)
  const { publicKeyHex, signatureHex } = rfc8032.vectors[1]!
  const [key, signature] = [publicKeyHex, signatureHex].map((hex) => Buffer.from(hex, 'hex'))
  const [R, S] = [signature!.subarray(0, 32), signature!.subarray(32)]
  const message = Buffer.from('hello')
  expect(nativeVerifier.verify(signature!, message, key!)).toBe(true)
  for (const small of smallOrderEncodings) {
    expect(nativeVerifier.verify(signature!, message, small)).toBe(false)
    expect(nativeVerifier.verify(Buffer.concat([small, S]), message, key!)).toBe(false)
  }
  const largeS = encodeInteger(decodeInteger(S) + L)
  expect(nativeVerifier.verify(Buffer.concat([R, largeS]), message, key!)).toBe(false)
})

test('a node:crypto without raw keys serves as well', async () => {
  let verifications = 0
  const { verify } = crypto
  const { nativeVerifier, chooseVerifier } = await nativeOver(
    (...[algorithm, data, key, signature]: Parameters<Verify>) => {
      if (typeof key === 'object' && 'format' in key && (key.format as string) === 'raw-public') {
        throw new TypeError("The property 'options.format' is invalid. Received 'raw-public'")
      }
      verifications++
      return verify(algorithm, data, key, signature)
    },
  )
  expect(chooseVerifier('native')).toBe(nativeVerifier)
  for (const { publicKeyHex, messageHex, signatureHex } of rfc8032.vectors) {
    const [key, message, signature] = [publicKeyHex, messageHex, signatureHex].map((hex) => Buffer.from(hex, 'hex'))
    expect(nativeVerifier.verify(signature!, message!, key!)).toBe(true)
    expect(nativeVerifier.verify(signature!, Buffer.from('other'), key!)).toBe(false)
  }
  expect(verifications).toBeGreaterThan(0)
})
