import { generateKeyPairSync, sign } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { hashMessage, keccak256, parseSignature, parseTransaction, serializeSignature, sha256, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount, sign as signHash } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { ethereum } from '../../../../src/core/wallet/ethereum/ethereum.ts'
import { nativeVerifier } from '../../../../src/core/wallet/native.ts'
import { ed25519, nimiq } from '../../../../src/core/wallet/nimiq.ts'
import { portableRecovery } from '../../../../src/core/wallet/secp256k1.ts'
import { isSameAddress, type Proof, type WalletAdapter } from '../../../../src/core/wallet/wallet.ts'
import { chooseRecovery } from '../../../../src/core/wallet/webassembly.ts'
import { CountersignError } from '../../../../src/shared/errors.ts'
import vectors from '../../../vectors/ethereum.json' with { type: 'json' }

const adapter = ethereum()
/** Both recoveries of keys. */
const adapters = [portableRecovery, chooseRecovery(['ethereum'])].map((recovery) => ethereum({}, { recovery }))
const text = 'Example requests authentication\nNonce: 😀'
const n = secp256k1.Point.Fn.ORDER

const bare = (hex: string): string => hex.replace(/^0x/, '')
const word = (value: bigint): string => value.toString(16).padStart(64, '0')

/** The identity that a proof proves, or the reason for which it is refused: the same with both recoveries. */
async function judged(message: string, proof: Partial<Proof>) {
  const [portable, webAssembly] = await Promise.all(adapters.map((each) => judgedBy(each, message, proof)))
  expect(webAssembly).toEqual(portable)
  return portable
}

async function judgedBy(adapter: WalletAdapter, message: string, proof: Partial<Proof>) {
  try {
    const whole = { publicKeyHex: '', signatureHex: '', ...proof }
    return (await adapter.verify(message, whole, nativeVerifier)) ?? 'SIGNATURE_INVALID'
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error
    return error.metadata.field === undefined ? error.reason : `${error.reason} ${error.metadata.field}`
  }
}

/** Wallets are accounts of viem, which signs with code of its own and knows nothing of this project. */
function newAccount(privateKey = generatePrivateKey()) {
  const account = privateKeyToAccount(privateKey)
  return {
    ...account,
    sign: async (message: string) => bare(await account.signMessage({ message })),
  }
}

describe.each(vectors.ethereum)('the vector "$name" ($source)', ({ text, address, signature, ...vector }) => {
  test('is the signature of its address', async () => {
    const identity = { adapterId: 'ethereum', subject: address.toLowerCase(), publicKeyHex: '', address }
    for (const form of [signature, vector.compact ?? signature]) {
      expect(await judged(text, { signatureHex: bare(form), address })).toEqual(identity)
      expect(await judged(text, { signatureHex: bare(form) })).toEqual(identity)
    }
  })

  test('is refused over another text, for another address and with a high s', async () => {
    const other = newAccount().address
    expect(await judged(`${text} `, { signatureHex: bare(signature), address })).toBe('SIGNATURE_INVALID')
    expect(await judged(text, { signatureHex: bare(signature), address: other })).toBe('SIGNATURE_INVALID')
    if (vector.refuseHighS === undefined) return
    for (const claimed of [address, undefined]) {
      expect(await judged(text, { signatureHex: bare(vector.refuseHighS), address: claimed })).toBe('SIGNATURE_INVALID')
    }
  })
})

