import { secp256k1 } from '@noble/curves/secp256k1.js'
import { describe, expect, test } from 'vitest'
import { stellar } from '../../../examples/custom-wallet/stellar.ts'
import { tron } from '../../../examples/custom-wallet/tron.ts'
import { sharedKeysWarnings, walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import type { Proof, WalletAdapter } from '../../../src/core/wallet/wallet.ts'
import { type SignatureKind, signatureAdapter } from '../../../src/index.ts'
import { makeTestWallet, type TestWallet } from '../../../src/integrations/testing/index.ts'
import { type AdapterId, adapterIds } from '../../../src/shared/adapters.ts'
import { CountersignError } from '../../../src/shared/errors.ts'
import { makeEthereumWallet, makeStellarWallet, makeTronWallet, tronAddress } from '../../support/chains.ts'
import { makeSolanaWallet } from '../../support/solana.ts'
import vectors from '../../vectors/chains.json' with { type: 'json' }

const text = 'Example requests authentication\nNonce: 😀'
const n = secp256k1.Point.Fn.ORDER
const word = (value: bigint): string => value.toString(16).padStart(64, '0')

/** The identity that a proof proves, or the reason for which it is refused. */
async function judged(adapter: WalletAdapter, proof: Partial<Proof>, message = text) {
  try {
    const whole = { publicKeyHex: '', signatureHex: '', ...proof }
    return (await adapter.verify(message, whole, nativeVerifier)) ?? 'SIGNATURE_INVALID'
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error
    return error.metadata.field === undefined ? error.reason : `${error.reason} ${error.metadata.field}`
  }
}

describe.each(vectors.stellar)('the vector "$name" ($source)', ({ text, publicKeyHex, address, signatureHex }) => {
  test('is a proof of its Stellar address', async () => {
    const identity = { adapterId: 'stellar', subject: publicKeyHex, publicKeyHex, address }
    expect(await judged(stellar, { publicKeyHex, signatureHex, address }, text)).toEqual(identity)
    expect(await judged(stellar, { publicKeyHex, signatureHex, address }, `${text} `)).toBe('SIGNATURE_INVALID')
  })
})

describe.each(vectors.tron)('the vector "$name" ($source)', ({ text, address, digestHex, signatureHex }) => {
  test('is a proof of its TRON address', async () => {
    expect(Buffer.from(tron.envelope(text)).toString('hex')).toBe(digestHex)
    const identity = { adapterId: 'tron', subject: address, publicKeyHex: '', address }
    expect(await judged(tron, { signatureHex, address }, text)).toEqual(identity)
    expect(await judged(tron, { signatureHex, address }, `${text} `)).toBe('SIGNATURE_INVALID')
  })
})

describe('a proof of one adapter', () => {
  const seed = Buffer.alloc(32, 7)
  const adapters = [...walletAdapters(adapterIds), stellar, tron]
  /** Wallets of one seed, so that nothing but the adapter tells them apart. */
  const builtIn: Readonly<Record<AdapterId, TestWallet>> = {
    nimiq: makeTestWallet({ secretKey: seed }),
    ed25519: makeTestWallet({ secretKey: seed, adapterId: 'ed25519' }),
    ethereum: makeEthereumWallet(seed),
    solana: { adapterId: 'solana', ...makeSolanaWallet(seed) },
  }
  const wallets = [...Object.values(builtIn), makeStellarWallet(seed), makeTronWallet(seed)]

  test('is a proof of no other, but of those of which the start warns', async () => {
    const accepted: string[] = []
    for (const wallet of wallets) {
      const signatureHex = await wallet.sign(text)
      for (const adapter of adapters) {
        const own = wallets.find(({ adapterId }) => adapterId === adapter.id)!
        const { subject } = (await judged(adapter, { ...own, signatureHex: await own.sign(text) })) as {
          subject: string
        }
        for (const address of [wallet.address, own.address, undefined]) {
          for (const publicKeyHex of new Set([wallet.publicKeyHex, own.publicKeyHex])) {
            const outcome = await judged(adapter, { publicKeyHex, signatureHex, address })
            // Ethereum recovers some address of any signature, which is that of no wallet.
            if (typeof outcome === 'object' && outcome.subject === subject)
              accepted.push(`${wallet.adapterId} ${adapter.id}`)
          }
        }
      }
    }
    const others = [...new Set(accepted)].filter((pair) => new Set(pair.split(' ')).size > 1)
    expect(others).toEqual(['ed25519 solana', 'solana ed25519'])
    expect(sharedKeysWarnings(adapters)).toEqual([expect.stringContaining('ed25519 and solana')])
  })

  test('of which wallets sign the same bytes is warned of for every kind, and only then', () => {
    const likeEthereum = signatureAdapter({
      ...tron,
      id: 'other-evm',
      envelope: (message) => adapters.find(({ id }) => id === 'ethereum')!.envelope!(message),
    })
    const copy = signatureAdapter({ ...stellar, id: 'stellar-2' })
    // The same bytes under a key of another curve.
    const onTheOtherCurve = signatureAdapter({ ...stellar, id: 'hashed', envelope: tron.envelope })
    expect(sharedKeysWarnings([...adapters.filter(({ id }) => id !== 'ed25519'), onTheOtherCurve])).toEqual([])
    expect(sharedKeysWarnings([likeEthereum, ...adapters.slice(2), copy])).toEqual([
      expect.stringContaining('other-evm and ethereum'),
      expect.stringContaining('stellar and stellar-2'),
    ])
  })
})

describe('a key that is recovered from its signature', () => {
  const wallet = makeTronWallet()
  const { address } = wallet
  const signed = async () => {
    const hex = await wallet.sign(text)
    return { r: hex.slice(0, 64), s: hex.slice(64, 128), parity: Number.parseInt(hex.slice(128), 16) - 27 }
  }

  test('has v 0, 1, 27 or 28, and no other', async () => {
    const { r, s, parity } = await signed()
    for (let v = 0; v < 256; v++) {
      const signatureHex = r + s + v.toString(16).padStart(2, '0')
      const fits = v === parity || v === parity + 27
      expect(await judged(tron, { signatureHex, address }), `v ${v}`).toEqual(
        fits ? { adapterId: 'tron', subject: address, publicKeyHex: '', address } : 'SIGNATURE_INVALID',
      )
    }
  })

  test('has a low s', async () => {
    const { r, s, parity } = await signed()
    const highS = word(n - BigInt(`0x${s}`))
    for (const v of [`0${1 - parity}`, parity === 0 ? '1c' : '1b']) {
      expect(await judged(tron, { signatureHex: r + highS + v, address })).toBe('SIGNATURE_INVALID')
    }
  })

  test.each([
    ['r is 0', 0n, 5n],
    ['s is 0', 5n, 0n],
    ['r is n', n, 5n],
    ['s is n', 5n, n],
    ['both are 2^256 - 1', (1n << 256n) - 1n, (1n << 256n) - 1n],
    ['r is the x of no point', 5n, 5n],
  ])('is that of no signature in which %s', async (_, r, s) => {
    for (const v of ['00', '01', '1b', '1c']) {
      for (const claimed of [address, tronAddress(`0x${'0'.repeat(40)}`)]) {
        expect(await judged(tron, { signatureHex: word(r) + word(s) + v, address: claimed })).toBe('SIGNATURE_INVALID')
      }
    }
  })

  test('needs a signature of 65 bytes, an address, and no key', async () => {
    const signatureHex = await wallet.sign(text)
    for (const other of [
      '',
      signatureHex.slice(2),
      `${signatureHex}00`,
      signatureHex.slice(0, 128),
      `0x${signatureHex}`,
    ]) {
      expect(await judged(tron, { signatureHex: other, address })).toBe('INVALID_REQUEST signature_hex')
    }
    for (const other of [
      undefined,
      '',
      address.toLowerCase(),
      address.toUpperCase(),
      `${address}\n`,
      address.slice(1),
    ]) {
      expect(await judged(tron, { signatureHex, address: other })).toBe('INVALID_REQUEST address')
    }
    expect(await judged(tron, { signatureHex, address, publicKeyHex: '02'.repeat(33) })).toBe(
      'INVALID_REQUEST public_key_hex',
    )
    expect(await judged(tron, { signatureHex, address: makeTronWallet().address })).toBe('SIGNATURE_INVALID')
  })
})

test('an address of Stellar has one spelling, and its checksum', () => {
  const { address } = makeStellarWallet()
  expect(stellar.readAddress(address)).toBe(address)
  const wrong = [
    address.toLowerCase(),
    ` ${address}`,
    `M${address.slice(1)}`,
    `${address.slice(0, -1)}${address.endsWith('A') ? 'B' : 'A'}`,
  ]
  for (const text of wrong) expect(stellar.readAddress(text), text).toBeUndefined()
})

test('Stellar wallets are checked as strictly as every other key of Ed25519', async () => {
  const wallet = makeStellarWallet()
  const signature = Buffer.from(await wallet.sign(text), 'hex')
  const identity = Buffer.from(`01${'00'.repeat(31)}`, 'hex')
  const order = '1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed'
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + BigInt(`0x${order}`)
  const plusOrder = Buffer.from(word(s), 'hex').reverse()
  const forged: [Buffer, Buffer][] = [
    // The key of small order, in its own encoding and in those with y + p and with the sign of x.
    [identity, Buffer.concat([identity, Buffer.alloc(32)])],
    [Buffer.from(`ee${'ff'.repeat(30)}7f`, 'hex'), Buffer.concat([identity, Buffer.alloc(32)])],
    [Buffer.from(`01${'00'.repeat(30)}80`, 'hex'), Buffer.concat([identity, Buffer.alloc(32)])],
    [Buffer.from(wallet.publicKeyHex, 'hex'), Buffer.concat([signature.subarray(0, 32), plusOrder])],
  ]
  for (const [key, forgery] of forged) {
    const proof = { publicKeyHex: key.toString('hex'), signatureHex: forgery.toString('hex') }
    expect(await judged(stellar, proof)).toBe('SIGNATURE_INVALID')
  }
  for (const publicKeyHex of ['', wallet.publicKeyHex.slice(2), `${wallet.publicKeyHex}00`]) {
    expect(await judged(stellar, { publicKeyHex, signatureHex: signature.toString('hex') })).toBe(
      'INVALID_REQUEST public_key_hex',
    )
  }
  const { publicKeyHex } = wallet
  for (const signatureHex of ['', signature.toString('hex').slice(2), `${signature.toString('hex')}1b`]) {
    expect(await judged(stellar, { publicKeyHex, signatureHex })).toBe('INVALID_REQUEST signature_hex')
  }
})

describe('data that cannot be right is a TypeError at construction:', () => {
  const changed = (change: object) => () => signatureAdapter({ ...tron, ...change } as SignatureKind)

  test.each([
    ['an id that is no id', { id: 'Tron' }, /an adapter's id/],
    ['no name', { displayName: ' ' }, /"tron" has no displayName/],
    [
      'a curve that is unknown',
      { curve: 'secp256r1' },
      /unknown curve "secp256r1"; known: ed25519, secp256k1-recovered/,
    ],
    ['a curve that every object has', { curve: 'toString' }, /unknown curve/],
    ['no envelope', { envelope: undefined }, /no function envelope/],
    ['no address', { address: undefined }, /no function address/],
    ['no readAddress', { readAddress: undefined }, /no function readAddress/],
    ['an envelope that is text', { envelope: (message: string) => message }, /not a Uint8Array/],
    ['a digest of 20 bytes', { envelope: () => new Uint8Array(20) }, /an envelope of 32 bytes, not 20/],
    ['an empty address', { address: (): string => '', readAddress: () => '' }, /1 to 200 characters/],
    ['an address that is too long', { address: () => 'x'.repeat(201) }, /1 to 200 characters/],
    ['a readAddress that refuses', { readAddress: () => undefined }, /changes or refuses/],
    ['a readAddress in lower case', { readAddress: (address: string) => address.toLowerCase() }, /changes or refuses/],
  ])('%s', (_, change, problem) => {
    expect(changed(change)).toThrow(TypeError)
    expect(changed(change)).toThrow(problem)
  })

  test('and a digest of another length for some text only is an error of the server, not of the caller', async () => {
    const adapter = signatureAdapter({ ...tron, envelope: (message) => new Uint8Array(message === 'text' ? 32 : 31) })
    const proof = { signatureHex: `${'11'.repeat(64)}1b`, address: makeTronWallet().address }
    await expect(judged(adapter, proof)).rejects.toThrow(TypeError)
  })
})
