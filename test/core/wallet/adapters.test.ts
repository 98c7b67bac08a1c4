import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { type Ed25519Framing, ed25519Adapter, portableVerifier } from '../../../src/core/wallet/ed25519.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { ed25519, nimiq } from '../../../src/core/wallet/nimiq.ts'
import { Prover } from '../../../src/core/wallet/prover.ts'
import type { Proof, SignatureVerifier, WalletAdapter } from '../../../src/core/wallet/wallet.ts'
import { CountersignError, type ErrorReason } from '../../../src/shared/errors.ts'
import { bytesToHex } from '../../../src/shared/hex.ts'
import { challengeOf } from '../../support/challenge.ts'

const message = 'Example requests authentication\nNonce: 😀'

/** The framing of an adapter of one's own, with state that its functions need. */
class Prefixed implements Ed25519Framing {
  readonly id = 'prefixed'
  readonly displayName = 'Prefixed'
  readonly #prefix = 'prefix:'
  signedBytes(text: string): Uint8Array {
    return Buffer.from(this.#prefix + text)
  }
  deriveAddress(publicKey: Uint8Array): string {
    return this.#prefix + bytesToHex(publicKey)
  }
  readAddress(text: string): string | undefined {
    return text.startsWith(this.#prefix) ? text : undefined
  }
}

function newWallet(adapter: Ed25519Framing, privateKey: KeyObject = generateKeyPairSync('ed25519').privateKey) {
  const { x } = privateKey.export({ format: 'jwk' })
  const publicKey = Buffer.from(x!, 'base64url')
  return {
    publicKeyHex: publicKey.toString('hex'),
    signatureHex: sign(null, adapter.signedBytes(message), privateKey).toString('hex'),
    address: adapter.deriveAddress(publicKey),
    privateKey,
  }
}

interface Claim extends Proof {
  readonly adapters: readonly WalletAdapter[]
  readonly verifier: SignatureVerifier
  readonly message: string
}

async function prove(claim: Partial<Claim>) {
  const { adapters = [nimiq, ed25519], verifier = nativeVerifier, message: signed = message, ...proof } = claim
  const whole = { publicKeyHex: '', signatureHex: '', ...proof }
  return (await new Prover(adapters, verifier).prove(challengeOf(signed), whole, { pageOrigin: undefined })).identity
}

async function reasonOf(claim: Partial<Claim>): Promise<ErrorReason | undefined> {
  try {
    await prove(claim)
  } catch (error) {
    if (error instanceof CountersignError) return error.reason
    throw error
  }
}

describe('walletAdapters', () => {
  test('keeps the order given', () => {
    expect(walletAdapters(['nimiq', 'ed25519'])).toEqual([nimiq, ed25519])
    expect(walletAdapters(['ed25519', 'nimiq'])).toEqual([ed25519, nimiq])
    expect(walletAdapters(['nimiq'])).toEqual([nimiq])
  })

  test("takes adapters of one's own", () => {
    const own = ed25519Adapter(new Prefixed())
    expect(walletAdapters([own, 'nimiq'])).toEqual([own, nimiq])
  })

  test.each([['bitcoin'], ['Nimiq'], ['nimiq '], ['']])('refuses the unknown id %j and names the known ones', (id) => {
    expect(() => walletAdapters(['nimiq', id])).toThrow(TypeError)
    expect(() => walletAdapters([id])).toThrow(/nimiq, ed25519/)
  })

  test('refuses duplicates', () => {
    expect(() => walletAdapters(['nimiq', 'ed25519', 'nimiq'])).toThrow(TypeError)
    expect(() => walletAdapters(['nimiq', { ...ed25519, id: 'nimiq' }])).toThrow(/"nimiq" is configured twice/)
  })

  test('refuses an empty list', () => {
    expect(() => walletAdapters([])).toThrow(TypeError)
  })

  test.each(['', '-a', 'A', 'a b', 'a_b', 'a'.repeat(33), 'a\n', 7, undefined])('refuses the id %j', (id) => {
    expect(() => walletAdapters([{ ...nimiq, id } as WalletAdapter])).toThrow(TypeError)
  })

  test.each(['a', '0', 'a-', 'a'.repeat(32)])('takes the id %j', (id) => {
    expect(walletAdapters([{ ...nimiq, id }])[0]?.id).toBe(id)
  })

  test.each(['verify', 'readAddress'])('refuses an adapter without %s', (name) => {
    expect(() => walletAdapters([{ ...nimiq, [name]: undefined }])).toThrow(new RegExp(name))
  })

  test.each([null, undefined, 7])('refuses %j', (entry) => {
    expect(() => walletAdapters([entry as unknown as WalletAdapter])).toThrow(TypeError)
  })
})

describe.each([nativeVerifier, portableVerifier])('a proof with the $kind verifier', (verifier) => {
  test.each([nimiq, ed25519])('finds the $id adapter by itself, in any order', async (adapter) => {
    const { publicKeyHex, signatureHex, address } = newWallet(adapter)
    for (const adapters of [
      [nimiq, ed25519],
      [ed25519, nimiq],
    ]) {
      const identity = await prove({ adapters, verifier, publicKeyHex, signatureHex })
      expect(identity).toEqual({ adapterId: adapter.id, subject: publicKeyHex, publicKeyHex, address })
    }
  })

  test('the address of the identity key proves nothing', async () => {
    const publicKeyHex = '01'.padEnd(64, '0')
    const signatureHex = publicKeyHex + '0'.repeat(64)
    const address = 'NQ20 MXX1 Q19U 5UKQ UF5V 8G4U 3G4L X62A LHCV'
    for (const adapterId of [undefined, 'nimiq', 'ed25519']) {
      expect(await reasonOf({ verifier, publicKeyHex, signatureHex, address, adapterId })).toBe('SIGNATURE_INVALID')
    }
  })
})

describe('a proof', () => {
  const wallet = newWallet(nimiq)
  const { publicKeyHex, signatureHex, address } = wallet

  test('answers in canonical forms', async () => {
    const identity = await prove({
      publicKeyHex: publicKeyHex.toUpperCase(),
      signatureHex: signatureHex.toUpperCase(),
      address: address.replaceAll(' ', '').toLowerCase(),
      adapterId: 'nimiq',
    })
    expect(identity).toEqual({ adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address })
  })

  test('one key under two adapters makes two identities', async () => {
    const other = newWallet(ed25519, createPrivateKey(wallet.privateKey.export({ format: 'pem', type: 'pkcs8' })))
    expect(other.publicKeyHex).toBe(publicKeyHex)
    expect((await prove({ publicKeyHex, signatureHex })).adapterId).toBe('nimiq')
    expect((await prove({ publicKeyHex, signatureHex: other.signatureHex })).adapterId).toBe('ed25519')
  })

  test('a named adapter is the only one tried', async () => {
    expect((await prove({ publicKeyHex, signatureHex, adapterId: 'nimiq' })).adapterId).toBe('nimiq')
    expect(await reasonOf({ publicKeyHex, signatureHex, adapterId: 'ed25519' })).toBe('SIGNATURE_INVALID')
  })

  test('an adapter that is not configured is unknown', async () => {
    expect(await reasonOf({ publicKeyHex, signatureHex, adapterId: 'solana' })).toBe('ADAPTER_UNKNOWN')
    expect(await reasonOf({ publicKeyHex, signatureHex, adapterId: '' })).toBe('ADAPTER_UNKNOWN')
    expect(await reasonOf({ adapters: [ed25519], publicKeyHex, signatureHex, adapterId: 'nimiq' })).toBe(
      'ADAPTER_UNKNOWN',
    )
    expect(await reasonOf({ adapters: [ed25519], publicKeyHex, signatureHex })).toBe('SIGNATURE_INVALID')
  })

  test('a signature over another message proves nothing', async () => {
    expect(await reasonOf({ publicKeyHex, signatureHex, message: `${message} ` })).toBe('SIGNATURE_INVALID')
  })

  test("another wallet's key proves nothing", async () => {
    expect(await reasonOf({ publicKeyHex: newWallet(nimiq).publicKeyHex, signatureHex })).toBe('SIGNATURE_INVALID')
  })

  test.each([
    ['short key', publicKeyHex.slice(2), signatureHex],
    ['long key', `${publicKeyHex}00`, signatureHex],
    ['empty key', '', signatureHex],
    ['key that is no hex', `${publicKeyHex.slice(1)}g`, signatureHex],
    ['key with a prefix', `0x${publicKeyHex.slice(2)}`, signatureHex],
    ['short signature', publicKeyHex, signatureHex.slice(2)],
    ['odd signature', publicKeyHex, signatureHex.slice(1)],
    ['signature that is no hex', publicKeyHex, `${signatureHex.slice(1)} `],
  ])('a %s is a malformed request', async (_, key, signature) => {
    expect(await reasonOf({ publicKeyHex: key, signatureHex: signature })).toBe('INVALID_REQUEST')
  })

  test.each([
    ["another key's", newWallet(nimiq).address],
    ['malformed', 'NQ71'],
    ['empty', ''],
    ['wrongly checked', address.replace(/^NQ../, 'NQ00')],
  ])('an address that is %s does not match', async (_, other) => {
    expect(await reasonOf({ publicKeyHex, signatureHex, address: other })).toBe('ADDRESS_MISMATCH')
  })

  test('the signature counts before the address', async () => {
    expect(await reasonOf({ publicKeyHex, signatureHex, message: 'other', address: 'NQ71' })).toBe('SIGNATURE_INVALID')
  })

  test("an adapter of one's own serves like the others", async () => {
    const own = ed25519Adapter(new Prefixed())
    const proof = newWallet(own)
    const { publicKeyHex, signatureHex } = proof
    const claim = { adapters: [nimiq, own], publicKeyHex, signatureHex, adapterId: own.id }
    expect(await prove({ ...claim, address: proof.address })).toMatchObject({
      adapterId: 'prefixed',
      address: proof.address,
    })
    expect(await reasonOf({ ...claim, address: proof.publicKeyHex })).toBe('ADDRESS_MISMATCH')
  })
})

test('an adapter that speaks for another one is a mistake of the application, and proves nothing', async () => {
  const { publicKeyHex, signatureHex } = newWallet(nimiq)
  const copy = { ...nimiq, id: 'copy' }
  await expect(prove({ adapters: [copy], publicKeyHex, signatureHex, adapterId: 'copy' })).rejects.toThrow(TypeError)
})

describe('a proof that names no adapter', () => {
  test('is tried with nimiq and ed25519 only, as far as they are configured', async () => {
    const asked: string[] = []
    const spying = (adapter: WalletAdapter): WalletAdapter => ({
      ...adapter,
      verify: (...claim) => {
        asked.push(adapter.id)
        return adapter.verify(...claim)
      },
    })
    const own = ed25519Adapter(new Prefixed())
    const { publicKeyHex, signatureHex } = newWallet(own)
    const adapters = [own, ed25519, nimiq].map(spying)
    expect(await reasonOf({ adapters, publicKeyHex, signatureHex })).toBe('SIGNATURE_INVALID')
    expect(asked).toEqual(['ed25519', 'nimiq'])
  })

  test('is refused with the names to choose from if neither is configured', async () => {
    const own = ed25519Adapter(new Prefixed())
    const { publicKeyHex, signatureHex } = newWallet(own)
    await expect(prove({ adapters: [own], publicKeyHex, signatureHex })).rejects.toMatchObject({
      reason: 'ADAPTER_UNKNOWN',
      metadata: { adapters: 'prefixed' },
    })
  })
})