describe('a signature', () => {
  const privateKey = generatePrivateKey()
  const account = newAccount(privateKey)
  const { address } = account
  const signed = async (message = text) => {
    const { r, s, yParity } = parseSignature(`0x${await account.sign(message)}`)
    return { r: bare(r), s: bare(s), parity: yParity }
  }

  test('is accepted with v 0, 1, 27 and 28, and with no other v', async () => {
    const { r, s, parity } = await signed()
    for (let v = 0; v < 256; v++) {
      const signatureHex = r + s + v.toString(16).padStart(2, '0')
      const fits = v === parity || v === parity + 27
      expect(await judged(text, { signatureHex, address }), `v ${v}`).toEqual(
        fits ? expect.objectContaining({ address }) : 'SIGNATURE_INVALID',
      )
    }
  })

  test('with s replaced by n - s is refused in every form, with an address and without', async () => {
    const { r, s, parity } = await signed()
    const highS = n - BigInt(`0x${s}`)
    const flipped = 1 - parity
    // The compact form has no room for a high s: its top bit is the parity.
    const forms = [`${word(highS)}0${flipped}`, `${word(highS)}1${flipped === 0 ? 'b' : 'c'}`]
    for (const form of forms) {
      for (const claimed of [address, undefined]) {
        expect(await judged(text, { signatureHex: r + form, address: claimed })).toBe('SIGNATURE_INVALID')
      }
    }
    // Above half of the order and below the top bit.
    const compact = word(((n >> 1n) + 5n) | (BigInt(parity) << 255n))
    expect(await judged(text, { signatureHex: r + compact })).toBe('SIGNATURE_INVALID')
  })

  test.each([
    ['r is 0', 0n, 5n],
    ['s is 0', 5n, 0n],
    ['r is n', n, 5n],
    ['s is n', 5n, n],
    ['r is above n', n + 1n, 5n],
    ['both are 2^256 - 1', (1n << 256n) - 1n, (1n << 256n) - 1n],
    ['r is the x of no point', 5n, 5n],
  ])('of which %s is refused', async (_, r, s) => {
    for (const v of ['00', '01', '1b', '1c']) {
      expect(await judged(text, { signatureHex: word(r) + word(s) + v })).toBe('SIGNATURE_INVALID')
    }
  })

  test("of the same key that is a transaction's is refused, whatever its v is", async () => {
    // Over a text that is the very transaction, as far as text can be.
    const transaction = { to: address, value: 1n, nonce: 0, gas: 21_000n, gasPrice: 1n, chainId: 1 }
    const serialized = await account.signTransaction(transaction)
    const { r, s, v } = parseTransaction(serialized)
    expect(v).toBeGreaterThanOrEqual(35n)
    for (const spelling of [v!, (v! - 35n) % 2n, 27n + ((v! - 35n) % 2n)]) {
      const signatureHex = word(BigInt(r!)) + word(BigInt(s!)) + spelling.toString(16).padStart(2, '0')
      for (const message of [text, serialized, Buffer.from(bare(serialized), 'hex').toString('latin1')]) {
        expect(await judged(message, { signatureHex, address })).toBe('SIGNATURE_INVALID')
      }
    }
  })

  test('of the same key over typed data (EIP-712) is refused', async () => {
    const signature = await account.signTypedData({
      domain: { name: 'Example', chainId: 1 },
      types: { Text: [{ name: 'text', type: 'string' }] },
      primaryType: 'Text',
      message: { text },
    })
    expect(await judged(text, { signatureHex: bare(signature), address })).toBe('SIGNATURE_INVALID')
  })

  test('of the same key over the bare hash of a text is refused', async () => {
    for (const hash of [keccak256(toHex(text)), sha256(toHex(text))]) {
      const signatureHex = bare(serializeSignature(await signHash({ hash, privateKey })))
      expect(await judged(text, { signatureHex, address })).toBe('SIGNATURE_INVALID')
    }
  })

  test("of another adapter's wallet proves no address of Ethereum", async () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    for (const other of [nimiq, ed25519]) {
      const signatureHex = sign(null, other.signedBytes(text), privateKey).toString('hex')
      expect(await judged(text, { signatureHex, address })).toBe('SIGNATURE_INVALID')
    }
  })

  test('counts the bytes of the text, and not its characters', async () => {
    for (const message of ['', 'é', '😀😀', 'a'.repeat(100)]) {
      expect(await judged(message, { signatureHex: await account.sign(message), address })).toMatchObject({ address })
    }
  })

  test('a signature that is no hex is a malformed request', async () => {
    const { r, s } = await signed()
    for (const signatureHex of [`${r}${s}1`, `0x${r}${s}1b`, `${r.slice(1)}g${s}1b`]) {
      expect(await judged(text, { signatureHex, address })).toBe('INVALID_REQUEST signature_hex')
    }
  })
})

