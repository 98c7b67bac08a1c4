import { base58 } from '@scure/base'
import fc from 'fast-check'
import { parseSignature, signatureToCompactSignature } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import {
  CountersignClientError,
  nimiqHub,
  nimiqPay,
  readWalletAnswer,
  type Wallet,
} from '../../../src/browser/client/index.ts'
import { proveWithWallet } from '../../../src/browser/client/wallet.ts'
import { makeWallet } from '../../support/wallet.ts'
import { codeOf } from './support.ts'

const key = fc.uint8Array({ minLength: 32, maxLength: 32 })
const signature = fc.uint8Array({ minLength: 64, maxLength: 64 })
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

/** The forms that wallets answer in. */
const forms: Record<string, (bytes: Uint8Array) => unknown> = {
  hex,
  'upper-case hex': (bytes) => hex(bytes).toUpperCase(),
  'hex behind 0x': (bytes) => `0x${hex(bytes)}`,
  'hex with a line break': (bytes) => `${hex(bytes)}\n`,
  base64: (bytes) => Buffer.from(bytes).toString('base64'),
  'base64 without padding': (bytes) => Buffer.from(bytes).toString('base64').replace(/=+$/, ''),
  base64url: (bytes) => Buffer.from(bytes).toString('base64url'),
  'a Uint8Array': (bytes) => bytes,
  'a view into a larger buffer': (bytes) => {
    const larger = new Uint8Array(200)
    larger.set(bytes, 7)
    return new DataView(larger.buffer, 7, bytes.length)
  },
  'an ArrayBuffer': (bytes) => Uint8Array.from(bytes).buffer,
  'an array': (bytes) => [...bytes],
  'a Uint8Array that went through JSON': (bytes) => JSON.parse(JSON.stringify(bytes)),
  'a Buffer that went through JSON': (bytes) => JSON.parse(JSON.stringify(Buffer.from(bytes))),
  'an object that can toHex()': (bytes) => ({ toHex: () => hex(bytes) }),
  'an object that can toBytes()': (bytes) => ({ toBytes: () => bytes }),
}

