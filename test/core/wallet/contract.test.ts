import { setSignEntropy } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { walletAdapters } from '../../../src/core/wallet/adapters.ts'
import { type Ed25519Framing, ed25519Adapter, portableVerifier } from '../../../src/core/wallet/ed25519.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { ed25519, nimiq } from '../../../src/core/wallet/nimiq.ts'
import {
  type AdapterContractOptions,
  describeAdapterContract,
  makeTestWallet,
  type TestWallet,
} from '../../../src/integrations/testing/index.ts'
import { type AdapterId, adapterIds } from '../../../src/shared/adapters.ts'
import { bytesToHex } from '../../../src/shared/hex.ts'
import { makeEthereumWallet } from '../../support/chains.ts'
import { makeSolanaWallet } from '../../support/solana.ts'
import { makeWallet } from '../../support/wallet.ts'

const withoutSpaces = (address: string): string[] => [
  address.replaceAll(' ', ''),
  address.toLowerCase(),
  ` ${address.replaceAll(' ', '').toLowerCase()} `,
]

// Without its v, a signature of parity 0 is its own compact form (EIP-2098). So these wallets make those of parity 1.
setSignEntropy(true)

function makeOddEthereumWallet(): TestWallet {
  const wallet = makeEthereumWallet()
  const sign = async (message: string): Promise<string> => {
    const signature = await wallet.sign(message)
    return signature.endsWith('1c') ? signature : await sign(message)
  }
  return { ...wallet, sign }
}

/** The adapter that each id stands for, with wallets that other libraries make where there is one. */
const suites: Readonly<Record<AdapterId, Omit<AdapterContractOptions, 'adapter'>>> = {
  nimiq: { makeWallet: () => makeTestWallet({ adapterId: 'nimiq' }), spellings: withoutSpaces },
  ed25519: { makeWallet: () => makeTestWallet({ adapterId: 'ed25519' }), spellings: withoutSpaces },
  ethereum: {
    chainId: '1',
    makeWallet: makeOddEthereumWallet,
    spellings: (address) => [address.toLowerCase(), `0x${address.slice(2).toUpperCase()}`],
  },
  // With the native verifier: there are five layouts to try, each of which takes the portable one 10 ms.
  solana: {
    makeWallet: () => ({ adapterId: 'solana', ...makeSolanaWallet() }),
    cutAddressIsMalformed: false,
    chainId: 'mainnet',
    ed25519: nativeVerifier,
  },
}

describe.each(walletAdapters(adapterIds).map((adapter) => [adapter.id, adapter] as const))('%s', (id, adapter) => {
  describeAdapterContract({ describe, test }, { ...suites[id as AdapterId], adapter })
})

describe("with wallets of Nimiq's own library and the portable verifier", () => {
  describeAdapterContract(
    { describe, test },
    {
      adapter: nimiq,
      makeWallet: () => ({ adapterId: 'nimiq', ...makeWallet() }),
      spellings: withoutSpaces,
      ed25519: portableVerifier,
    },
  )
})

/** A framing of an application's own, whose adapter asks elsewhere and so answers later. */
const framing: Ed25519Framing = {
  id: 'late',
  displayName: 'Late',
  signedBytes: (text) => Buffer.from(`late:${text}`),
  deriveAddress: (publicKey) => `late:${bytesToHex(publicKey)}`,
  readAddress: (text) => (/^late:[0-9a-f]{64}$/.test(text) && text.length === 69 ? text : undefined),
}
const late = ed25519Adapter({ ...framing })

describe('an adapter that answers later', () => {
  describeAdapterContract(
    { describe, test },
    {
      adapter: {
        ...late,
        async verify(...claim) {
          await new Promise(setImmediate)
          return late.verify(...claim)
        },
      },
      makeWallet: () => makeTestWallet({ framing }),
    },
  )
})

describe('a test wallet', () => {
  test('made from a secret key is that wallet', () => {
    // RFC 8032 §7.1, TEST 2.
    const secretKey = Buffer.from('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb', 'hex')
    const wallet = makeTestWallet({ adapterId: 'ed25519', secretKey })
    expect(wallet.publicKeyHex).toBe('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c')
    expect(wallet.sign('r')).toBe(
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
        '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    )
    expect(wallet).toMatchObject({
      adapterId: 'ed25519',
      address: ed25519.deriveAddress(Buffer.from(wallet.publicKeyHex, 'hex')),
    })
  })

  test('is another one each time, and a Nimiq wallet by default', () => {
    expect(makeTestWallet().adapterId).toBe('nimiq')
    expect(makeTestWallet().address).not.toBe(makeTestWallet().address)
  })

  test('refuses a secret key of another length', () => {
    expect(() => makeTestWallet({ secretKey: new Uint8Array(64) })).toThrow(TypeError)
  })
})