describe('a public key', () => {
  const privateKey = generatePrivateKey()
  const account = privateKeyToAccount(privateKey)
  const whole = bare(account.publicKey)

  test('may be sent in each of its forms, and changes nothing', async () => {
    const signatureHex = bare(await account.signMessage({ message: text }))
    const compressed = Buffer.from(secp256k1.getPublicKey(Buffer.from(bare(privateKey), 'hex'), true)).toString('hex')
    for (const publicKeyHex of ['', whole, whole.slice(2), compressed, whole.toUpperCase()]) {
      expect(await judged(text, { signatureHex, publicKeyHex })).toEqual({
        adapterId: 'ethereum',
        subject: account.address.toLowerCase(),
        publicKeyHex: '',
        address: account.address,
      })
    }
  })

  test('a public key that is not the one which signed is refused, also with the right address', async () => {
    const signatureHex = bare(await account.signMessage({ message: text }))
    const { address } = account
    const other = bare(privateKeyToAccount(generatePrivateKey()).publicKey)
    const changed = whole.slice(0, -1) + (whole.endsWith('0') ? '1' : '0')
    for (const publicKeyHex of [other, other.slice(2), changed, `02${other.slice(2, 66)}`]) {
      expect(await judged(text, { signatureHex, publicKeyHex, address })).toBe('SIGNATURE_INVALID')
    }
    for (const publicKeyHex of ['00', whole.slice(4), `${whole}00`, 'xx']) {
      expect(await judged(text, { signatureHex, publicKeyHex, address })).toBe('INVALID_REQUEST public_key_hex')
    }
  })
})