describe('readWalletAnswer', () => {
  test.each(Object.keys(forms))('reads %s', (name) => {
    const form = forms[name]!
    fc.assert(
      fc.property(key, signature, (publicKey, signed) => {
        expect(readWalletAnswer({ publicKey: form(publicKey), signature: form(signed) })).toEqual({
          publicKeyHex: hex(publicKey),
          signatureHex: hex(signed),
        })
      }),
    )
  })

  test('knows the usual names', () => {
    const [publicKey, signed] = [new Uint8Array(32).fill(7), new Uint8Array(64).fill(9)]
    const expected = { publicKeyHex: hex(publicKey), signatureHex: hex(signed) }
    for (const name of ['publicKeyHex', 'publicKey', 'public_key', 'signerPublicKey', 'pubKey']) {
      for (const other of ['signatureHex', 'signature', 'sig']) {
        expect(readWalletAnswer({ [name]: publicKey, [other]: signed })).toEqual(expected)
      }
    }
    const withAddress = { signerPublicKey: publicKey, signature: signed, signer: 'NQ71 CT4K' }
    expect(readWalletAnswer(withAddress)).toEqual({ ...expected, address: 'NQ71 CT4K' })
  })

  test('throws coded errors only, for any input', () => {
    const anything = fc.oneof(
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withSparseArray: true, withTypedArray: true }),
      fc.record({ publicKey: fc.anything(), signature: fc.anything(), error: fc.anything() }, { requiredKeys: [] }),
    )
    fc.assert(
      fc.property(anything, fc.constantFrom(undefined, 'ethereum'), (answer, adapterId) => {
        try {
          const { publicKeyHex, signatureHex } = readWalletAnswer(answer, adapterId)
          const [key, signature] = adapterId === undefined ? ['{32}', '{64}'] : ['*', '*']
          expect(publicKeyHex).toMatch(new RegExp(`^([0-9a-f]{2})${key}$`))
          expect(signatureHex).toMatch(new RegExp(`^([0-9a-f]{2})${signature}$`))
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(CountersignClientError)
          expect((thrown as CountersignClientError).code).toMatch(/^WALLET_/)
        }
      }),
      { numRuns: 1000 },
    )
  })

  test('survives an answer whose own code throws', () => {
    const cause = new Error('detached')
    const answer = {
      get publicKey() {
        throw cause
      },
    }
    expect(() => readWalletAnswer(answer)).toThrow(expect.objectContaining({ code: 'WALLET_FAILED', cause }))
  })

  test('reads signatures of other chains: alone, of any length, with a key or without', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const long = await account.signMessage({ message: 'm' })
    const compact = signatureToCompactSignature(parseSignature(long))
    const short = `0x${compact.r.slice(2)}${compact.yParityAndS.slice(2)}`
    const alone = (answer: unknown) => readWalletAnswer(answer, 'ethereum')
    for (const [signed, bytes] of [
      [long, 65],
      [short, 64],
    ] as const) {
      const signatureHex = signed.slice(2)
      expect(signatureHex).toHaveLength(2 * bytes)
      const expected = { publicKeyHex: '', signatureHex }
      expect(alone(signed)).toEqual(expected)
      expect(alone(signed.toUpperCase().replace('0X', '0x'))).toEqual(expected)
      expect(alone(Buffer.from(signatureHex, 'hex'))).toEqual(expected)
      expect(alone({ signature: signed, address: account.address })).toEqual({ ...expected, address: account.address })
      // What was read is read again the same.
      expect(alone(alone(signed))).toEqual(expected)
      const publicKeyHex = account.publicKey.slice(2)
      expect(alone({ signature: signed, publicKey: account.publicKey })).toEqual({ ...expected, publicKeyHex })
    }
    // A contract wallet's, from nothing at all to the most that the service takes.
    expect(alone('0x')).toEqual({ publicKeyHex: '', signatureHex: '' })
    expect(alone(new Uint8Array(16_384).fill(1)).signatureHex).toBe('01'.repeat(16_384))
    for (const answer of [
      '',
      '0x1',
      '0xsignature',
      undefined,
      {},
      new Uint8Array(16_385),
      `0x${'01'.repeat(16_385)}`,
    ]) {
      expect(() => alone(answer)).toThrow(expect.objectContaining({ code: 'WALLET_FAILED' }))
    }
    expect(() => alone({ signature: long, publicKey: 'a key' })).toThrow(
      expect.objectContaining({ code: 'WALLET_WRONG_KEY' }),
    )
  })

  test('holds wallets of Solana to the lengths of Ed25519, and reads base64 in these for all', () => {
    const [publicKey, signed] = [new Uint8Array(32).fill(7), new Uint8Array(64).fill(9)]
    const expected = { publicKeyHex: hex(publicKey), signatureHex: hex(signed) }
    expect(readWalletAnswer({ publicKey, signature: signed }, 'solana')).toEqual(expected)
    expect(() => readWalletAnswer({ publicKey, signature: new Uint8Array(65) }, 'solana')).toThrow('64 bytes')
    expect(() => readWalletAnswer({ signature: signed }, 'solana')).toThrow('32 bytes')
    const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
    expect(readWalletAnswer({ publicKey: base64(publicKey), signature: base64(signed) }, 'mine')).toEqual(expected)
  })

  test('reads base58 of wallets of Solana, and hex and base64 of theirs as ever', () => {
    const texts = [base58.encode, hex, (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')]
    // Zero bytes in front are letters of their own in base58.
    const zeros = fc.tuple(fc.nat(5), fc.uint8Array({ minLength: 64, maxLength: 64 }))
    fc.assert(
      fc.property(zeros, fc.constantFrom(...texts), ([count, bytes], text) => {
        const [publicKey, signed] = [bytes.slice(0, 32).fill(0, 0, count), bytes.fill(0, 0, count)]
        expect(readWalletAnswer({ publicKey: text(publicKey), signature: text(signed) }, 'solana')).toEqual({
          publicKeyHex: hex(publicKey),
          signatureHex: hex(signed),
        })
      }),
    )
    const publicKey = new Uint8Array(32).fill(7)
    // Base58 of 63 bytes has the length of 64 bytes in base64.
    for (const length of [60, 65]) {
      const answer = { publicKey, signature: base58.encode(new Uint8Array(length).fill(9)) }
      expect(() => readWalletAnswer(answer, 'solana')).toThrow('64 bytes')
    }
  })

  test('tells a key of another kind from an answer that is broken', () => {
    const signed = new Uint8Array(64)
    const code = (answer: unknown): string => {
      try {
        readWalletAnswer(answer)
        return 'no error'
      } catch (thrown) {
        return (thrown as CountersignClientError).code
      }
    }
    // A compressed secp256k1 key, as Ethereum and Bitcoin wallets have.
    expect(code({ publicKey: new Uint8Array(33), signature: signed })).toBe('WALLET_WRONG_KEY')
    expect(code({ publicKey: new Uint8Array(32), signature: new Uint8Array(65) })).toBe('WALLET_FAILED')
    expect(code({ publicKey: [...new Uint8Array(31), 256], signature: signed })).toBe('WALLET_WRONG_KEY')
    expect(code('0xsignature')).toBe('WALLET_FAILED')
    expect(code(undefined)).toBe('WALLET_FAILED')
  })
})

