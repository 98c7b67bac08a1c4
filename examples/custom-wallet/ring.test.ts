// node --test examples/custom-wallet/ring.test.ts
import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type Countersign, createCountersign } from 'countersign'
import { type CountersignClient, createCountersignClient, type Wallet } from 'countersign/client'
import { describeAdapterContract, type TestWallet } from 'countersign/testing'
import { ring, signedBytes } from './ring.ts'

/** The directory: names and keys. */
const keys = new Map<string, string>()
let isAway = false
const server = createServer((request, response) => {
  const key = keys.get(request.url?.replace('/keys/', '') ?? '')
  response.statusCode = isAway ? 503 : key === undefined ? 404 : 200
  response.end(key)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
server.unref()
const directory = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

/** A wallet in memory with a new account, or a new key of one. */
function makeWallet(name = `a${randomBytes(8).toString('hex')}.ring`): TestWallet {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  keys.set(name, publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex'))
  return {
    adapterId: 'ring',
    publicKeyHex: '',
    address: name,
    sign: (message) => sign(null, signedBytes(message), privateKey).toString('hex'),
  }
}

describeAdapterContract(
  { describe, test },
  {
    adapter: ring(directory),
    makeWallet,
    spellings: (address) => [address.toUpperCase()],
    // lice.ring is an account, too.
    cutAddressIsMalformed: false,
    chainId: 'main',
  },
)

describe('a Ring wallet', () => {
  let service: Countersign
  let client: CountersignClient
  before(async () => {
    const adapters = ['nimiq', ring(directory)]
    service = await createCountersign({ store: 'sqlite::memory:', port: 0, host: '127.0.0.1', adapters })
    client = createCountersignClient({ baseUrl: `http://localhost:${await service.listen()}` })
  })
  after(() => service.close(0))

  /** As a page has it. `seen` are the texts that its user was shown. */
  const pageWallet = ({ address, sign }: TestWallet, seen: string[] = []): Wallet => ({
    adapterId: 'ring',
    getAccount: () => ({ address, chainId: 'main' }),
    async sign(text) {
      seen.push(text)
      return await sign(text)
    },
  })

  test('signs in over its own text, which names the page', async () => {
    const wallet = makeWallet()
    const seen: string[] = []
    const { session } = await client.signInWallet({ wallet: pageWallet(wallet, seen) })
    assert.equal(session.adapterId, 'ring')
    assert.equal(session.address, wallet.address)
    assert.match(seen[0] ?? '', new RegExp(`^localhost:\\d+ asks ${wallet.address} to sign in\\.\nSign in\\.\n`))
  })

  test('approves what a desktop started, and the artifact has its account', async () => {
    const wallet = makeWallet()
    const order = await client.startOrder({ kind: 'sign', displayTitle: 'Pay 5', adapterId: 'ring' })
    const phone = await client.claimOrder(order.claimUrl)
    const challenge = await client.getOrderChallenge(phone)
    await client.approveOrder(phone, { challenge, wallet: pageWallet(wallet) })
    const finalized = await client.finalizeOrder(order)
    assert.ok(finalized.kind === 'sign')
    assert.equal(finalized.proofArtifact.address, wallet.address)
    assert.match(finalized.proofArtifact.message, new RegExp(`\nAccount: ring:main:${wallet.address}$`))
  })

  test('is the same user after its key has changed, and the old key is nobody', async () => {
    const old = makeWallet()
    const { session } = await client.signInWallet({ wallet: pageWallet(old) })
    const renewed = makeWallet(old.address)
    const next = await client.signInWallet({ wallet: pageWallet(renewed) })
    assert.equal(next.session.userId, session.userId)
    await assert.rejects(client.signInWallet({ wallet: pageWallet(old) }), { code: 'SIGNATURE_INVALID' })
  })

  test('is told to come back while the directory is away', async () => {
    const wallet = pageWallet(makeWallet())
    isAway = true
    await assert.rejects(client.signInWallet({ wallet }), { code: 'HOST_UNAVAILABLE' })
    isAway = false
    assert.equal((await client.signInWallet({ wallet })).session.adapterId, 'ring')
  })
})