describe('an address', () => {
  /** EIP-55's own examples. */
  const published = [
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0xde709f2102306220921060314715629080e2fb77',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ]

  test.each(published)('%s has the checksum of EIP-55, and no other case of a letter has', (address) => {
    expect(adapter.accountId?.(address.toLowerCase(), '1')).toBe(`eip155:1:${address}`)
    expect(isSameAddress(adapter, address, address.toLowerCase())).toBe(true)
    expect(isSameAddress(adapter, address, `0x${address.slice(2).toUpperCase()}`)).toBe(true)
    const isMixed = /[a-f]/.test(address.slice(2)) && /[A-F]/.test(address)
    for (let i = 2; i < address.length && isMixed; i++) {
      const letter = address.charAt(i)
      const swapped = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
      if (swapped === letter) continue
      const wrong = address.slice(0, i) + swapped + address.slice(i + 1)
      expect(isSameAddress(adapter, wrong, address), wrong).toBe(false)
    }
  })

  const account = newAccount()
  const lower = account.address.toLowerCase()
  test.each([
    ['is empty', ''],
    ['is too short', lower.slice(0, -1)],
    ['is too long', `${lower}0`],
    ['has no 0x', lower.slice(2)],
    ['begins with 0X', lower.replace('0x', '0X')],
    ['has a line break', `${lower}\n`],
    ['is a name', 'vitalik.eth'],
    ['is in the form of banks (ICAP)', 'XE7338O073KYGTWWZN0F2WZ0R8PX5ZPPZS'],
    ['has a wrong checksum', '0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed'],
    ['is a CAIP-10 identifier', `eip155:1:${lower}`],
  ])('that %s is a malformed request, in a proof and in what is asked for', async (_, address) => {
    const signatureHex = await account.sign(text)
    expect(await judged(text, { signatureHex, address })).toBe('INVALID_REQUEST address')
    expect(() => adapter.accountId?.(address, '1')).toThrow(expect.objectContaining({ metadata: { field: 'address' } }))
  })

  test('the zero address and those of precompiled contracts are no wallet', async () => {
    const signatureHex = await account.sign(text)
    for (const last of [0, 1, 4, 0x100, 0xffff]) {
      const address = `0x${last.toString(16).padStart(40, '0')}`
      expect(await judged(text, { signatureHex, address, chainId: '1' })).toBe('SIGNATURE_INVALID')
    }
  })

  test('with its chain equals the same address on the same chain and nothing else', () => {
    const { address } = account
    const account1 = `eip155:1:${address}`
    expect(isSameAddress(adapter, account1, `eip155:1:${lower}`)).toBe(true)
    const others = [
      address,
      `eip155:10:${address}`,
      `eip155:1:${newAccount().address}`,
      `eip155:01:${address}`,
      `EIP155:1:${address}`,
      `eip155:1:${lower.slice(2)}`,
      `solana:1:${address}`,
      `${account1} `,
    ]
    for (const other of others) expect(isSameAddress(adapter, account1, other), other).toBe(false)
    for (const malformed of others.slice(3)) expect(isSameAddress(adapter, malformed, malformed), malformed).toBe(false)
    const beyond = `eip155:9007199254740992:${lower}`
    expect(isSameAddress(adapter, beyond, beyond)).toBe(false)
  })
})

test.each(['', '0', '01', '-1', '+1', '1.0', '0x1', '1e3', ' 1', '9007199254740992', 'eip155:1', 'mainnet'])(
  'the chain id %j is a malformed request',
  (chainId) => {
    expect(() => adapter.accountId?.(newAccount().address, chainId)).toThrow(
      expect.objectContaining({ reason: 'INVALID_REQUEST', metadata: { field: 'chain_id' } }),
    )
  },
)

describe('without an RPC', () => {
  const account = newAccount()
  const { address } = account

  test('a signature of another length than a key makes is a contract wallet, which needs one', async () => {
    for (const length of [0, 1, 63, 66, 130, 4096]) {
      const signatureHex = '11'.repeat(length)
      const answer = adapter.verify(
        text,
        { publicKeyHex: '', signatureHex, address, chainId: '8453' },
        nativeVerifier,
      ) as Promise<unknown>
      await expect(answer).rejects.toMatchObject({
        reason: 'CONTRACT_WALLET_NEEDS_RPC',
        metadata: { chain_id: '8453', setting: 'COUNTERSIGN_EVM_RPC' },
      })
    }
  })

  test('of 64 or 65 bytes it is a wrong one, and with a key that was sent too', async () => {
    for (const length of [64, 65]) {
      expect(await judged(text, { signatureHex: '11'.repeat(length), address, chainId: '1' })).toBe('SIGNATURE_INVALID')
    }
    const publicKeyHex = bare(privateKeyToAccount(generatePrivateKey()).publicKey)
    expect(await judged(text, { signatureHex: '11'.repeat(130), address, chainId: '1', publicKeyHex })).toBe(
      'SIGNATURE_INVALID',
    )
  })

  test('a contract wallet that was not named before it signed is told what is missing', async () => {
    const signatureHex = '11'.repeat(130)
    expect(await judged(text, { signatureHex })).toBe('INVALID_REQUEST chain_id')
    expect(await judged(text, { signatureHex, address })).toBe('INVALID_REQUEST chain_id')
    expect(await judged(text, { signatureHex, chainId: '1' })).toBe('INVALID_REQUEST address')
    expect(await judged(text, { signatureHex, address, chainId: '01' })).toBe('INVALID_REQUEST chain_id')
  })
})

test("viem's hash of a text is the one that is signed", async () => {
  const privateKey = generatePrivateKey()
  const signature = serializeSignature(await signHash({ hash: hashMessage(text), privateKey }))
  const { address } = privateKeyToAccount(privateKey)
  expect(await judged(text, { signatureHex: bare(signature), address })).toMatchObject({ address })
})
