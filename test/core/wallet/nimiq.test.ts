import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { KeyPair, PrivateKey, PublicKey } from '@nimiq/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { portableVerifier } from '../../../src/core/wallet/ed25519.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { nimiq } from '../../../src/core/wallet/nimiq.ts'
import { Prover } from '../../../src/core/wallet/prover.ts'
import { isSameAddress, type Proof } from '../../../src/core/wallet/wallet.ts'
import { hexToBytes } from '../../../src/shared/hex.ts'
import { challengeOf } from '../../support/challenge.ts'
import vectors from '../../vectors/nimiq.json' with { type: 'json' }

const bytes = (hex: string): Uint8Array => hexToBytes(hex)!
const address = vectors.vectors[0]!.address

/** What a Nimiq wallet hands to Ed25519. */
function frame(message: string): Buffer {
  const body = Buffer.from(message)
  return createHash('sha256').update('\x16Nimiq Signed Message:\n').update(String(body.length)).update(body).digest()
}

describe.each(vectors.vectors)(`${vectors.source}: $name`, (vector) => {
  test('bytes, address, signature', () => {
    expect(Buffer.byteLength(vector.message)).toBe(vector.messageBytes)
    expect(Buffer.from(nimiq.signedBytes(vector.message))).toEqual(frame(vector.message))
    expect(nimiq.deriveAddress(bytes(vector.publicKeyHex))).toBe(vector.address)
    for (const verifier of [portableVerifier, nativeVerifier]) {
      const holds = verifier.verify(
        bytes(vector.signatureHex),
        nimiq.signedBytes(vector.message),
        bytes(vector.publicKeyHex),
      )
      switch (vector.result) {
        case 'valid':
          expect(holds).toBe(true)
          break
        default:
          throw new Error(`unknown result ${vector.result}`)
      }
    }
  })

  test('@nimiq/core makes it', () => {
    const pair = KeyPair.derive(PrivateKey.fromHex(vector.secretKeyHex))
    expect(pair.publicKey.toHex()).toBe(vector.publicKeyHex)
    expect(pair.toAddress().toUserFriendlyAddress()).toBe(vector.address)
    expect(pair.sign(frame(vector.message)).toHex()).toBe(vector.signatureHex)
  })
})

test('the length in the frame counts bytes', () => {
  expect(Buffer.from(nimiq.signedBytes('é'))).toEqual(
    createHash('sha256').update('\x16Nimiq Signed Message:\n2é').digest(),
  )
})

test('a raw Ed25519 signature over the digest of a message is a Nimiq proof over the message, and no ed25519 proof', async () => {
  const message = 'Example requests authentication\nAction: auth.login'
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const publicKeyHex = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
  const proof = { publicKeyHex, signatureHex: sign(null, frame(message), privateKey).toString('hex') }
  const prover = new Prover(walletAdapters(['ed25519', 'nimiq']), nativeVerifier)
  const prove = async (one: Proof) =>
    (await prover.prove(challengeOf(message), one, { pageOrigin: undefined })).identity
  expect(await prove(proof)).toEqual({
    adapterId: 'nimiq',
    subject: publicKeyHex,
    publicKeyHex,
    address: nimiq.deriveAddress(bytes(publicKeyHex)),
  })
  const asEd25519 = prove({ ...proof, adapterId: 'ed25519' })
  await expect(asEd25519).rejects.toMatchObject({ reason: 'SIGNATURE_INVALID' })
  // The same key's own ed25519 identity differs by its adapter alone.
  const signatureHex = sign(null, Buffer.from(message), privateKey).toString('hex')
  expect(await prove({ publicKeyHex, signatureHex })).toMatchObject({
    adapterId: 'ed25519',
    publicKeyHex,
  })
})

test('agrees with @nimiq/core on random keys and messages', () => {
  let run = 0
  let moreBytesThanCharacters = 0
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      (secret, message) => {
        const pair = KeyPair.derive(new PrivateKey(secret))
        const key = pair.publicKey.serialize()
        const signature = pair.sign(frame(message)).serialize()
        expect(nimiq.deriveAddress(key)).toBe(pair.toAddress().toUserFriendlyAddress())
        expect(nativeVerifier.verify(signature, nimiq.signedBytes(message), key)).toBe(true)
        // Every tenth, because it takes 10 ms.
        if (run++ % 10 === 0) expect(portableVerifier.verify(signature, nimiq.signedBytes(message), key)).toBe(true)
        if (Buffer.byteLength(message) !== message.length) moreBytesThanCharacters++
      },
    ),
    { numRuns: 500 },
  )
  expect(moreBytesThanCharacters).toBeGreaterThan(50)
})