/** Two errors with each other under every name but one, which has the reason. */
function twoErrors(): object {
  const outer: Record<string, unknown> = {}
  const inner = { cause: outer, error: outer, originalError: outer, data: outer, info: { code: 4001 } }
  return Object.assign(outer, { cause: inner, error: inner, originalError: inner, data: inner, info: inner })
}

describe('a wallet that fails', () => {
  const failures: [string, unknown, string][] = [
    ['EIP-1193: rejected', { code: 4001, message: 'no' }, 'WALLET_DECLINED'],
    ['words', new Error('User rejected the request.'), 'WALLET_DECLINED'],
    ['the Nimiq Hub: cancelled', new Error('CANCELED'), 'WALLET_DECLINED'],
    ['the Nimiq Hub: closed', new Error('Connection was closed'), 'WALLET_CLOSED'],
    ['the Nimiq Hub: blocked', new Error('Failed to open popup'), 'WALLET_BLOCKED'],
    ['a window that the browser blocked', new Error('Pop up window was blocked'), 'WALLET_BLOCKED'],
    ['a window that was closed', new Error('Popup closed by the user'), 'WALLET_CLOSED'],
    ...[5000, 5001, 5002, 5003].map((code): [string, unknown, string] => [
      `WalletConnect: ${code}`,
      { code, message: 'Nein.' },
      'WALLET_DECLINED',
    ]),
    ['inside: data.originalError', { code: -32603, data: { originalError: { code: 4001 } } }, 'WALLET_DECLINED'],
    ['inside: cause', new Error('Signing failed', { cause: { code: 4001 } }), 'WALLET_DECLINED'],
    [
      'inside: cause of a cause',
      { cause: new Error('x', { cause: new Error('User said no: denied') }) },
      'WALLET_DECLINED',
    ],
    ['inside: error', { name: 'WalletSignMessageError', error: { code: '4001' } }, 'WALLET_DECLINED'],
    ['inside: a text', { message: 'Signing failed', error: 'User rejected' }, 'WALLET_DECLINED'],
    ['inside: info.error', { code: 'UNKNOWN_ERROR', info: { error: { code: 4001 } } }, 'WALLET_DECLINED'],
    ['a code as text', { code: '5000', message: 'Nein.' }, 'WALLET_DECLINED'],
    ['inside: two errors that name each other', twoErrors(), 'WALLET_DECLINED'],
    ['inside: busy', { code: -32603, data: { code: -32002 } }, 'WALLET_BUSY'],
    ['inside: nothing that says more', { code: -32603, cause: { code: 7 } }, 'WALLET_FAILED'],
    [
      'a browser\u2019s own dialogue',
      new DOMException('The request is not allowed', 'NotAllowedError'),
      'WALLET_DECLINED',
    ],
    ['anything else', new Error('ledger: 0x6985'), 'WALLET_FAILED'],
    ['a text', 'declined', 'WALLET_DECLINED'],
    ['nothing', undefined, 'WALLET_FAILED'],
  ]
  test.each(failures)('%s, thrown or answered', async (_, cause, code) => {
    const rejecting: Wallet = { sign: () => Promise.reject(cause) }
    const expected = cause === undefined ? { code } : { code, cause }
    await expect(proveWithWallet('m', { wallet: rejecting })).rejects.toMatchObject(expected)
    const throwing: Wallet = {
      sign: () => {
        throw cause
      },
    }
    await expect(proveWithWallet('m', { wallet: throwing })).rejects.toMatchObject(expected)
    if (cause === undefined) return
    const answering: Wallet = { sign: async () => ({ error: cause }) }
    await expect(proveWithWallet('m', { wallet: answering })).rejects.toMatchObject({ code, cause })
  })

  test('with an error that leads to itself, or throws when it is looked at, has failed', async () => {
    const circle: { cause?: unknown } = {}
    circle.cause = { error: circle }
    const throwing = {
      get cause() {
        throw new Error('detached')
      },
    }
    for (const cause of [circle, throwing]) {
      const wallet: Wallet = { sign: () => Promise.reject(cause) }
      await expect(proveWithWallet('m', { wallet })).rejects.toMatchObject({ code: 'WALLET_FAILED' })
    }
  })

  test('is missing when there is none, or it cannot sign', async () => {
    expect(await codeOf(proveWithWallet('m', {}))).toBe('WALLET_MISSING')
    expect(await codeOf(proveWithWallet('m', { wallet: {} as Wallet }))).toBe('WALLET_MISSING')
    expect(nimiqPay()).toBeUndefined()
    expect(nimiqPay({} as never)).toBeUndefined()
  })

  test('cannot leave out an address that was asked for', async () => {
    const test = makeWallet()
    const wallet: Wallet = { sign: (message) => ({ publicKey: test.publicKeyHex, signature: test.sign(message) }) }
    const options = { wallet, requestAddressBeforeVerify: true }
    expect(await codeOf(proveWithWallet('m', options))).toBe('WALLET_FAILED')
  })
})

