import { base58 } from '@scure/base'
import {
  createSignInMessage,
  createSignInMessageText,
  parseSignInMessageText,
  verifySignIn,
} from '@solana/wallet-standard-util'
import { describe, expect, test } from 'vitest'
import { walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { nimiq } from '../../../src/core/wallet/nimiq.ts'
import { Prover } from '../../../src/core/wallet/prover.ts'
import type { StoredChallenge } from '../../../src/core/wallet/sign-in-form.ts'
import type { Proof, WalletNamed } from '../../../src/core/wallet/wallet.ts'
import { CountersignError, type ErrorReason } from '../../../src/shared/errors.ts'
import { bytesToHex } from '../../../src/shared/hex.ts'
import { challengeOf } from '../../support/challenge.ts'
import { makeSolanaWallet, type SolanaWallet } from '../../support/solana.ts'
import { decodeInteger, encodeInteger, L } from './curve.ts'

const page = 'https://app.example:8443'
const { orderId, ...direct } = challengeOf('Example requests authentication\nAction: auth.login\nNonce: n0nce')
const signIn: StoredChallenge = { ...direct, action: 'auth.login', origin: page }
const link: StoredChallenge = { ...signIn, action: 'auth.link' }
const loginOrder: StoredChallenge = { ...signIn, orderId: 'order-1', origin: 'https://desktop.example' }
const signOrder = challengeOf('Example requests approval\nAction: order.approve\nNonce: n0nce')

const prover = new Prover(walletAdapters(['nimiq', 'ed25519', 'solana']), nativeVerifier)
const wallet = makeSolanaWallet()

const textFor = (account: Omit<WalletNamed, 'adapterId'>, challenge = signIn, pageOrigin = page): string =>
  prover.textFor(challenge, { adapterId: 'solana', ...account }, pageOrigin)

const proofBy = ({ publicKeyHex, address }: SolanaWallet, signatureHex: string): Proof => ({
  publicKeyHex,
  signatureHex,
  address,
  adapterId: 'solana',
})

async function outcome(proof: Proof, challenge = signIn, pageOrigin = page): Promise<ErrorReason | 'proven'> {
  try {
    await prover.prove(challenge, proof, { pageOrigin })
    return 'proven'
  } catch (error) {
    if (error instanceof CountersignError) return error.reason
    throw error
  }
}

/** The text that a wallet makes of the fields that our text says, as `solana:signIn` does. */
const asWalletMakesIt = (text: string): Uint8Array => {
  const { address, ...fields } = parseSignInMessageText(text)!
  return createSignInMessage({ ...fields, domain: fields.domain!, address: address! })
}

describe('the text of a sign-in', () => {
  test.each([
    ['a sign-in', signIn],
    ['a link', link],
    ['a login order', loginOrder],
  ])('is for %s the one that Solana’s own library makes of its fields, byte for byte', (_, challenge) => {
    for (const chainId of [undefined, 'mainnet', 'testnet', 'devnet', 'localnet', 'solana:mainnet', 'solana:devnet']) {
      const text = textFor({ address: wallet.address, chainId }, challenge)
      const parsed = parseSignInMessageText(text)!
      expect(parsed).toMatchObject({ domain: 'app.example:8443', address: wallet.address, uri: page, version: '1' })
      expect(parsed).toMatchObject({
        statement: expect.stringMatching(/^[A-Z][a-z ]+\.$/),
        chainId,
        nonce: '07'.repeat(32),
        issuedAt: '2026-01-01T00:00:00.000Z',
        expirationTime: '2026-01-01T00:02:00.000Z',
        notBefore: undefined,
        requestId: undefined,
        resources: [
          expect.stringMatching(/^urn:countersign:sha256:[\w-]{43}$/),
          ...(challenge === loginOrder ? ['https://desktop.example'] : []),
        ],
      })
      expect(createSignInMessageText({ ...parsed, domain: parsed.domain!, address: parsed.address! })).toBe(text)
      expect(Buffer.from(asWalletMakesIt(text)).toString()).toBe(text)
    }
  })

  test('has an empty line for an address that is not known yet, and the key’s once there is a proof', () => {
    const withAddress = textFor({ address: wallet.address })
    expect(textFor({})).toBe(withAddress.replace(wallet.address, ''))
    expect(textFor({ publicKeyHex: wallet.publicKeyHex })).toBe(withAddress)
    expect(textFor({ publicKeyHex: wallet.publicKeyHex.toUpperCase() })).toBe(withAddress)
  })

  test('is for no account that a Solana wallet cannot have', () => {
    const program = base58.encode(new Uint8Array(32).fill(2))
    const wrong: Omit<WalletNamed, 'adapterId'>[] = [
      { address: '' },
      { address: `1${wallet.address}` },
      { address: wallet.address.slice(0, 30) },
      { address: `${wallet.address} ` },
      { address: wallet.publicKeyHex },
      { address: '0'.repeat(44) },
      { address: '1'.repeat(32) },
      { address: '2'.repeat(100_000) },
      { address: program },
      { address: `${wallet.address}\nURI: https://evil.example` },
      { publicKeyHex: '' },
      { publicKeyHex: wallet.publicKeyHex.slice(2) },
      { publicKeyHex: `${wallet.publicKeyHex}00` },
      { publicKeyHex: 'g'.repeat(64) },
      ...['', 'mainnet-beta', 'Mainnet', 'solana:localnet', 'solana:', '1', 'mainnet\n', 'devnet\nNonce: 1'].map(
        (chainId) => ({ address: wallet.address, chainId }),
      ),
    ]
    for (const account of wrong) {
      expect(() => textFor(account), JSON.stringify(account).slice(0, 99)).toThrow(
        expect.objectContaining({ reason: 'INVALID_REQUEST' }),
      )
    }
  })
})

describe('a signature over it', () => {
  test('made by solana:signIn from the fields proves the wallet, to Solana’s library too', async () => {
    const text = textFor({ address: wallet.address, chainId: 'mainnet' })
    const signedMessage = asWalletMakesIt(text)
    const signatureHex = wallet.sign(signedMessage)
    const { identity, text: proven } = await prover.prove(
      signIn,
      { ...proofBy(wallet, signatureHex), chainId: 'mainnet' },
      { pageOrigin: page },
    )
    const { publicKeyHex, publicKey, address } = wallet
    expect(identity).toEqual({ adapterId: 'solana', subject: publicKeyHex, publicKeyHex, address })
    expect(proven).toBe(text)
    const account = { publicKey, address, chains: [], features: [] } as const
    const input = parseSignInMessageText(text)!
    expect(verifySignIn(input, { account, signedMessage, signature: Buffer.from(signatureHex, 'hex') })).toBe(true)
  })

  test('proves the wallet if the proof names no address', async () => {
    const { address: _, ...proof } = proofBy(wallet, wallet.sign(textFor({ address: wallet.address })))
    expect(await outcome(proof)).toBe('proven')
    expect(await outcome({ ...proof, publicKeyHex: proof.publicKeyHex.toUpperCase() })).toBe('proven')
  })

  test('proves nothing if the adapter is not named', async () => {
    const { adapterId: _, ...proof } = proofBy(wallet, wallet.sign(textFor({ address: wallet.address })))
    expect(await outcome(proof)).toBe('SIGNATURE_INVALID')
  })

  test('proves nothing with a byte of any line changed', async () => {
    const text = Buffer.from(textFor({ address: wallet.address, chainId: 'mainnet' }))
    const ends = [...text.keys()].filter((index) => index + 1 === text.length || text[index + 1] === 0x0a)
    expect(ends.length).toBeGreaterThan(12)
    for (const index of [0, ...ends]) {
      const changed = Uint8Array.from(text)
      changed[index]! ^= 1
      const proof = { ...proofBy(wallet, wallet.sign(changed)), chainId: 'mainnet' }
      expect(await outcome(proof), `byte ${index}`).toBe('SIGNATURE_INVALID')
    }
    for (const other of [`${text}\n`, ` ${text}`, text.toString().replace(/\nChain ID: .*/, '')]) {
      expect(await outcome({ ...proofBy(wallet, wallet.sign(other)), chainId: 'mainnet' })).toBe('SIGNATURE_INVALID')
    }
  })

  test('proves nothing on another page than the one it names', async () => {
    for (const elsewhere of ['https://evil.example', 'https://app.example', 'http://app.example:8443']) {
      const onPage = wallet.sign(textFor({ address: wallet.address }, signIn, elsewhere))
      expect(await outcome(proofBy(wallet, onPage), signIn, elsewhere)).toBe('proven')
      expect(await outcome(proofBy(wallet, onPage))).toBe('SIGNATURE_INVALID')
    }
  })

  test('proves nothing for another challenge, or for the same one as a link or an order', async () => {
    const proof = proofBy(wallet, wallet.sign(textFor({ address: wallet.address })))
    expect(await outcome(proof)).toBe('proven')
    const nonce = Buffer.alloc(32, 8).toString('base64url')
    const others = [link, loginOrder, signOrder, { ...signIn, nonce }, { ...signIn, message: 'another text' }]
    for (const challenge of others) expect(await outcome(proof, challenge)).toBe('SIGNATURE_INVALID')
  })

  test('proves nothing with another chain id than the one it names', async () => {
    const chains = [undefined, 'mainnet', 'solana:mainnet', 'devnet']
    for (const signed of chains) {
      const signatureHex = wallet.sign(textFor({ address: wallet.address, chainId: signed }))
      for (const chainId of chains) {
        const proof = { ...proofBy(wallet, signatureHex), chainId }
        expect(await outcome(proof)).toBe(chainId === signed ? 'proven' : 'SIGNATURE_INVALID')
      }
    }
  })

  test('by an attacker over a text with the victim’s address is ADDRESS_MISMATCH', async () => {
    const victim = makeSolanaWallet()
    const text = textFor({ address: victim.address })
    // What Solana's own check of such a sign-in says.
    const [signedMessage, signature] = [Buffer.from(text), Buffer.from(wallet.sign(text), 'hex')]
    const account = { publicKey: wallet.publicKey, address: victim.address, chains: [], features: [] } as const
    expect(verifySignIn(parseSignInMessageText(text)!, { account, signedMessage, signature })).toBe(true)

    const proof = proofBy(wallet, wallet.sign(text))
    expect(await outcome({ ...proof, address: victim.address })).toBe('ADDRESS_MISMATCH')
    expect(await outcome({ ...proof, publicKeyHex: victim.publicKeyHex })).toBe('SIGNATURE_INVALID')
    expect(await outcome({ ...proof, address: victim.address, publicKeyHex: victim.publicKeyHex })).toBe(
      'SIGNATURE_INVALID',
    )
    expect(await outcome(proof)).toBe('SIGNATURE_INVALID')
  })

  test('does not hold in a second form, with S + L', async () => {
    const signatureHex = wallet.sign(textFor({ address: wallet.address }))
    const S = decodeInteger(Buffer.from(signatureHex.slice(64), 'hex')) + L
    const second = signatureHex.slice(0, 64) + bytesToHex(encodeInteger(S))
    expect(await outcome(proofBy(wallet, second))).toBe('SIGNATURE_INVALID')
  })

  test('as another kind of wallet would make it proves nothing, and proves nothing there', async () => {
    const text = textFor({ address: wallet.address })
    const { publicKeyHex } = wallet
    for (const signed of [nimiq.signedBytes(signIn.message), nimiq.signedBytes(text), signIn.message]) {
      expect(await outcome(proofBy(wallet, wallet.sign(signed)))).toBe('SIGNATURE_INVALID')
    }
    const asEd25519 = { publicKeyHex, signatureHex: wallet.sign(signIn.message), adapterId: 'ed25519' }
    expect(await outcome(asEd25519)).toBe('proven')
    for (const adapterId of ['nimiq', 'ed25519']) {
      expect(await outcome({ publicKeyHex, signatureHex: wallet.sign(text), adapterId })).toBe('SIGNATURE_INVALID')
    }
  })

  test.each([
    ['short key', { publicKeyHex: wallet.publicKeyHex.slice(2) }],
    ['long key', { publicKeyHex: `${wallet.publicKeyHex}00` }],
    ['missing key', { publicKeyHex: '' }],
    ['short signature', { signatureHex: '00'.repeat(63) }],
    ['long signature', { signatureHex: '00'.repeat(65) }],
    ['missing signature', { signatureHex: '' }],
    ['signature that is no hex', { signatureHex: 'zz'.repeat(64) }],
    ['address that is none', { address: 'GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEG0' }],
    ['chain that is none', { chainId: 'mainnet-beta' }],
  ])('with a %s is a malformed request', async (_, change) => {
    const signatureHex = wallet.sign(textFor({ address: wallet.address }))
    expect(await outcome({ ...proofBy(wallet, signatureHex), ...change })).toBe('INVALID_REQUEST')
  })

  test('with a key of no point proves nothing', async () => {
    const signatureHex = wallet.sign(textFor({ address: wallet.address }))
    expect(await outcome({ publicKeyHex: '02'.repeat(32), signatureHex, adapterId: 'solana' })).toBe(
      'SIGNATURE_INVALID',
    )
  })
})

describe('a sign order', () => {
  test('is over the plain text, with the account as its last line if the proof names chain and address', async () => {
    const { address } = wallet
    expect(textFor({ address }, signOrder)).toBe(signOrder.message)
    expect(textFor({ chainId: 'mainnet' }, signOrder)).toBe(signOrder.message)
    for (const [chainId, reference] of [
      ['mainnet', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'],
      ['solana:mainnet', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'],
      ['devnet', 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1'],
      ['testnet', '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z'],
    ] as const) {
      const text = textFor({ address, chainId }, signOrder)
      expect(text).toBe(`${signOrder.message}\nAccount: solana:${reference}:${address}`)
      const proof = { ...proofBy(wallet, wallet.sign(text)), chainId }
      expect(await outcome(proof, signOrder)).toBe('proven')
      expect(await outcome({ ...proof, chainId: undefined }, signOrder)).toBe('SIGNATURE_INVALID')
      expect(await outcome({ ...proof, address: undefined }, signOrder)).toBe('SIGNATURE_INVALID')
    }
  })

  test('names no account on a local cluster, or on one that is none', () => {
    const { address } = wallet
    for (const chainId of [
      'localnet',
      'solana:localnet',
      'mainnet-beta',
      'mainnetsolana:',
      'solana:solana:devnet',
      '',
    ]) {
      expect(() => textFor({ address, chainId }, signOrder), chainId).toThrow(
        expect.objectContaining({ reason: 'INVALID_REQUEST' }),
      )
    }
    expect(() => textFor({ address: `${address}1`, chainId: 'mainnet' }, signOrder)).toThrow(
      expect.objectContaining({ reason: 'INVALID_REQUEST' }),
    )
  })
})

describe('a signature over a transaction', () => {
  /** The memo program, which takes any text as the data of an instruction. */
  const memo = base58.decode('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr')

  /** Versions 0 and 1 are known; version 127 would be the 0xff of off-chain messages. */
  const newestVersionToExpect = 64

  /** The bytes that a wallet signs for a transaction with one instruction: the memo, with the text. */
  function transaction(version: 'legacy' | 0, text: string): Uint8Array {
    const data = Buffer.from(text)
    // Lengths are written seven bits at a time.
    const dataLength = data.length < 0x80 ? [data.length] : [(data.length & 0x7f) | 0x80, data.length >> 7]
    return Buffer.concat([
      Uint8Array.from(version === 'legacy' ? [] : [0x80]),
      // One signature, one account that is only read; two accounts; the hash of a recent block.
      Uint8Array.of(1, 0, 1, 2),
      wallet.publicKey,
      memo,
      new Uint8Array(32).fill(9),
      Uint8Array.of(1, 1, 0, ...dataLength),
      data,
      Uint8Array.from(version === 'legacy' ? [] : [0]),
    ])
  }

  test.each(['legacy', 0] as const)('of version %s that has the text in it proves nothing', async (version) => {
    const text = textFor({ address: wallet.address })
    expect(await outcome(proofBy(wallet, wallet.sign(transaction(version, text))))).toBe('SIGNATURE_INVALID')
    const plain = wallet.sign(transaction(version, signOrder.message))
    expect(await outcome(proofBy(wallet, plain), signOrder)).toBe('SIGNATURE_INVALID')
  })

  test('is one over no text: their first bytes never agree', () => {
    expect([transaction('legacy', 'x')[0], transaction(0, 'x')[0]]).toEqual([1, 0x80])
    // A legacy transaction begins with the number of its signatures. They have 64 bytes each, and it has 1232 at most.
    const couldBegin = (first: number): boolean =>
      first < 0x80 ? first * 64 <= 1232 : (first & 0x7f) <= newestVersionToExpect
    expect([1, 19, 0x80, 0x81].map(couldBegin)).toEqual([true, true, true, true])
    // Texts begin with a printable character of ASCII, or of whatever other script an app's name is in.
    const scripts = ['!', '~', 'Ü', 'ا', '你', '😀', '\u0080', '\uffff', '\u{10ffff}']
    const texts = [textFor({ address: wallet.address }), signOrder.message, ' ', ...scripts]
    for (const text of texts) expect(couldBegin(Buffer.from(text)[0]!), text).toBe(false)
  })
})
