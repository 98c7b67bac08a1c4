// node --test examples/custom-adapter/p256.test.ts
import assert from 'node:assert/strict'
import { createECDH, generateKeyPairSync, sign } from 'node:crypto'
import { describe, test } from 'node:test'
import { createCountersign } from 'countersign'
import { describeAdapterContract, type TestWallet } from 'countersign/testing'
import { addressOf, p256 } from './p256.ts'

/** A wallet in memory, for tests. */
function makeWallet(): TestWallet {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const { d = '' } = privateKey.export({ format: 'jwk' })
  const ecdh = createECDH('prime256v1')
  ecdh.setPrivateKey(Buffer.from(d, 'base64url'))
  const publicKey = ecdh.getPublicKey(null, 'compressed')
  return {
    adapterId: p256.id,
    publicKeyHex: publicKey.toString('hex'),
    address: addressOf(publicKey),
    sign: (message) =>
      sign('sha256', Buffer.from(message), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('hex'),
  }
}

describeAdapterContract(
  { describe, test },
  { adapter: p256, makeWallet, spellings: (address) => [address.toUpperCase()] },
)

test('its wallets sign in', async (t) => {
  const service = await createCountersign({
    store: 'sqlite::memory:',
    port: 0,
    host: '127.0.0.1',
    adapters: ['nimiq', p256],
  })
  t.after(() => service.close(0))
  const url = `http://localhost:${await service.listen()}/api/auth/wallet`
  const call = async (path: string, body: object): Promise<Answer> => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await response.json()) as Answer
  }

  const wallet = makeWallet()
  const { nonceId, message = '' } = await call('/nonce', {})
  const { adapterId, publicKeyHex } = wallet
  const signatureHex = await wallet.sign(message)
  const { session } = await call('/verify', { nonceId, adapterId, publicKeyHex, signatureHex })
  assert.equal(session?.adapterId, 'p256')
  assert.equal(session?.address, wallet.address)
})

interface Answer {
  readonly nonceId?: string
  readonly message?: string
  readonly session?: { readonly adapterId: string; readonly address: string }
}
