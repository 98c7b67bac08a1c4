import { getAddress, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { parseSiweMessage } from 'viem/siwe'
import { beforeEach, describe, expect, test } from 'vitest'
import { createCountersign } from '../../../../src/index.ts'
import { countOf, type RpcTrouble, rpcKey, startChain, type TestChain } from '../../../support/evm.ts'
import { keptLog } from '../../../support/log-lines.ts'
import { type RestAnswer, rest } from '../../../support/rest.ts'
import { startService } from '../../../support/service.ts'
import vectors from '../../../vectors/ethereum.json' with { type: 'json' }

const { contract } = vectors
const bare = (hex: string): string => hex.slice(2)
const newAccount = () => privateKeyToAccount(generatePrivateKey())
type Account = ReturnType<typeof newAccount>

/** The account that a form or a proof names, beside its signature. */
interface Named {
  readonly adapterId: string
  readonly address: string
  readonly chainId: string
}
const named = (address: string, chainId = '1'): Named => ({ adapterId: 'ethereum', address, chainId })

async function signed(account: Account, message: string) {
  return { publicKeyHex: '', signatureHex: bare(await account.signMessage({ message })) }
}

/** What a call came to: its answer, or the reason and the text that it was refused with. */
function outcome({ status, json }: RestAnswer) {
  return status === 200 ? json : `${json.code}: ${json.message}`
}

const ethereumOnly = { adapters: ['nimiq', 'ed25519', 'ethereum'] }

describe('a sign-in', () => {
  const account = newAccount()
  let url: string
  beforeEach(async () => {
    url = (await startService(ethereumOnly)).url
  })

  const nonce = async (wallet: object) => outcome(await rest(url, '/wallet/nonce', wallet))
  const verify = async (proof: object) => outcome(await rest(url, '/wallet/verify', proof))

  test('over the form proves the address, which is the user on every chain', async () => {
    const users: string[] = []
    for (const chainId of ['1', '8453']) {
      const wallet = named(account.address.toLowerCase(), chainId)
      const { nonceId, message } = await nonce(wallet)
      const { session } = await verify({ nonceId, ...wallet, ...(await signed(account, message)) })
      expect(session).toMatchObject({ adapterId: 'ethereum', address: account.address, publicKeyHex: '' })
      users.push(session.userId)
    }
    expect(users[0]).toBe(users[1])
  })

  test("is asked for in a text that viem's parser reads as what was asked", async () => {
    const challenge = await nonce(named(account.address, '137'))
    const parsed = parseSiweMessage(challenge.message)
    expect(parsed).toEqual({
      domain: new URL(url).host,
      address: account.address,
      statement: 'Sign in.',
      uri: url,
      version: '1',
      chainId: 137,
      nonce: Buffer.from(challenge.nonce, 'base64url').toString('hex'),
      issuedAt: new Date(challenge.issuedAt),
      expirationTime: new Date(challenge.expiresAt),
      resources: [expect.stringMatching(/^urn:countersign:sha256:[A-Za-z0-9_-]{43}$/)],
    })
  })

  test('over the plain text, which names no page for the wallet to compare, is refused', async () => {
    const { nonceId, message } = await nonce({})
    const wallet = named(account.address)
    expect(await verify({ nonceId, ...wallet, ...(await signed(account, message)) })).toMatch(/^SIGNATURE_INVALID/)
  })

  test.each([
    ['another chain', { chainId: '10' }],
    ['another address', { address: newAccount().address }],
  ])('over the form of %s than the proof names is refused', async (_, other) => {
    const wallet = named(account.address)
    const { nonceId, message } = await nonce({ ...wallet, ...other })
    expect(await verify({ nonceId, ...wallet, ...(await signed(account, message)) })).toMatch(/^SIGNATURE_INVALID/)
  })

  test.each([
    ['another domain', (text: string, host: string) => text.replace(host, 'evil.example')],
    ['another URI', (text: string, host: string) => text.replace(`URI: http://${host}`, 'URI: https://evil.example')],
    ['a text with one changed letter', (text: string) => text.replace('Sign in.', 'Sign on.')],
    [
      'another nonce',
      (text: string) => text.replace(/Nonce: ./, (first) => (first.endsWith('0') ? 'Nonce: 1' : 'Nonce: 0')),
    ],
    ['another hash of the plain text', (text: string) => text.replace(/sha256:..../, 'sha256:AAAA')],
    ['a later end', (text: string) => text.replace(/Expiration Time: 2/, 'Expiration Time: 3')],
  ])('over %s is refused', async (_, change) => {
    const wallet = named(account.address)
    const { nonceId, message } = await nonce(wallet)
    const changed = change(message, new URL(url).host)
    expect(changed).not.toBe(message)
    expect(await verify({ nonceId, ...wallet, ...(await signed(account, changed)) })).toMatch(/^SIGNATURE_INVALID/)
  })

  test('needs an address and a chain, in the request for the text and in the proof', async () => {
    const { address } = account
    expect(await nonce({ adapterId: 'ethereum' })).toMatch(/^INVALID_REQUEST: address /)
    expect(await nonce({ adapterId: 'ethereum', chainId: '1' })).toMatch(/^INVALID_REQUEST: address /)
    expect(await nonce({ adapterId: 'ethereum', address })).toMatch(/^INVALID_REQUEST: chainId /)
    expect(await nonce(named(address, 'mainnet'))).toMatch(/^INVALID_REQUEST: chainId /)
    expect(await nonce(named(address, '01'))).toMatch(/^INVALID_REQUEST: chainId /)
    expect(await nonce(named(address.slice(2)))).toMatch(/^INVALID_REQUEST: address /)
    const { nonceId, message } = await nonce(named(address))
    const proof = { nonceId, adapterId: 'ethereum', ...(await signed(account, message)) }
    expect(await verify({ ...proof, chainId: '1' })).toMatch(/^INVALID_REQUEST: address /)
  })

  test('does not try the adapter for a proof that does not name it', async () => {
    const { nonceId, message } = await nonce(named(account.address))
    const { adapterId: _, ...unnamed } = named(account.address)
    const refused = await verify({ nonceId, ...unnamed, ...(await signed(account, message)) })
    expect(refused).toMatch(/^INVALID_REQUEST: publicKeyHex /)
  })

  test('is not offered unless the adapter is switched on', async () => {
    const { url } = await startService()
    const answer = await rest(url, '/wallet/nonce', named(account.address))
    expect(outcome(answer)).toMatch(/^ADAPTER_UNKNOWN: .*nimiq, ed25519$/)
  })
})

/** An order that waits for its phone. */
async function waiting(url: string, details: object, session: Record<string, string> = {}) {
  const { json: started } = await rest(url, '/cross-device/start', details, session)
  const { orderId, claimToken, desktopToken } = started
  const { json: claimed } = await rest(url, '/cross-device/claim', { orderId, claimToken })
  const { challengeToken } = claimed
  const challenge = async (wallet: Partial<Named>) => {
    const query = new URLSearchParams({ orderId, ...wallet })
    const headers = { authorization: `Bearer ${challengeToken}` }
    return outcome(await rest(url, `/cross-device/challenge?${query}`, undefined, headers))
  }
  const approve = async (proof: object) =>
    outcome(await rest(url, '/cross-device/approve', { orderId, challengeToken, proof }))
  const finalize = async (returnCode?: string) =>
    outcome(await rest(url, '/cross-device/finalize', { orderId, desktopToken, returnCode }, session))
  return { challenge, approve, finalize, origin: url }
}

describe('an order of a key', () => {
  const account = newAccount()
  const wallet = named(account.address)
  let url: string
  beforeEach(async () => {
    url = (await startService(ethereumOnly)).url
  })

  test('to sign in is approved over a form that names the page of the order too', async () => {
    const order = await waiting(url, { kind: 'login' })
    const { message } = await order.challenge(wallet)
    expect(parseSiweMessage(message)).toMatchObject({
      address: account.address,
      statement: 'Sign in on another device.',
      resources: [expect.stringMatching(/^urn:countersign:sha256:/), url],
    })
    expect(await order.approve({ ...wallet, ...(await signed(account, message)) })).toMatchObject({ ok: true })
    expect(await order.finalize()).toMatchObject({ session: { adapterId: 'ethereum', address: account.address } })
  })

  test('to add a wallet is approved over a form that says so, and not over its plain text', async () => {
    const own = newAccount()
    const { nonceId, message } = (await rest(url, '/wallet/nonce', named(own.address))).json
    const proof = { nonceId, ...named(own.address), ...(await signed(own, message)) }
    const { token } = (await rest(url, '/wallet/verify', proof)).json
    const order = await waiting(url, { kind: 'link' }, { authorization: `Bearer ${token}` })
    const { message: plain } = await order.challenge({})
    expect(await order.approve({ ...wallet, ...(await signed(account, plain)) })).toMatch(/^SIGNATURE_INVALID/)
    const { message: form } = await order.challenge(wallet)
    expect(parseSiweMessage(form)).toMatchObject({
      address: account.address,
      statement: 'Add this wallet to an account on another device.',
      resources: [expect.stringMatching(/^urn:countersign:sha256:/), url],
    })
    const { returnCode } = await order.approve({ ...wallet, ...(await signed(account, form)) })
    expect(await order.finalize(returnCode)).toMatchObject({
      wallet: { adapterId: 'ethereum', address: account.address },
    })
  })

  test('to sign in is not approved over its plain text', async () => {
    const order = await waiting(url, { kind: 'login' })
    const { message } = await order.challenge({})
    expect(await order.approve({ ...wallet, ...(await signed(account, message)) })).toMatch(/^SIGNATURE_INVALID/)
  })

  test('to sign something is approved over the plain text, with a line of the account or without', async () => {
    for (const account_ of [{}, wallet]) {
      const order = await waiting(url, { kind: 'sign', displayTitle: 'Pay' })
      const plain = (await order.challenge({})).message as string
      const { message } = await order.challenge(account_)
      const line = account_ === wallet ? `\nAccount: eip155:1:${account.address}` : ''
      expect(message).toBe(plain + line)
      const proof = { adapterId: 'ethereum', ...account_, ...(await signed(account, message)) }
      expect(await order.approve(proof)).toMatchObject({ ok: true })
      expect(await order.approve(proof)).toMatchObject({ ok: true })
      const { proofArtifact } = await order.finalize()
      expect(proofArtifact).toMatchObject({
        adapterId: 'ethereum',
        address: account.address,
        publicKeyHex: '',
        message,
        signatureHex: proof.signatureHex,
      })
    }
  })

  test('cannot ask for a wallet by its key, which no identity has', async () => {
    const { url } = await startService(ethereumOnly)
    const expectedPublicKeyHex = bare(newAccount().publicKey)
    const asked = { kind: 'sign', adapterId: 'ethereum', expectedPublicKeyHex }
    expect(outcome(await rest(url, '/cross-device/start', asked))).toMatch(/^INVALID_REQUEST: expectedPublicKeyHex/)
  })

  test("is not approved with another account's line, and the wallet that it is for may be its address", async () => {
    const expectedAddress = account.address.toLowerCase()
    const order = await waiting(url, { kind: 'sign', adapterId: 'ethereum', expectedAddress })
    const { message } = await order.challenge(named(account.address, '10'))
    expect(await order.approve({ ...wallet, ...(await signed(account, message)) })).toMatch(/^SIGNATURE_INVALID/)
    const stranger = newAccount()
    const plain = (await order.challenge({})).message as string
    expect(await order.approve({ adapterId: 'ethereum', ...(await signed(stranger, plain)) })).toMatch(/^WRONG_WALLET/)
    expect(await order.approve({ adapterId: 'ethereum', ...(await signed(account, plain)) })).toMatchObject({
      ok: true,
    })
  })
})

describe('a contract wallet', () => {
  const owner = privateKeyToAccount(contract.ownerPrivateKey as Hex)
  let chain: TestChain
  let address: string
  let wallet: Named
  beforeEach(async () => {
    chain = await startChain()
    address = await chain.deploy(contract.runtime)
    wallet = named(address)
  })

  const start = async (options: object = {}) =>
    (await startService({ ...ethereumOnly, evmRpc: { 1: chain.url }, ...options })).url
  const accountId = () => `eip155:1:${getAddress(address)}`

  test('signs in as itself, and not as its owner', async () => {
    const url = await start()
    const { json } = await rest(url, '/wallet/nonce', wallet)
    const proof = { nonceId: json.nonceId, ...wallet, ...(await signed(owner, json.message)) }
    const { session } = outcome(await rest(url, '/wallet/verify', proof))
    expect(session).toMatchObject({ adapterId: 'ethereum', address: accountId(), publicKeyHex: '' })
  })

  test('approves orders, with a line of its account if they are to sign something', async () => {
    const url = await start()
    const login = await waiting(url, { kind: 'login' })
    const form = (await login.challenge(wallet)).message
    expect(await login.approve({ ...wallet, ...(await signed(owner, form)) })).toMatchObject({ ok: true })
    expect(await login.finalize()).toMatchObject({ session: { address: accountId() } })

    const sign = await waiting(url, { kind: 'sign', adapterId: 'ethereum', expectedAddress: accountId() })
    const { message } = await sign.challenge(wallet)
    const proof = { ...wallet, ...(await signed(owner, message)) }
    expect(await sign.approve(proof)).toMatchObject({ ok: true })
    const asked = countOf(chain, 'eth_call')
    expect(await sign.approve(proof)).toMatchObject({ ok: true })
    expect(countOf(chain, 'eth_call')).toBe(asked)
    const { proofArtifact } = await sign.finalize()
    expect(proofArtifact).toMatchObject({ address: accountId(), message })
    expect(message).toMatch(new RegExp(`\nAccount: ${accountId()}$`))
  })

  test('is not the wallet of an order for the same address on its own or on another chain', async () => {
    const url = await start()
    for (const expectedAddress of [address, `eip155:10:${address}`]) {
      const order = await waiting(url, { kind: 'sign', adapterId: 'ethereum', expectedAddress })
      const { message } = await order.challenge(wallet)
      expect(await order.approve({ ...wallet, ...(await signed(owner, message)) })).toMatch(/^WRONG_WALLET/)
    }
  })

  test('a contract wallet that was not named is told to name its account, before the RPC is asked', async () => {
    const url = await start()
    const order = await waiting(url, { kind: 'sign' })
    await order.challenge({})
    const proof = { adapterId: 'ethereum', publicKeyHex: '', signatureHex: '11'.repeat(130) }
    expect(await order.approve(proof)).toMatch(/^INVALID_REQUEST: chainId /)
    expect(countOf(chain, 'eth_call')).toBe(0)
  })

  test('whose chain has no RPC is told so', async () => {
    const url = await start()
    const base = named(address, '8453')
    const { json } = await rest(url, '/wallet/nonce', base)
    const proof = { nonceId: json.nonceId, ...base, publicKeyHex: '', signatureHex: '' }
    const refused = await rest(url, '/wallet/verify', proof)
    expect(refused.status).toBe(400)
    expect(outcome(refused)).toMatch(/^CONTRACT_WALLET_NEEDS_RPC: .*chain 8453 .*COUNTERSIGN_EVM_RPC/)
  })

  test('is asked about three times for an order, and then no more', async () => {
    const url = await start()
    const order = await waiting(url, { kind: 'sign' })
    const { message } = await order.challenge(wallet)
    for (let i = 0; i < 3; i++) {
      const wrong = { ...wallet, publicKeyHex: '', signatureHex: `0${i}`.repeat(65) }
      expect(await order.approve(wrong)).toMatch(/^SIGNATURE_INVALID/)
    }
    const proof = { ...wallet, ...(await signed(owner, message)) }
    expect(await order.approve(proof)).toMatch(/^RATE_LIMITED/)
    expect(countOf(chain, 'eth_call')).toBe(3)
    // A key needs no RPC.
    const account = newAccount()
    const keyed = named(account.address)
    const keyText = (await order.challenge(keyed)).message
    expect(await order.approve({ ...keyed, ...(await signed(account, keyText)) })).toMatchObject({ ok: true })
  })

  test('a contract wallet of which thirty wrong proofs come at once is asked about at most three times', async () => {
    const url = await start()
    const order = await waiting(url, { kind: 'sign' })
    await order.challenge(wallet)
    const proofs = Array.from({ length: 30 }, (_, i) => ({
      ...wallet,
      publicKeyHex: '',
      signatureHex: (i + 0x10).toString(16).repeat(65),
    }))
    const outcomes = await Promise.all(proofs.map((proof) => order.approve(proof)))
    const reasons = outcomes.map((one) => String(one).split(':')[0])
    expect(new Set(reasons)).toEqual(new Set(['SIGNATURE_INVALID', 'RATE_LIMITED']))
    expect(reasons.filter((reason) => reason === 'SIGNATURE_INVALID')).toHaveLength(3)
    expect(countOf(chain, 'eth_call')).toBe(3)
  })

  test('can still approve after an outage of the RPC, which does not count, and the log says why', async () => {
    const { logger, lines } = keptLog()
    const url = await start({ logger })
    const order = await waiting(url, { kind: 'sign' })
    const { message } = await order.challenge(wallet)
    const proof = { ...wallet, ...(await signed(owner, message)) }
    chain.trouble((_, response) => {
      response.writeHead(502).end()
      return true
    })
    for (let i = 0; i < 5; i++) expect(await order.approve(proof)).toMatch(/^EVM_RPC_UNAVAILABLE: .*chain 1 /)
    chain.trouble()
    expect(await order.approve(proof)).toMatchObject({ ok: true })
    expect(lines.find(({ fields }) => fields.reason === 'EVM_RPC_UNAVAILABLE')).toMatchObject({
      level: 'warn',
      fields: { cause: 'eth_getCode: HTTP status 502' },
    })
    expect(JSON.stringify(lines)).not.toContain(rpcKey)
  })

  test('is asked about once for a nonce, which an outage uses up', async () => {
    const url = await start()
    const unavailable: RpcTrouble = (_, response) => Boolean(response.writeHead(503).end())
    for (const [trouble, first] of [
      [undefined, 'SIGNATURE_INVALID'],
      [unavailable, 'EVM_RPC_UNAVAILABLE'],
    ] as const) {
      const { json } = await rest(url, '/wallet/nonce', wallet)
      chain.trouble(trouble)
      const before = chain.calls.length
      const wrong = { nonceId: json.nonceId, ...wallet, publicKeyHex: '', signatureHex: '11'.repeat(65) }
      const answers = await Promise.all([1, 2, 3].map(() => rest(url, '/wallet/verify', wrong)))
      const reasons = answers.map(({ json }) => json.code)
      expect(reasons.toSorted()).toEqual([first, 'NONCE_NOT_FOUND', 'NONCE_NOT_FOUND'].toSorted())
      expect(chain.calls.length - before).toBeLessThanOrEqual(2)
      chain.trouble()
    }
  })
})

test('an RPC of the wrong chain stops the start', async () => {
  const chain = await startChain(5)
  await expect(createCountersign({ ...ethereumOnly, evmRpc: { 1: chain.url } })).rejects.toThrow('serves chain 5')
})