describe('addresses', () => {
  test("the identity point's, which nobody owns", () => {
    const identity = bytes('01'.padEnd(64, '0'))
    expect(nimiq.deriveAddress(identity)).toBe('NQ20 MXX1 Q19U 5UKQ UF5V 8G4U 3G4L X62A LHCV')
  })

  test('derive from 32 bytes only', () => {
    expect(() => nimiq.deriveAddress(new Uint8Array(31))).toThrow(TypeError)
    expect(() => nimiq.deriveAddress(new Uint8Array(64))).toThrow(TypeError)
  })

  test('check digits below ten keep their zero', () => {
    for (let attempt = 0; ; attempt++) {
      const key = createHash('sha256').update(String(attempt)).digest()
      const derived = nimiq.deriveAddress(key)
      if (!derived.startsWith('NQ0')) continue
      expect(derived).toBe(new PublicKey(key).toAddress().toUserFriendlyAddress())
      expect(isSameAddress(nimiq, derived, derived)).toBe(true)
      break
    }
  })

  test.each([
    ['no grouping', address.replaceAll(' ', '')],
    ['other grouping', address.replaceAll(' ', '').replace(/.{7}/g, '$&  ')],
    ['spaces around', `  ${address} `],
    ['lower case', address.toLowerCase()],
    ['mixed case', address.replace('NQ', 'nQ').replace('EHSB', 'eHsB')],
  ])('%s makes the same address', (_, other) => {
    expect(isSameAddress(nimiq, address, other)).toBe(true)
    expect(isSameAddress(nimiq, other, address)).toBe(true)
  })

  test.each([
    ['nothing', ''],
    ['a character less', address.slice(0, -1)],
    ['a character more', `${address}0`],
    ['another country', address.replace('NQ', 'DE')],
    ['other check digits', address.replace('NQ71', 'NQ72')],
    ['a wrong character', address.replace('CT4K', 'CT4L')],
    ['two characters swapped', address.replace('CT4K', 'C4TK')],
    ['a letter outside the alphabet', address.replace('CT4K', 'CTOK')],
    ['tabs', address.replaceAll(' ', '\t')],
    ['line breaks', `${address}\n`],
    ['hyphens', address.replaceAll(' ', '-')],
    ['no-break spaces', address.replaceAll(' ', '\u00a0')],
    ['a letter whose upper case is S', address.replace('S', 'ſ')],
    ['a letter whose lower case is k', address.replace('K', '\u212a')],
    ['full-width digits', address.replace('7', '７')],
  ])('%s makes no address', (_, other) => {
    expect(isSameAddress(nimiq, address, other)).toBe(false)
    expect(isSameAddress(nimiq, other, address)).toBe(false)
    expect(isSameAddress(nimiq, other, other)).toBe(false)
  })

  // 97 more or less leaves the remainder that an IBAN's check looks at.
  test('check digits have one spelling', () => {
    const spellings = { '00': '97', '01': '98', '99': '02' }
    const found = new Set<string>()
    for (let attempt = 0; found.size < 3; attempt++) {
      const derived = nimiq.deriveAddress(createHash('sha256').update(String(attempt)).digest())
      for (const [other, digits] of Object.entries(spellings)) {
        if (derived.slice(2, 4) !== digits) continue
        expect(isSameAddress(nimiq, derived, derived)).toBe(true)
        const respelt = `NQ${other}${derived.slice(4)}`
        expect(isSameAddress(nimiq, derived, respelt)).toBe(false)
        expect(isSameAddress(nimiq, respelt, respelt)).toBe(false)
        found.add(digits)
      }
    }
  })

  test('of two keys differ', () => {
    const [one, other] = [randomBytes(32), randomBytes(32)].map(nimiq.deriveAddress)
    expect(isSameAddress(nimiq, one!, other!)).toBe(false)
  })

  test('no text makes the comparison throw, or two texts of different characters the same', () => {
    const nearly = fc
      .tuple(fc.nat(address.length), fc.nat(3), fc.string({ unit: 'binary', maxLength: 3 }))
      .map(([at, cut, text]) => address.slice(0, at) + text + address.slice(at + cut))
    const text = fc.oneof(fc.string({ unit: 'binary' }), nearly, fc.string({ unit: fc.constantFrom(...address) }))
    fc.assert(
      fc.property(text, text, (a, b) => {
        const compact = (spelling: string): string => spelling.replaceAll(' ', '').toUpperCase()
        const same = isSameAddress(nimiq, a, b)
        expect(isSameAddress(nimiq, b, a)).toBe(same)
        if (same) expect(compact(a)).toBe(compact(b))
      }),
      { numRuns: 3000 },
    )
    expect(isSameAddress(nimiq, ' '.repeat(2 ** 22), address)).toBe(false)
  })
})
