import { ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { type Hex, hashMessage } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'
import { beforeEach, describe, expect, test } from 'vitest'
import { SignInService } from '../../../gen/server/countersign/v1/sign_in_service_pb.ts'
import { ErrorInfoSchema } from '../../../gen/server/google/rpc/error_details_pb.ts'
import { OriginPolicy } from '../../../src/core/origin-policy.ts'
import { Nonces } from '../../../src/core/sign-in/nonce.ts'
import { ethereum } from '../../../src/core/wallet/ethereum/ethereum.ts'
import { nativeVerifier } from '../../../src/core/wallet/native.ts'
import { Prover } from '../../../src/core/wallet/prover.ts'
import type { SignInForm } from '../../../src/shared/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { misspelt, startChain } from '../../support/evm.ts'
import { type RestAnswer, rest } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { makeSolanaWallet } from '../../support/solana.ts'
import { makeWallet, proofOf as signedBy } from '../../support/wallet.ts'
import vectors from '../../vectors/ethereum.json' with { type: 'json' }
import { Barrier } from '../order/races.ts'
import { from } from '../order/support.ts'

const transports = [
  ['Connect', (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
  ['gRPC', (baseUrl: string) => createGrpcTransport({ baseUrl })],
] as const

const newAccount = () => privateKeyToAccount(generatePrivateKey())
const account = newAccount()
const other = newAccount()

/** What a call came to: its answer, or its reason, with the field that it names. */
function outcome({ status, json }: RestAnswer) {
  return status === 200 ? json : [json.code, json.metadata?.field].filter(Boolean).join(' ')
}

/** A form's text, written as viem writes it. */
function siweText(form: Omit<SignInForm, 'address' | 'chainId'>, address: Hex, chainId = 1): string {
  const { domain, uri, nonce, statement, resources } = form
  const times = { issuedAt: new Date(form.issuedAt), expirationTime: new Date(form.expirationTime) }
  return createSiweMessage({
    ...{ domain, uri, nonce, statement, chainId, address, ...times },
    version: '1',
    resources: [...resources],
  })
}

let url: string
beforeEach(async () => {
  url = (await startService({ adapters: ['nimiq', 'ed25519', 'ethereum', 'solana'] })).url
})

const issue = async (wallet: object) => outcome(await rest(url, '/wallet/nonce', { form: true, ...wallet }))
const verify = async (proof: object, service = url) => outcome(await rest(service, '/wallet/verify', proof))

/** The proof of an account over a text. */
async function proofOf(nonceId: string, text: string, { signer = account, chainId = '1' } = {}) {
  const signatureHex = (await signer.signMessage({ message: text })).slice(2)
  return { nonceId, adapterId: 'ethereum', address: signer.address as string, chainId, publicKeyHex: '', signatureHex }
}

describe('a nonce whose account is not known', () => {
  test('has the fields of the form, and no text', async () => {
    const { message, form, nonce, issuedAt, expiresAt } = await issue({ adapterId: 'ethereum' })
    expect(message).toBe('')
    expect(form).toEqual({
      domain: new URL(url).host,
      uri: url,
      version: '1',
      statement: 'Sign in.',
      nonce: Buffer.from(nonce, 'base64url').toString('hex'),
      issuedAt: new Date(issuedAt).toISOString(),
      expirationTime: new Date(expiresAt).toISOString(),
      resources: [expect.stringMatching(/^urn:countersign:sha256:[A-Za-z0-9_-]{43}$/)],
    })
  })

  test.each([1, 8453])("signs in over viem's text, on chain %s", async (chainId) => {
    const { nonceId, form } = await issue({ adapterId: 'ethereum' })
    const text = siweText(form, account.address, chainId)
    const { session } = await verify(await proofOf(nonceId, text, { chainId: String(chainId) }))
    expect(session).toMatchObject({ adapterId: 'ethereum', address: account.address })
  })

  test('signs in with Solana', async () => {
    const wallet = makeSolanaWallet()
    const { nonceId, form } = await issue({ adapterId: 'solana' })
    const text = siweText(form, account.address)
      .replace('Ethereum', 'Solana')
      .replace(account.address, wallet.address)
      .replace('Chain ID: 1', 'Chain ID: mainnet')
    const named = { adapterId: 'solana', address: wallet.address, chainId: 'mainnet' }
    const proof = { nonceId, ...named, publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(text) }
    expect((await verify(proof)).session).toMatchObject({ adapterId: 'solana', address: wallet.address })
  })

  test('is refused for a text that differs by a byte, in each of its lines', async () => {
    const lines = siweText((await issue({ adapterId: 'ethereum' })).form, account.address).split('\n')
    expect(lines).toHaveLength(13)
    for (const index of lines.keys()) {
      const { nonceId, form } = await issue({ adapterId: 'ethereum' })
      const changed = siweText(form, account.address).split('\n')
      const line = changed[index]!
      // The last byte; of an empty line, one that is added.
      changed[index] = line.slice(0, -1) + (line.endsWith('1') ? '2' : '1')
      expect(await verify(await proofOf(nonceId, changed.join('\n'))), `line ${index}`).toBe('SIGNATURE_INVALID')
    }
  })

  test('takes the address in lower case, and not with a wrong checksum', async () => {
    const lower = account.address.toLowerCase()
    const answers = []
    for (const address of [lower, misspelt(account.address)]) {
      const { nonceId, form } = await issue({ adapterId: 'ethereum' })
      answers.push(await verify({ ...(await proofOf(nonceId, siweText(form, account.address))), address }))
    }
    expect(answers).toEqual([expect.objectContaining({ ok: true }), 'INVALID_REQUEST address'])
    // The text has the checksum, whatever the proof has.
    const { nonceId, form } = await issue({ adapterId: 'ethereum' })
    const text = siweText(form, account.address).replace(account.address, lower)
    expect(await verify({ ...(await proofOf(nonceId, text)), address: lower })).toBe('SIGNATURE_INVALID')
  })

  test('needs a proof that names the whole account', async () => {
    for (const [left, reason] of [
      ['address', 'INVALID_REQUEST address'],
      ['chainId', 'INVALID_REQUEST chainId'],
      ['adapterId', 'ADDRESS_MISMATCH adapterId'],
    ] as const) {
      const { nonceId, form } = await issue({ adapterId: 'ethereum' })
      const { [left]: _, ...proof } = await proofOf(nonceId, siweText(form, account.address))
      expect(await verify({ ...proof, publicKeyHex: '00'.repeat(32) })).toBe(reason)
    }
  })

  test('is of the adapter that it was asked for, and needs one that has a form', async () => {
    const wallet = makeSolanaWallet()
    const { nonceId, form } = await issue({ adapterId: 'ethereum' })
    const { publicKeyHex, address } = wallet
    const proof = { nonceId, publicKeyHex, address, chainId: 'mainnet', signatureHex: wallet.sign(form.statement) }
    expect(await verify({ ...proof, adapterId: 'solana' })).toBe('ADDRESS_MISMATCH adapterId')
    expect(await issue({})).toBe('INVALID_REQUEST adapterId')
    expect(await issue({ adapterId: 'nimiq' })).toBe('INVALID_REQUEST adapterId')
    expect(await issue({ adapterId: 'other' })).toBe('ADAPTER_UNKNOWN')
  })

  test('is good once, and once for two proofs at the same time', async () => {
    const store = await openStore('sqlite::memory:')
    const both = new Barrier(2)
    const get = async (key: string) => {
      const found = await store.get(key)
      await both.arrive()
      return found
    }
    const late = {
      now: () => store.now(),
      create: store.create.bind(store),
      take: store.take.bind(store),
      get,
    }
    const nonces = new Nonces({ appName: 'App', ttlSeconds: 60, store: late })
    const prover = new Prover([ethereum()], nativeVerifier)
    const origins = new OriginPolicy({ enforce: true, own: url, trusted: [url] })
    const named = prover.namedForForm({ adapterId: 'ethereum' })
    const issued = await nonces.issue(url, { named })
    const { form } = prover.formFor(issued, named, url)
    const proof = await proofOf(issued.nonceId, siweText(form, account.address))
    const once = async () => {
      const nonce = await nonces.consume(issued.nonceId, { request: from(url), origins })
      return (await prover.prove(nonce, proof, { pageOrigin: url })).identity.address
    }
    const results = await Promise.allSettled([once(), once()])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await expect(once()).rejects.toMatchObject({ reason: 'NONCE_NOT_FOUND' })
    await store.close()
  })

  test('adds no wallet to a user', async () => {
    expect(await issue({ adapterId: 'ethereum', purpose: 'link' })).toBe('INVALID_REQUEST form')
  })
})

describe('a nonce that named the account', () => {
  test('has the account as the form writes it, and the text if the account is whole', async () => {
    const address = account.address.toLowerCase()
    const whole = await issue({ adapterId: 'ethereum', address, chainId: '137' })
    expect(whole.form).toMatchObject({ address: account.address, chainId: '137' })
    expect(whole.message).toBe(siweText(whole.form, account.address, 137))
    const addressOnly = await issue({ adapterId: 'ethereum', address })
    expect([addressOnly.message, addressOnly.form.address]).toEqual(['', account.address])
    expect(addressOnly.form).not.toHaveProperty('chainId')
    expect(await issue({ adapterId: 'ethereum', address: '0x12' })).toBe('INVALID_REQUEST address')
    expect(await issue({ adapterId: 'ethereum', chainId: 'mainnet' })).toBe('INVALID_REQUEST chainId')
  })

  test.each([
    ['another account', { address: account.address }, { signer: other }, 'address'],
    ['another chain', { chainId: '1' }, { chainId: '10' }, 'chainId'],
    ['another account of the whole', { address: account.address, chainId: '1' }, { signer: other }, 'address'],
    ['another chain of the whole', { address: account.address, chainId: '1' }, { chainId: '10' }, 'chainId'],
  ])('is refused for %s', async (_, named, proven: { signer?: typeof account; chainId?: string }, field) => {
    const { signer = account, chainId = '1' } = proven
    const { nonceId, form } = await issue({ adapterId: 'ethereum', ...named })
    const text = siweText(form, signer.address, Number(chainId))
    expect(await verify(await proofOf(nonceId, text, { signer, chainId }))).toBe(`ADDRESS_MISMATCH ${field}`)
  })

  test.each([{}, { chainId: '1' }, { address: account.address.toLowerCase() }])(
    'signs in with the same account: %j',
    async (named) => {
      const { nonceId, form } = await issue({ adapterId: 'ethereum', ...named })
      const proof = await proofOf(nonceId, siweText(form, account.address))
      expect(await verify(proof)).toMatchObject({ ok: true })
    },
  )
})

describe('a nonce with a text that named the wallet', () => {
  const plain = async (named: object) => outcome(await rest(url, '/wallet/nonce', named))
  const [own, second] = [makeSolanaWallet(), makeSolanaWallet()]
  const solanaProof = (text: string, wallet = own, chainId?: string) => ({
    ...{ adapterId: 'solana', address: wallet.address, publicKeyHex: wallet.publicKeyHex },
    ...(chainId === undefined ? {} : { chainId }),
    signatureHex: wallet.sign(text),
  })
  /** The text of a wallet's own: what the service would have given it. */
  const textFor = (text: string, from: string, to: string) => text.replace(`account:\n${from}\n`, `account:\n${to}\n`)

  test.each([
    ['another account', { signer: other }, 'address'],
    ['another chain', { chainId: '10' }, 'chainId'],
  ])('is refused for %s of Ethereum, and is used then', async (_, proven, field) => {
    const { signer = account, chainId = '1' } = proven as { signer?: typeof account; chainId?: string }
    const named = { adapterId: 'ethereum', address: account.address, chainId: '1' }
    const { nonceId, message } = await plain(named)
    const text = textFor(message, account.address, signer.address).replace('Chain ID: 1\n', `Chain ID: ${chainId}\n`)
    expect(await verify(await proofOf(nonceId, text, { signer, chainId }))).toBe(`ADDRESS_MISMATCH ${field}`)
    expect(await verify(await proofOf(nonceId, message))).toBe('NONCE_NOT_FOUND')
  })

  test.each([
    ['another account', { address: own.address }, { wallet: second }, 'address'],
    [
      'another account, which the proof does not name',
      { address: own.address },
      { wallet: second, left: true },
      'address',
    ],
    ['another chain', { chainId: 'mainnet' }, { chainId: 'devnet' }, 'chainId'],
    ['no chain', { chainId: 'mainnet' }, {}, 'chainId'],
  ])('is refused for %s of Solana', async (_, named, proven, field) => {
    const { wallet = own, chainId, left } = proven as { wallet?: typeof own; chainId?: string; left?: boolean }
    const { nonceId, message } = await plain({ adapterId: 'solana', ...named })
    const chainLine = chainId === undefined ? '' : `Chain ID: ${chainId}\n`
    const text = textFor(message, 'address' in named ? named.address : '', wallet.address).replace(
      /Chain ID: .*\n/,
      chainLine,
    )
    const { address, ...proof } = solanaProof(text, wallet, chainId)
    expect(await verify({ nonceId, ...proof, ...(left ? {} : { address }) })).toBe(`ADDRESS_MISMATCH ${field}`)
  })

  test('is refused for another adapter, whose proof holds', async () => {
    const wallet = makeWallet()
    const { nonceId, message } = await plain({ adapterId: 'ed25519', address: wallet.address })
    const { publicKeyHex, signatureHex } = signedBy(wallet, { nonceId, message })
    const proof = { nonceId, publicKeyHex, signatureHex }
    expect(await verify({ ...proof, adapterId: 'nimiq' })).toBe('ADDRESS_MISMATCH adapterId')
  })

  test('says first whether a proof holds', async () => {
    const { nonceId, message } = await plain({ adapterId: 'solana', address: own.address })
    const proof = solanaProof(`${message} `, second)
    expect(await verify({ nonceId, ...proof })).toBe('SIGNATURE_INVALID')
  })

  test('signs in with what it named, however that is written, and whatever it left out', async () => {
    const lower = account.address.toLowerCase()
    const signedIn = []
    const whole = await plain({ adapterId: 'ethereum', address: lower, chainId: '1' })
    signedIn.push(await verify(await proofOf(whole.nonceId, whole.message)))
    for (const named of [{}, { address: own.address }, { chainId: 'mainnet' }]) {
      const { chainId } = named as { chainId?: string }
      const { nonceId, message } = await plain({ adapterId: 'solana', ...named })
      const text = 'address' in named ? message : textFor(message, '', own.address)
      signedIn.push(await verify({ nonceId, ...solanaProof(text, own, chainId) }))
    }
    const wallet = makeWallet()
    for (const named of [
      { adapterId: 'nimiq' },
      { adapterId: 'nimiq', address: wallet.address.replaceAll(' ', '').toLowerCase() },
      { address: wallet.address },
    ]) {
      const challenge = await plain(named)
      const { nonceId, publicKeyHex, signatureHex } = signedBy(wallet, challenge)
      signedIn.push(await verify({ nonceId, publicKeyHex, signatureHex }))
    }
    expect(signedIn).toEqual(Array(7).fill(expect.objectContaining({ ok: true })))
  })

  test('adds no other wallet to a user', async () => {
    const holder = makeWallet()
    const { token } = await verify(signedBy(holder, await plain({})))
    const authorization = { authorization: `Bearer ${token}` }
    const linked = []
    for (const wallet of [second, own]) {
      const named = { purpose: 'link', adapterId: 'solana', address: own.address }
      const { nonceId, message } = outcome(await rest(url, '/wallet/nonce', named, authorization))
      const proof = solanaProof(textFor(message, own.address, wallet.address), wallet)
      linked.push(outcome(await rest(url, '/wallet/link', { nonceId, proof }, authorization)))
    }
    expect(linked).toEqual(['ADDRESS_MISMATCH address', expect.objectContaining({ wallet: expect.anything() })])
  })

  test.each(transports)('is refused for another account over %s, and signs in with its own', async (_, transport) => {
    const client = createClient(SignInService, transport(url))
    const tries = [account, other].map(async (signer) => {
      const named = { adapterId: 'ethereum', address: account.address, chainId: '1' }
      const { nonceId, message } = await client.issueNonce(named)
      const text = textFor(message, account.address, signer.address)
      return (await client.verifySignIn(await proofOf(nonceId, text, { signer }))).session?.address
    })
    const [signedIn, refused] = await Promise.allSettled(tries)
    expect(signedIn).toMatchObject({ value: account.address })
    const { reason } = refused as PromiseRejectedResult
    expect(ConnectError.from(reason).findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: 'ADDRESS_MISMATCH', metadata: { field: 'address' } },
    ])
  })
})

test('a contract wallet signs in if its chain has an RPC, and is refused without one', async () => {
  const owner = privateKeyToAccount(vectors.contract.ownerPrivateKey as Hex)
  const chain = await startChain(8453)
  const address = await chain.deploy(vectors.contract.runtime)
  const withRpc = (await startService({ adapters: ['ethereum'], evmRpc: { 8453: chain.url } })).url
  const answers = []
  // Without an RPC, a signature that could be a key's is invalid, and a longer one needs the RPC.
  for (const [service, end] of [
    [url, ''],
    [url, '00'],
    [withRpc, ''],
  ] as const) {
    const body = { form: true, adapterId: 'ethereum' }
    const { nonceId, form } = (await rest(service, '/wallet/nonce', body)).json
    const { address: own } = (await rest(service, '/wallet/nonce', { ...body, address })).json.form
    const text = siweText(form, own, 8453)
    const signatureHex = (await owner.sign({ hash: hashMessage(text) })).slice(2) + end
    const named = { adapterId: 'ethereum', address, chainId: '8453' }
    answers.push(await verify({ nonceId, ...named, publicKeyHex: '', signatureHex }, service))
  }
  // A text of the service's own: the nonce keeps the account, and the wallet's address is that of its chain.
  const named = { adapterId: 'ethereum', address, chainId: '8453' }
  const { nonceId, message } = (await rest(withRpc, '/wallet/nonce', named)).json
  const signatureHex = (await owner.sign({ hash: hashMessage(message) })).slice(2)
  answers.push(await verify({ nonceId, ...named, publicKeyHex: '', signatureHex }, withRpc))
  const signedIn = { session: expect.objectContaining({ address: expect.stringMatching(/^eip155:8453:/) }) }
  expect(answers).toEqual([
    'SIGNATURE_INVALID',
    'CONTRACT_WALLET_NEEDS_RPC',
    expect.objectContaining(signedIn),
    expect.objectContaining(signedIn),
  ])
})

test.each(transports)('a sign-in by a form that the client writes works over %s', async (_, transport) => {
  const client = createClient(SignInService, transport(url))
  const { nonceId, form, message } = await client.issueNonce({ adapterId: 'ethereum', form: true })
  expect(message).toBe('')
  const text = siweText(form!, account.address)
  const { session } = await client.verifySignIn(await proofOf(nonceId, text))
  expect(session?.address).toBe(account.address)
  expect((await client.issueNonce({})).form).toBeUndefined()
})
