import { randomBytes } from 'node:crypto'
import { base58 } from '@scure/base'
import { describe, expect, test } from 'vitest'
import { readWalletName } from '../../../src/core/wallet/adapters.ts'
import { checksummed } from '../../../src/core/wallet/ethereum/address.ts'
import { makeWallet } from '../../support/wallet.ts'

const { publicKeyHex, address } = makeWallet()
const bytes = Buffer.from(publicKeyHex, 'hex')
const account = checksummed(`0x${randomBytes(20).toString('hex')}`)
const named = (text: string): string[] =>
  (readWalletName(text)?.candidates ?? []).map(
    ({ adapterId, subject, address }) => `${adapterId} ${subject} ${address}`,
  )

describe('a wallet is named by', () => {
  test.each<[string, string, string[]]>([
    ['the key of an adapter', `nimiq:${publicKeyHex}`, [`nimiq ${publicKeyHex} ${address}`]],
    ['the key in upper case', `ed25519:${publicKeyHex.toUpperCase()}`, [`ed25519 ${publicKeyHex} ${address}`]],
    [
      'a key alone, which can be of several adapters',
      publicKeyHex,
      [
        `nimiq ${publicKeyHex} ${address}`,
        `ed25519 ${publicKeyHex} ${address}`,
        `solana ${publicKeyHex} ${base58.encode(bytes)}`,
      ],
    ],
    ['the address of Solana', base58.encode(bytes), [`solana ${publicKeyHex} ${base58.encode(bytes)}`]],
    ['an account of Ethereum', account, [`ethereum ${account.toLowerCase()} ${account}`]],
    ['that in lower case', account.toLowerCase(), [`ethereum ${account.toLowerCase()} ${account}`]],
    [
      'a contract wallet and its chain',
      `eip155:8453:${account}`,
      [`ethereum eip155:8453:${account.toLowerCase()} eip155:8453:${account}`],
    ],
    ['the key of an adapter of the application’s own', `ring:${publicKeyHex}`, [`ring ${publicKeyHex} `]],
    ['an address that does not tell the key', address, []],
  ])('%s', (_name, text, candidates) => {
    expect(named(text)).toEqual(candidates)
  })

  test('an address, which fits the wallets of its adapters only', () => {
    const fits = readWalletName(`nimiq:${address.replaceAll(' ', '').toLowerCase()}`)?.fits
    const wallet = { adapterId: 'nimiq', subject: publicKeyHex, publicKeyHex, address }
    expect(fits?.(wallet)).toBe(true)
    expect(fits?.({ ...wallet, adapterId: 'ed25519' })).toBe(false)
    expect(fits?.({ ...wallet, address: makeWallet().address, publicKeyHex: '' })).toBe(false)
  })
})

test.each(['', 'x', 'nimiq:x', 'nimiq:NQ00 0000', `0x${'g'.repeat(40)}`, publicKeyHex.slice(2), 'ethereum:0x12'])(
  '%j names no wallet',
  (text) => {
    expect(readWalletName(text)).toBeUndefined()
  },
)