describe('the Nimiq wallets', () => {
  const test1 = makeWallet()
  const signed = (message: string) => ({
    publicKeyHex: test1.publicKeyHex,
    signatureHex: test1.sign(message),
    adapterId: 'nimiq',
  })

  test('Nimiq Pay: signs, and tells its address when asked', async () => {
    const provider = {
      sign: async (message: string) => ({ publicKey: test1.publicKeyHex, signature: test1.sign(message) }),
      listAccounts: async (): Promise<unknown> => [test1.address],
    }
    Object.assign(globalThis, { nimiq: provider })
    try {
      expect(await proveWithWallet('m', {})).toEqual(signed('m'))
    } finally {
      Reflect.deleteProperty(globalThis, 'nimiq')
    }
    const withAddress = (wallet: Wallet | undefined) =>
      proveWithWallet('m', { wallet, requestAddressBeforeVerify: true })
    expect(await withAddress(nimiqPay(provider))).toEqual({ ...signed('m'), address: test1.address })
    const declined = { ...provider, listAccounts: async () => ({ error: { type: 'PermissionDenied', message: 'no' } }) }
    expect(await codeOf(withAddress(nimiqPay(declined)))).toBe('WALLET_DECLINED')
  })

  test('the Hub: signs as the address that is asked for, or not at all', async () => {
    const requests: object[] = []
    const hub = {
      async signMessage(request: { appName: string; message: string; signer?: string }) {
        requests.push(request)
        return {
          signer: test1.address,
          signerPublicKey: Uint8Array.from(Buffer.from(test1.publicKeyHex, 'hex')),
          signature: Uint8Array.from(Buffer.from(test1.sign(request.message), 'hex')),
        }
      },
    }
    const options = { wallet: nimiqHub(hub, { appName: 'Tally' }), requestAddressBeforeVerify: true }
    expect(await proveWithWallet('m', options)).toEqual({ ...signed('m'), address: test1.address })
    expect(requests).toEqual([{ appName: 'Tally', message: 'm' }])
    const signer = test1.address.toLowerCase().replaceAll(' ', '')
    expect(await proveWithWallet('m', { wallet: nimiqHub(hub, { appName: 'Tally', signer }) })).toEqual(signed('m'))
    const other = nimiqHub(hub, { appName: 'Tally', signer: makeWallet().address })
    expect(await codeOf(proveWithWallet('m', { wallet: other }))).toBe('WALLET_WRONG_KEY')
  })
})
