import { base58 } from '@scure/base'
import nacl from 'tweetnacl'
import { describe, expect, test } from 'vitest'
import { portableVerifier } from '../../../src/core/wallet/ed25519.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { solana } from '../../../src/core/wallet/solana.ts'
import { isSameAddress, type SignatureVerifier } from '../../../src/core/wallet/wallet.ts'
import { makeSolanaWallet } from '../../support/solana.ts'
import data from '../../vectors/solana.json' with { type: 'json' }

const signingDomain = Buffer.concat([Uint8Array.of(0xff), Buffer.from('solana offchain')])
const wallet = makeSolanaWallet(new Uint8Array(32).fill(7))
const zeros = new Uint8Array(32)

/** The verifier of tweetnacl as it is, which accepts keys and signatures that nobody made. */
const lenient: SignatureVerifier = {
  kind: 'portable',
  verify: (signature, message, publicKey) => nacl.sign.detached.verify(message, signature, publicKey),
}

/** Whether a wallet's signature over these bytes proves that it agreed to a text. */
async function proves(text: string, ...signed: (string | readonly number[] | Uint8Array)[]): Promise<boolean> {
  const bytes = Buffer.concat(signed.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))))
  const { publicKeyHex } = wallet
  const proof = { publicKeyHex, signatureHex: wallet.sign(bytes), adapterId: 'solana' }
  return (await solana.verify(text, proof, nativeVerifier)) !== undefined
}

const length = (text: string): number[] => {
  const bytes = Buffer.byteLength(text)
  return [bytes & 0xff, bytes >> 8]
}
const v0 = (format: number, text: string) =>
  [signingDomain, [0], zeros, [format, 1], wallet.publicKey, length(text), text] as const
const legacy = (format: number, text: string) => [signingDomain, [0, format], length(text), text] as const

describe.each([nativeVerifier, portableVerifier])('with the $kind verifier', (verifier) => {
  test.each(data.vectors)('the vector "$name" proves its wallet, and no other text', async (vector) => {
    const { publicKeyHex, signatureHex, address, text } = vector
    expect(base58.encode(Buffer.from(signatureHex, 'hex'))).toBe(vector.signatureBase58)
    const proof = { publicKeyHex, signatureHex, address, adapterId: 'solana' }
    expect(await solana.verify(text, proof, verifier)).toEqual({
      adapterId: 'solana',
      subject: publicKeyHex,
      publicKeyHex,
      address,
    })
    expect(await solana.verify(`${text} `, proof, verifier)).toBeUndefined()
    expect(await solana.verify(text.slice(1), proof, verifier)).toBeUndefined()
  })
})

test.each(data.forgeries)('the key "$name" signs for nobody, whatever the verifier says', async (forgery) => {
  const { publicKeyHex, address } = forgery
  const zeroS = '0'.repeat(64)
  for (const signatureHex of [forgery.signatureHex, publicKeyHex + zeroS, '01'.padEnd(64, '0') + zeroS]) {
    if (signatureHex === undefined) continue
    for (const verifier of [nativeVerifier, portableVerifier, lenient]) {
      for (const text of ['', 'a', 'b', 'c', ...data.vectors.map(({ text }) => text)]) {
        for (const claimed of [address, undefined]) {
          const proof = { publicKeyHex, signatureHex, address: claimed, adapterId: 'solana' }
          expect(await solana.verify(text, proof, verifier)).toBeUndefined()
        }
      }
    }
  }
})

test.each(data.forgeries)('the address of the key "$name" is no wallet’s', ({ address }) => {
  expect(isSameAddress(solana, address, address)).toBe(false)
  expect(() => solana.accountId?.(address, 'mainnet')).toThrow(/address/)
})

describe('an off-chain message around a text', () => {
  const [line, lines, umlaut] = ['one line', 'two\nlines', 'Größe']

  test('of version 1 names the wallet as its one signer', async () => {
    const other = makeSolanaWallet().publicKey
    for (const text of [line, lines, umlaut, 'x'.repeat(70_000)]) {
      expect(await proves(text, signingDomain, [1, 1], wallet.publicKey, text)).toBe(true)
      expect(await proves(text, signingDomain, [1, 1], other, text)).toBe(false)
      expect(await proves(text, signingDomain, [1, 2], wallet.publicKey, other, text)).toBe(false)
      expect(await proves(text, signingDomain, [2, 1], wallet.publicKey, text)).toBe(false)
    }
  })

  test('of version 0 has no application domain, one signer and the length of the text', async () => {
    const other = makeSolanaWallet().publicKey
    const signers = [1, ...wallet.publicKey]
    expect(await proves(lines, ...v0(1, lines))).toBe(true)
    expect(await proves(lines, signingDomain, [0], other, [1], signers, length(lines), lines)).toBe(false)
    expect(await proves(lines, signingDomain, [0], zeros, [1, 1], other, length(lines), lines)).toBe(false)
    expect(await proves(lines, signingDomain, [0], zeros, [1], signers, length(`${lines} `), lines)).toBe(false)
  })

  test('of version 0 has a format that fits its text', async () => {
    // As ASCII with line feeds, which Ledger shows in clear, or as UTF-8.
    for (const text of [line, lines]) {
      expect([await proves(text, ...v0(0, text)), await proves(text, ...v0(1, text))]).toEqual([true, true])
    }
    expect([await proves(umlaut, ...v0(0, umlaut)), await proves(umlaut, ...v0(1, umlaut))]).toEqual([false, true])
    const [short, long, longest] = ['x'.repeat(1232 - 85), 'x'.repeat(1233 - 85), 'x'.repeat(65_535)]
    expect(await proves(short, ...v0(2, short))).toBe(false)
    for (const text of [long, longest]) expect(await proves(text, ...v0(2, text))).toBe(true)
    for (const text of [lines, long]) expect(await proves(text, ...v0(3, text))).toBe(false)
    const tooLong = 'x'.repeat(65_536)
    expect(await proves(tooLong, ...v0(2, tooLong))).toBe(false)
  })

  test('of the legacy layout has a format that fits its text', async () => {
    expect([await proves(line, ...legacy(0, line)), await proves(line, ...legacy(1, line))]).toEqual([true, false])
    for (const text of [lines, umlaut]) {
      expect([await proves(text, ...legacy(0, text)), await proves(text, ...legacy(1, text))]).toEqual([false, true])
    }
    const [short, justAbove, between, long] = [1232 - 20, 1233 - 20, 1232, 1233].map(
      (size) => `\n${'x'.repeat(size - 1)}`,
    )
    expect([await proves(short!, ...legacy(1, short!)), await proves(short!, ...legacy(2, short!))]).toEqual([
      true,
      false,
    ])
    for (const text of [justAbove!, between!]) {
      for (const format of [1, 2]) expect(await proves(text, ...legacy(format, text))).toBe(true)
    }
    expect([await proves(long!, ...legacy(1, long!)), await proves(long!, ...legacy(2, long!))]).toEqual([false, true])
  })

  test('proves nothing in place of the text that it stands around', async () => {
    const around = Buffer.concat([signingDomain, Uint8Array.of(1, 1), wallet.publicKey, Buffer.from(lines)])
    expect(await proves(around.toString('latin1'), around)).toBe(false)
    expect(await proves(around.toString('utf8'), around)).toBe(false)
  })
})
