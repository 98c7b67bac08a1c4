// node --test examples/custom-wallet/chains.test.ts
import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { type Countersign, createCountersign } from 'countersign'
import { type CountersignClient, createCountersignClient, type Wallet } from 'countersign/client'
import { describeAdapterContract, type TestWallet } from 'countersign/testing'
import { stellar } from './stellar.ts'
import { tron } from './tron.ts'

function stellarWallet(): TestWallet {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const key = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  return {
    adapterId: 'stellar',
    publicKeyHex: key.toString('hex'),
    address: stellar.address(key),
    sign: (text) => sign(null, stellar.envelope(text), privateKey).toString('hex'),
  }
}

function tronWallet(): TestWallet {
  const secretKey = randomBytes(32)
  return {
    adapterId: 'tron',
    publicKeyHex: '',
    address: tron.address(secp256k1.getPublicKey(secretKey, false)),
    sign(text) {
      const signature = secp256k1.sign(tron.envelope(text), secretKey, { prehash: false, format: 'recovered' })
      // The library writes v first, and wallets write it last, as 27 or 28.
      return Buffer.from([...signature.subarray(1), 27 + (signature[0] as number)]).toString('hex')
    },
  }
}

const kinds = {
  stellar: { adapter: stellar, makeWallet: stellarWallet },
  tron: { adapter: tron, makeWallet: tronWallet },
}

for (const kind of Object.values(kinds)) describeAdapterContract({ describe, test }, kind)

describe('on a page', () => {
  let service: Countersign
  let client: CountersignClient
  before(async () => {
    const adapters = ['nimiq', stellar, tron]
    service = await createCountersign({ store: 'sqlite::memory:', port: 0, host: '127.0.0.1', adapters })
    client = createCountersignClient({ baseUrl: `http://localhost:${await service.listen()}` })
  })
  after(() => service.close(0))

  test('a Stellar wallet signs in', async () => {
    const { publicKeyHex, address, sign } = stellarWallet()
    // As Freighter and other wallets have it: signMessage returns the signature in base64.
    const wallet: Wallet = {
      adapterId: 'stellar',
      getAddress: () => address,
      sign: async (text) => ({
        publicKey: publicKeyHex,
        signature: Buffer.from(await sign(text), 'hex').toString('base64'),
      }),
    }
    const { session } = await client.signInWallet({ wallet, requestAddressBeforeVerify: true })
    assert.deepEqual([session.adapterId, session.address], ['stellar', address])
  })

  test('a TRON wallet signs in', async () => {
    const { address, sign } = tronWallet()
    const wallet: Wallet = {
      adapterId: 'tron',
      getAccount: () => ({ address }),
      // As TronLink has it: tronWeb.trx.signMessageV2 returns hex behind 0x.
      sign: async (text) => `0x${await sign(text)}`,
    }
    const { session } = await client.signInWallet({ wallet })
    assert.deepEqual([session.adapterId, session.address], ['tron', address])
  })
})
